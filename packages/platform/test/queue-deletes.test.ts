import type { Store } from "@osbert/journal";
import { memoryStore } from "@osbert/journal/memory";
import { expect, test } from "vitest";
import { type Answer, type QueueLab, queueLab } from "./queue-lab.js";
import { db, emptied, held, operationOf, ready, refusal, sent, update } from "./queue-stories.js";

async function bound(lab: QueueLab, ...names: readonly string[]): Promise<void> {
  for (const name of names) lab.answer(operationOf(await lab.instances.bind(lab.ref, { name }, lab.asks("anna"))));
  await emptied(lab);
}

const order = async (lab: QueueLab) => (await lab.see()).queue.map(({ operation }) => operation);
const no: Answer = { kind: "refused", message: "protected" };

/** The process stops before it has heard an answer, and nobody takes the instance up: as while the lane of its broker is paused. */
async function stoppedAndPaused(lab: QueueLab, store: Store): Promise<QueueLab> {
  await lab.journal.stop({ drainMs: 0 });
  const next = await queueLab({ store });
  expect(await next.journal.read("instance/s/i")).toMatchObject({ running: false, open: [{ attempts: 0, steps: [] }] });
  return next;
}

test("a bind that was sent is not forgotten by an unbind while nobody is at it", async () => {
  const store = memoryStore();
  const before = await ready({ store });
  before.fallSilent();
  await sent(before, before.instances.bind(before.ref, { name: "app" }, before.asks("anna")));
  const lab = await stoppedAndPaused(before, store);
  const unbind = operationOf(await lab.instances.unbind(lab.ref, "app", lab.asks("anna")));
  expect((await lab.see()).bindings).toMatchObject([{ name: "app", phase: "unbinding" }]);
  lab.answerAll();
  await lab.journal.start();
  expect((await emptied(lab)).bindings).toEqual([]);
  expect(lab.done).toContain(unbind);
});

test("a bind that was sent is a binding, so that a delete does not pass it while nobody is at it", async () => {
  const store = memoryStore();
  const before = await ready({ store });
  before.fallSilent();
  const bind = await sent(before, before.instances.bind(before.ref, { name: "app" }, before.asks("anna")));
  const lab = await stoppedAndPaused(before, store);
  expect(await refusal(lab.instances.delete(lab.ref, {}, lab.asks("anna")))).toMatchObject({ code: "has-bindings" });
  const gone = operationOf(await lab.instances.delete(lab.ref, { cascade: true }, lab.asks("anna")));
  const queue = (await lab.see()).queue.map(({ op, operation }) => [op, operation]);
  expect(queue).toEqual([
    ["bind", bind],
    ["unbind", expect.any(String)],
    ["delete", gone],
  ]);
});

test("an update that was sent keeps its place before a delete while nobody is at it", async () => {
  const store = memoryStore();
  const before = await ready({ store });
  before.fallSilent();
  const first = await sent(before, before.instances.update(before.ref, { parameters: '{"a":2}' }, before.asks("anna")));
  const lab = await stoppedAndPaused(before, store);
  const gone = operationOf(await lab.instances.delete(lab.ref, {}, lab.asks("anna")));
  expect(await order(lab)).toEqual([first, gone]);
  expect(await held(lab)).toEqual([]);
});

test("E10-2: nothing is folded into a create that was sent while nobody is at it", async () => {
  const store = memoryStore();
  const before = await queueLab({ store });
  await before.journal.start();
  before.fallSilent();
  const create = await sent(before, before.instances.create(before.ref, db, before.asks("anna")));
  const lab = await stoppedAndPaused(before, store);
  const second = await update(lab, '{"a":2}');
  expect(await order(lab)).toEqual([create, second]);
});

test("a delete that takes bindings along waits for unbinds that were queued before it", async () => {
  const lab = await ready();
  await bound(lab, "one", "two");
  const hangs = await sent(lab, lab.instances.update(lab.ref, { parameters: '{"a":2}' }, lab.asks("anna")));
  const asked = operationOf(await lab.instances.unbind(lab.ref, "one", lab.asks("bert")));
  const other = await update(lab, '{"b":2}', "carl");
  await lab.instances.hold(lab.ref, asked, "not yet", lab.asks("bert"));
  const gone = operationOf(await lab.instances.delete(lab.ref, { cascade: true }, lab.asks("dora")));
  const { queue } = await lab.see();
  expect(queue.map(({ op }) => op)).toEqual(["update", "unbind", "unbind", "delete", "update"]);
  expect(queue.findIndex(({ operation }) => operation === asked)).toBeLessThan(3);
  expect(await held(lab)).toEqual([other]);
  lab.answer(asked, { kind: "refused", message: "in use" });
  lab.answer(hangs);
  await lab.until(async () => (await lab.see()).lastDelete !== null);
  expect(await lab.see()).toMatchObject({ lastDelete: { operation: gone, how: "blocked" } });
  expect(lab.sent).not.toContain(gone);
  lab.answerAll();
  const view = await emptied(lab);
  expect(view.bindings).toMatchObject([{ name: "one", phase: "unbind-rejected" }]);
  expect(view.applied?.parameters).toBe('{"a":2,"b":2}');
});

test("E10-23, E10-25: a create that a delete stopped is gone on with when the broker refuses the delete", async () => {
  const lab = await queueLab();
  await lab.journal.start();
  const create = await sent(lab, lab.instances.create(lab.ref, db, lab.asks("anna")));
  const { osbId } = await lab.see();
  const second = await update(lab, '{"b":2}', "bert");
  const third = await update(lab, '{"c":3}', "carl");
  const gone = await sent(lab, lab.instances.delete(lab.ref, {}, lab.asks("dora")));
  expect(await lab.see()).toMatchObject({ phase: "deleting", desired: null });
  lab.answer(gone, no);
  await lab.until(async () => (await lab.see()).lastDelete !== null);
  const view = await lab.see();
  expect(view).toMatchObject({ phase: "creating", osbId, desired: { parameters: '{"a":1,"b":2,"c":3}' } });
  expect(view.queue.map(({ op, author }) => [op, author])).toEqual([
    ["create", "anna"],
    ["update", "bert"],
    ["update", "carl"],
  ]);
  expect((await order(lab)).slice(1)).toEqual([second, third]);
  expect(await held(lab)).toEqual([]);
  lab.answerAll();
  expect(await emptied(lab)).toMatchObject({ phase: "ready", osbId, applied: { parameters: '{"a":1,"b":2,"c":3}' } });
  expect((await lab.journal.operation("instance/s/i", create))?.status).toBe("cancelled");
});

test("E10-30: a create that a delete stopped is gone on with when the delete is taken back", async () => {
  const lab = await queueLab();
  await lab.instances.create(lab.ref, db, lab.asks("anna"));
  await lab.instances.delete(lab.ref, {}, lab.asks("dora"));
  expect(await lab.see()).toMatchObject({ phase: "deleting", desired: null });
  await lab.instances.restore(lab.ref, lab.asks("dora"));
  expect(await lab.see()).toMatchObject({ phase: "pending", queue: [{ op: "create", state: "queued" }] });
  lab.answerAll();
  await lab.journal.start();
  expect(await emptied(lab)).toMatchObject({ phase: "ready" });
});

test("an update that a delete went before at once is gone on with when the broker refuses the delete", async () => {
  const lab = await ready();
  await sent(lab, lab.instances.update(lab.ref, { parameters: '{"a":2}' }, lab.asks("anna")));
  const gone = await sent(lab, lab.instances.delete(lab.ref, { now: true }, lab.asks("dora")));
  lab.answer(gone, no);
  await lab.until(async () => (await lab.see()).lastDelete !== null);
  expect(await lab.see()).toMatchObject({ phase: "updating", queue: [{ op: "update", author: "anna" }] });
  lab.answerAll();
  expect((await emptied(lab)).applied?.parameters).toBe('{"a":2,"b":1}');
});

test("a delete that the broker began, and that stopped a create, can be asked for again", async () => {
  const lab = await queueLab();
  await lab.journal.start();
  await sent(lab, lab.instances.create(lab.ref, db, lab.asks("anna")));
  const second = await update(lab, '{"b":2}', "bert");
  const gone = await sent(lab, lab.instances.delete(lab.ref, {}, lab.asks("dora")));
  lab.answer(gone, { ...no, failed: true });
  await lab.until(async () => (await lab.see()).lastDelete !== null);
  expect(await lab.see()).toMatchObject({ phase: "delete-rejected" });
  expect(await held(lab)).toEqual([second]);
  lab.answerAll();
  await lab.instances.delete(lab.ref, {}, lab.asks("dora"));
  expect(await emptied(lab)).toMatchObject({ phase: "gone" });
});

test("a delete that is to come after one that is held is refused: it would come before it", async () => {
  const lab = await ready();
  await sent(lab, lab.instances.update(lab.ref, { parameters: '{"a":2}' }, lab.asks("anna")));
  const second = await update(lab, '{"b":2}');
  await lab.instances.hold(lab.ref, second, "not yet", lab.asks("anna"));
  expect(await refusal(lab.instances.delete(lab.ref, { after: second }, lab.asks("anna")))).toMatchObject({
    code: "invalid",
  });
});

test("a delete that comes after all others counts what they bind: it is refused, or takes that along", async () => {
  const lab = await ready();
  const hangs = await sent(lab, lab.instances.update(lab.ref, { parameters: '{"a":2}' }, lab.asks("anna")));
  const bind = operationOf(await lab.instances.bind(lab.ref, { name: "app" }, lab.asks("anna")));
  for (const wanted of [{ mode: "drain" }, { after: bind }] as const)
    expect(await refusal(lab.instances.delete(lab.ref, wanted, lab.asks("anna")))).toMatchObject({
      code: "has-bindings",
    });
  await lab.instances.delete(lab.ref, { mode: "drain", cascade: true }, lab.asks("anna"));
  expect((await lab.see()).queue.map(({ op }) => op)).toEqual(["update", "bind", "unbind", "delete"]);
  lab.answer(hangs);
  lab.answerAll();
  expect(await emptied(lab)).toMatchObject({ phase: "gone" });
});

/** A create that was sent, stopped by a delete that was taken back, and not taken up again yet: it has the id that was sent. */
async function resumedCreate(): Promise<{ readonly lab: QueueLab; readonly create: string; readonly osbId: string }> {
  const store = memoryStore();
  const before = await queueLab({ store });
  await before.journal.start();
  before.fallSilent();
  await sent(before, before.instances.create(before.ref, db, before.asks("anna")));
  const lab = await stoppedAndPaused(before, store);
  await lab.instances.delete(lab.ref, {}, lab.asks("anna"));
  await lab.instances.restore(lab.ref, lab.asks("anna"));
  const { osbId, queue } = await lab.see();
  expect(queue).toMatchObject([{ op: "create", state: "queued" }]);
  return { lab, create: queue[0]?.operation ?? "", osbId: osbId ?? "none" };
}

test("who cancels a create that goes on with what was sent does not make the instance forget it", async () => {
  const { lab, create, osbId } = await resumedCreate();
  await lab.instances.cancel(lab.ref, create, lab.asks("anna"));
  expect(await lab.see()).toMatchObject({ osbId, phase: "failed" });
  lab.answerAll();
  await lab.journal.start();
  const gone = operationOf(await lab.instances.delete(lab.ref, {}, lab.asks("anna")));
  await lab.until(async () => (await lab.see()).phase === "gone");
  expect(lab.done).toContain(gone);
});

test("nothing is folded into a create that goes on with what was sent", async () => {
  const { lab, create, osbId } = await resumedCreate();
  const second = await update(lab, '{"a":2}');
  expect(await order(lab)).toEqual([create, second]);
  expect((await lab.see()).osbId).toBe(osbId);
});

test("E10-30: a delete that was sent is not made one that can be taken back by asking for it more urgently", async () => {
  const lab = await ready();
  const gone = await sent(lab, lab.instances.delete(lab.ref, { mode: "drain" }, lab.asks("dora")));
  expect(operationOf(await lab.instances.delete(lab.ref, {}, lab.asks("anna")))).toBe(gone);
  expect(await refusal(lab.instances.restore(lab.ref, lab.asks("anna")))).toMatchObject({ code: "too-late" });
});

test("an unbind that is called off leaves a bind that is under way as that", async () => {
  const store = memoryStore();
  const before = await ready({ store });
  before.fallSilent();
  await sent(before, before.instances.bind(before.ref, { name: "app" }, before.asks("anna")));
  const lab = await stoppedAndPaused(before, store);
  await lab.instances.delete(lab.ref, { cascade: true }, lab.asks("dora"));
  await lab.instances.restore(lab.ref, lab.asks("dora"));
  expect((await lab.see()).bindings).toMatchObject([{ name: "app", phase: "binding" }]);
});

test.each(["restore", "cancel"] as const)(
  "E5, E10-30: %s of a delete that took the place of a weaker one leaves all bindings, also those that the weaker one was to take along",
  async (how) => {
    const lab = await ready();
    await bound(lab, "one", "two");
    const hangs = await sent(lab, lab.instances.update(lab.ref, { parameters: '{"a":2}' }, lab.asks("anna")));
    const own = operationOf(await lab.instances.unbind(lab.ref, "two", lab.asks("bert")));
    await lab.instances.delete(lab.ref, { mode: "drain", cascade: true }, lab.asks("dora"));
    const gone = operationOf(await lab.instances.delete(lab.ref, { cascade: true }, lab.asks("dora")));
    expect((await lab.see()).queue.map(({ op }) => op)).toEqual(["update", "unbind", "unbind", "delete"]);
    if (how === "restore") await lab.instances.restore(lab.ref, lab.asks("dora"));
    else await lab.instances.cancel(lab.ref, gone, lab.asks("dora"));
    expect(await order(lab), "what somebody else has asked for stays").toEqual([hangs, own]);
    lab.answerAll();
    expect((await emptied(lab)).bindings).toMatchObject([{ name: "one", phase: "bound" }]);
  },
);

test("E5, E10-30: restore leaves what an earlier delete, which a binding has called off, had taken along", async () => {
  const lab = await ready();
  await bound(lab, "one", "two", "three");
  const first = await sent(lab, lab.instances.update(lab.ref, { parameters: '{"a":2}' }, lab.asks("anna")));
  await lab.instances.delete(lab.ref, { cascade: true }, lab.asks("dora"));
  const unbinds = (await lab.see()).queue.filter(({ op }) => op === "unbind").map(({ operation }) => operation);
  // They go one after the other: the third one has not begun when the first is refused.
  lab.answer(unbinds[0] ?? "", { kind: "refused", message: "in use" });
  lab.answer(first);
  await lab.until(async () => (await lab.see()).lastDelete !== null);
  await lab.until(() => lab.sent.includes(unbinds[1] ?? ""));
  const again = operationOf(await lab.instances.delete(lab.ref, { cascade: true }, lab.asks("emil")));
  await lab.instances.cancel(lab.ref, again, lab.asks("emil"));
  expect(await order(lab)).toEqual(unbinds.slice(1));
});

test("E5: an unbind that somebody holds waits for them again when the delete that it went before is restored", async () => {
  const lab = await ready();
  await bound(lab, "one", "two");
  const hangs = await sent(lab, lab.instances.update(lab.ref, { parameters: '{"a":2}' }, lab.asks("anna")));
  const mine = operationOf(await lab.instances.unbind(lab.ref, "two", lab.asks("bert")));
  await lab.instances.hold(lab.ref, mine, "until the report is written", lab.asks("bert"));
  await lab.instances.delete(lab.ref, { mode: "drain", cascade: true }, lab.asks("dora"));
  await lab.instances.delete(lab.ref, { cascade: true }, lab.asks("dora"));
  expect(await held(lab)).toEqual([]);
  await lab.instances.restore(lab.ref, lab.asks("dora"));
  expect((await lab.see()).queue).toMatchObject([
    { operation: hangs },
    { operation: mine, state: "held", heldFor: "bert: until the report is written" },
  ]);
});

test("E5: an unbind that somebody holds waits for them again when a binding calls off the delete that it went before", async () => {
  const lab = await ready();
  await bound(lab, "one", "two", "three");
  const hangs = await sent(lab, lab.instances.update(lab.ref, { parameters: '{"a":2}' }, lab.asks("anna")));
  await lab.instances.delete(lab.ref, { cascade: true }, lab.asks("dora"));
  const unbinds = (await lab.see()).queue.filter(({ op }) => op === "unbind").map(({ operation }) => operation);
  const [first = "", second = "", third = ""] = unbinds;
  const refused = { kind: "refused", message: "in use" } as const;
  lab.answer(first, refused);
  lab.answer(hangs);
  await lab.until(() => lab.sent.includes(second));
  await lab.instances.hold(lab.ref, third, "until the report is written", lab.asks("bert"));
  await lab.instances.delete(lab.ref, { cascade: true }, lab.asks("emil"));
  expect(await held(lab)).toEqual([]);
  lab.answer(second, refused);
  await lab.until(async () => (await lab.see()).lastDelete?.by === "emil");
  expect(await held(lab)).toEqual([third]);
  expect(lab.sent).not.toContain(third);
});

test("a delete that is asked for again after a binding has called it off is not taken for one of its unbinds", async () => {
  const lab = await ready();
  await bound(lab, "one", "two");
  const hangs = await sent(lab, lab.instances.update(lab.ref, { parameters: '{"a":2}' }, lab.asks("anna")));
  const first = operationOf(await lab.instances.delete(lab.ref, { cascade: true }, lab.asks("dora")));
  const [unbind = ""] = (await lab.see()).queue.filter(({ op }) => op === "unbind").map(({ operation }) => operation);
  lab.answer(unbind, { kind: "refused", message: "in use" });
  lab.answer(hangs);
  await lab.until(async () => (await lab.see()).lastDelete?.operation === first);
  const again = await lab.instances.delete(lab.ref, { cascade: true }, lab.asks("dora"));
  expect(again.kind).toBe("accepted");
  expect((await lab.see()).queue.at(-1)).toMatchObject({ op: "delete", operation: operationOf(again) });
});

test("E10-34: a delete with a key that is asked for twice is answered with the delete, also where its unbinds were accepted before it", async () => {
  const lab = await ready();
  await bound(lab, "one");
  await sent(lab, lab.instances.update(lab.ref, { parameters: '{"a":2}' }, lab.asks("anna")));
  const asking = lab.asks("dora", { idempotencyKey: "k" });
  const once = await lab.instances.delete(lab.ref, { mode: "drain", cascade: true }, asking);
  const again = await lab.instances.delete(lab.ref, { mode: "drain", cascade: true }, asking);
  expect(operationOf(again)).toBe(operationOf(once));
});
