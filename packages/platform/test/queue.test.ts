import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { sqliteStore } from "@osbert/journal/sqlite";
import { expect, onTestFinished, test } from "vitest";
import type { InstanceView } from "../src/index.js";
import { queueLab } from "./queue-lab.js";
import { emptied, held, operationOf, ready, refusal, update } from "./queue-stories.js";

const db = { offering: "db", plan: "small" } as const;

/** An instance at whose broker the first update hangs, so that everything else is queued behind it. */
async function busy(parameters?: string) {
  const lab = await ready({}, parameters);
  const first = await update(lab, '{"a":2}');
  await lab.until(() => lab.sent.includes(first));
  return { lab, first };
}

test("E10-1: an update while the create runs is queued behind it, and what will be is seen at once", async () => {
  const lab = await queueLab();
  await lab.journal.start();
  const create = operationOf(await lab.instances.create(lab.ref, { ...db, parameters: '{"a":1}' }, lab.asks("anna")));
  await lab.until(() => lab.sent.includes(create));
  const second = await update(lab, '{"a":2}');
  const view = await lab.see();
  expect(view).toMatchObject({ phase: "creating", applied: null, desired: { parameters: '{"a":2}' } });
  expect(view.queue.map(({ operation, position }) => [operation, position])).toEqual([
    [create, 1],
    [second, 2],
  ]);
  lab.answerAll();
  expect((await emptied(lab)).applied?.parameters).toBe('{"a":2}');
});

test("E10-2: an update before the create is sent is folded into it, if it is the same author's", async () => {
  const lab = await queueLab();
  await lab.instances.create(lab.ref, { ...db, parameters: '{"a":1}' }, lab.asks("anna"));
  await lab.instances.update(lab.ref, { parameters: '{"b":2}' }, lab.asks("anna"));
  expect((await lab.see()).queue).toMatchObject([{ op: "create", author: "anna" }]);
  await lab.instances.update(lab.ref, { parameters: '{"b":3}' }, lab.asks("bert"));
  expect((await lab.see()).queue).toMatchObject([
    { op: "create", author: "anna" },
    { op: "update", author: "bert" },
  ]);
  lab.answerAll();
  await lab.journal.start();
  expect((await emptied(lab)).applied?.parameters).toBe('{"a":1,"b":3}');
  expect(lab.sent).toHaveLength(2);
});

test("E10-3: what waits behind a create that failed is held, and goes on after a corrected update", async () => {
  const lab = await queueLab();
  await lab.journal.start();
  const create = operationOf(await lab.instances.create(lab.ref, { ...db, parameters: '{"a":0}' }, lab.asks("anna")));
  await lab.until(() => lab.sent.includes(create));
  const waiting = await update(lab, '{"b":2}', "bert");
  lab.answer(create, { kind: "refused", message: "a must be 1" });
  await lab.until(async () => (await lab.see()).phase === "failed");
  expect(await held(lab)).toEqual([waiting]);
  expect((await lab.see()).queue[0]?.heldFor).toContain("a must be 1");
  lab.answerAll();
  await lab.instances.update(lab.ref, { parameters: '{"a":1}' }, lab.asks("anna"));
  expect(await emptied(lab)).toMatchObject({ phase: "ready", failures: [], applied: { parameters: '{"a":1,"b":2}' } });
});

test("E10-3: a corrected create leaves held what was made for another, until someone lets it go on", async () => {
  const lab = await queueLab();
  await lab.journal.start();
  const create = operationOf(await lab.instances.create(lab.ref, { ...db, parameters: '{"a":0}' }, lab.asks("anna")));
  await lab.until(() => lab.sent.includes(create));
  const waiting = await update(lab, '{"b":2}');
  lab.answer(create, { kind: "refused" });
  await lab.until(async () => (await lab.see()).phase === "failed");
  const before = (await lab.see()).osbId;
  lab.answerAll();
  await lab.instances.create(lab.ref, { ...db, parameters: '{"a":1}' }, lab.asks("anna"));
  await lab.until(async () => (await lab.see()).applied !== null);
  expect(await held(lab)).toEqual([waiting]);
  expect((await lab.see()).osbId).not.toBe(before);
  await lab.instances.release(lab.ref, waiting, lab.asks("anna"));
  expect((await emptied(lab)).applied?.parameters).toBe('{"a":1,"b":2}');
});

test("E10-4: two users on other paths are two entries with two authors, in order", async () => {
  const { lab, first } = await busy();
  const second = await update(lab, '{"b":2}', "bert");
  expect((await lab.see()).queue.map(({ author, overrides }) => [author, overrides])).toEqual([
    ["anna", []],
    ["bert", []],
  ]);
  lab.answerAll();
  await emptied(lab);
  expect(lab.sent.slice(-2)).toEqual([first, second]);
});

test("E10-5: two users on the same path are queued in order, and the second shows what it overrides", async () => {
  const { lab, first } = await busy();
  const seen = (await lab.see()).revision;
  await update(lab, '{"a":3}', "bert");
  expect((await lab.see()).queue[1]).toMatchObject({ author: "bert", overrides: [first] });
  const stale = await refusal(
    lab.instances.update(lab.ref, { parameters: '{"a":4}' }, lab.asks("carl", { ifMatch: seen })),
  );
  expect(stale).toMatchObject({
    code: "stale",
    details: { changes: [{ by: "bert", summary: "update /parameters/a" }] },
  });
});

test("E10-6: a queued update that writes the failed path itself goes on", async () => {
  const { lab, first } = await busy();
  const second = await update(lab, '{"a":3}', "bert");
  lab.answer(second);
  lab.answer(first, { kind: "refused" });
  expect(await emptied(lab)).toMatchObject({ phase: "ready", failures: [], applied: { parameters: '{"a":3,"b":1}' } });
});

test("E10-7: what was made on a value that never came to be is held, with what depends on it; others go on", async () => {
  const { lab, first } = await busy();
  const added = await update(lab, '{"n":{"x":1}}');
  const below = await update(lab, '{"n":{"x":1,"y":2}}', "bert");
  const behind = operationOf(
    await lab.instances.update(lab.ref, { parameters: '{"c":1}', after: [below] }, lab.asks("carl")),
  );
  const free = await update(lab, '{"b":2}', "dora");
  lab.answer(free);
  lab.answer(added, { kind: "refused", message: "never" });
  lab.answer(first);
  await lab.until(async () => (await lab.see()).queue.length === 2);
  expect(await held(lab)).toEqual([below, behind]);
  expect(await lab.see()).toMatchObject({ phase: "halted", applied: { parameters: '{"a":2,"b":2}' } });
  // The cure: a new value on the failed path takes the place of what is old, and frees the rest.
  lab.answerAll();
  const cure = await update(lab, '{"n":5}', "anna");
  expect(await emptied(lab)).toMatchObject({ phase: "ready", applied: { parameters: '{"a":2,"b":2,"n":5,"c":1}' } });
  expect(lab.sent.slice(-2)).toEqual([cure, behind]);
  expect(lab.sent).not.toContain(below);
});

test("E10-8: in replace mode an update and its opposite annihilate each other before they are sent", async () => {
  const { lab } = await busy();
  await lab.instances.setPolicy(lab.ref, { concurrency: "replace" }, lab.asks("anna"));
  await update(lab, '{"b":2}');
  expect((await lab.see()).queue).toHaveLength(2);
  const back = await lab.instances.update(lab.ref, { parameters: '{"b":1}' }, lab.asks("anna"));
  expect(back.kind).toBe("unchanged");
  expect((await lab.see()).queue).toHaveLength(1);
});

test("in replace mode updates of one author become one call, and never those of two", async () => {
  const { lab, first } = await busy();
  await lab.instances.setPolicy(lab.ref, { concurrency: "replace" }, lab.asks("anna"));
  await update(lab, '{"b":2}');
  await update(lab, '{"c":3}');
  await update(lab, '{"d":4}', "bert");
  const { queue } = await lab.see();
  expect(queue.map(({ author, summary }) => [author, summary])).toEqual([
    ["anna", "update /parameters/a"],
    ["anna", "update /parameters/b, /parameters/c"],
    ["bert", "update /parameters/d"],
  ]);
  expect(queue[0]?.operation).toBe(first);
  lab.answerAll();
  expect((await emptied(lab)).applied?.parameters).toBe('{"a":2,"b":2,"c":3,"d":4}');
});

test("E10-10: parameters that were made for a plan wait if the change to that plan failed", async () => {
  const lab = await ready();
  const plan = operationOf(await lab.instances.update(lab.ref, { plan: "large" }, lab.asks("anna")));
  await lab.until(() => lab.sent.includes(plan));
  const parameters = await update(lab, '{"shards":8}');
  lab.answer(plan, { kind: "refused" });
  await lab.until(async () => (await lab.see()).phase === "halted");
  expect(await held(lab)).toEqual([parameters]);
  expect((await lab.see()).failures).toMatchObject([{ operation: plan, paths: ["/plan"] }]);
});

test("E10-25: a refused delete leaves everything as it was: queue, order, phase", async () => {
  const { lab, first } = await busy();
  const second = await update(lab, '{"b":2}', "bert");
  const third = await update(lab, '{"c":3}', "carl");
  await lab.instances.hold(lab.ref, third, "not before Monday", lab.asks("carl"));
  const gone = operationOf(await lab.instances.delete(lab.ref, {}, lab.asks("dora")));
  expect(await lab.see()).toMatchObject({ phase: "deleting", desired: null });
  expect(await held(lab)).toEqual([second, third]);
  expect(await refusal(lab.instances.update(lab.ref, { parameters: '{"d":1}' }, lab.asks("anna")))).toMatchObject({
    code: "deleting",
  });
  lab.answer(first);
  await lab.until(() => lab.sent.includes(gone));
  lab.answer(gone, { kind: "refused", message: "protected" });
  await lab.until(async () => (await lab.see()).lastDelete !== null);
  const view = await lab.see();
  expect(view).toMatchObject({ lastDelete: { by: "dora", message: "protected", how: "rejected" } });
  expect(view.queue.map(({ operation }) => operation)).toEqual([second, third]);
  expect(await held(lab)).toEqual([third]);
  lab.answerAll();
  await lab.until(async () => (await lab.see()).queue.length === 1);
  await lab.instances.release(lab.ref, third, lab.asks("carl"));
  expect(await emptied(lab)).toMatchObject({ phase: "ready", applied: { parameters: '{"a":2,"b":2,"c":3}' } });
});

test("a delete that is done drops what waited behind it, and the name can be used again", async () => {
  const { lab, first } = await busy();
  const second = await update(lab, '{"b":2}', "bert");
  const gone = operationOf(await lab.instances.delete(lab.ref, {}, lab.asks("dora")));
  lab.answer(first);
  lab.answer(gone);
  expect(await emptied(lab)).toMatchObject({ phase: "gone", desired: null });
  expect((await lab.journal.operation("instance/s/i", second))?.status).toBe("cancelled");
  expect(lab.sent).not.toContain(second);
  const { revision, osbId } = await lab.see();
  lab.answerAll();
  await lab.instances.create(lab.ref, db, lab.asks("emil"));
  const again = await emptied(lab);
  expect(again).toMatchObject({ phase: "ready", createdBy: "emil" });
  expect(again.osbId).not.toBe(osbId);
  expect(again.revision).toBeGreaterThan(revision);
});

test("drain comes after all earlier ones, and after:N after one of them; a stronger delete takes the place of a weaker", async () => {
  const { lab, first } = await busy();
  const second = await update(lab, '{"b":2}', "bert");
  const third = await update(lab, '{"c":3}', "carl");
  const drain = operationOf(await lab.instances.delete(lab.ref, { mode: "drain" }, lab.asks("dora")));
  const order = async () => (await lab.see()).queue.map(({ operation }) => operation);
  expect(await order()).toEqual([first, second, third, drain]);
  const after = operationOf(await lab.instances.delete(lab.ref, { after: second }, lab.asks("dora")));
  expect(await order()).toEqual([first, second, after, third]);
  expect(await held(lab)).toEqual([third]);
  const weaker = await lab.instances.delete(lab.ref, { mode: "drain" }, lab.asks("emil"));
  expect(weaker).toMatchObject({ kind: "repeated", operation: after });
  const preempt = operationOf(await lab.instances.delete(lab.ref, {}, lab.asks("emil")));
  expect(await order()).toEqual([first, preempt, second, third]);
  expect(await held(lab)).toEqual([second, third]);
});

test("E10-23: a delete while the create is under way stops waiting for it", async () => {
  const lab = await queueLab();
  await lab.journal.start();
  const create = operationOf(await lab.instances.create(lab.ref, db, lab.asks("anna")));
  await lab.until(() => lab.sent.includes(create));
  const gone = operationOf(await lab.instances.delete(lab.ref, {}, lab.asks("anna")));
  await lab.until(() => lab.sent.includes(gone));
  lab.answer(gone);
  expect(await emptied(lab)).toMatchObject({ phase: "gone" });
  expect((await lab.journal.operation("instance/s/i", create))?.status).toBe("cancelled");
});

test("a delete waits for an update that is under way, unless it is to go out now", async () => {
  const { lab, first } = await busy();
  const gone = operationOf(await lab.instances.delete(lab.ref, { now: true }, lab.asks("anna")));
  await lab.until(() => lab.sent.includes(gone));
  expect((await lab.journal.operation("instance/s/i", first))?.status).toBe("cancelled");
});

test("E10-29: to abandon takes a reason, goes before a delete that hangs, and waits for no broker", async () => {
  const lab = await ready();
  const hangs = operationOf(await lab.instances.delete(lab.ref, {}, lab.asks("anna")));
  await lab.until(() => lab.sent.includes(hangs));
  expect(await refusal(lab.instances.delete(lab.ref, { mode: "abandon" }, lab.asks("anna")))).toMatchObject({
    code: "invalid",
  });
  const wanted = { mode: "abandon", reason: "the broker is no more" } as const;
  const abandon = operationOf(await lab.instances.delete(lab.ref, wanted, lab.asks("anna")));
  await lab.until(() => lab.sent.includes(abandon));
  lab.answer(abandon);
  expect(await emptied(lab)).toMatchObject({ phase: "abandoned" });
  expect((await lab.journal.operation("instance/s/i", hangs))?.status).toBe("cancelled");
});

test("a delete that was called off by a binding is retried with its bindings, another never takes any along", async () => {
  const lab = await ready();
  const refused = operationOf(await lab.instances.delete(lab.ref, {}, lab.asks("anna")));
  lab.answer(refused, { kind: "refused" });
  await emptied(lab);
  lab.answerAll();
  await lab.instances.bind(lab.ref, { name: "app" }, lab.asks("anna"));
  await emptied(lab);
  expect(await refusal(lab.instances.retry(lab.ref, refused, lab.asks("anna")))).toMatchObject({
    code: "has-bindings",
  });
});

test("a process that is killed loses nothing of a queue", async () => {
  const folder = await mkdtemp(join(tmpdir(), "osbert-queue-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const open = () => queueLab({ store: sqliteStore(join(folder, "platform.db")) });
  const before = await open();
  await before.instances.create(before.ref, { ...db, parameters: '{"a":1}' }, before.asks("anna"));
  await before.instances.update(before.ref, { parameters: '{"b":2}' }, before.asks("bert"));
  const third = operationOf(
    await before.instances.update(before.ref, { parameters: '{"c":3}' }, before.asks("carl", { idempotencyKey: "k" })),
  );
  await before.instances.hold(before.ref, third, "later", before.asks("carl"));
  const { queue, revision } = await before.see();
  await before.journal.kill();
  const after = await open();
  const seen = await after.see();
  expect(seen.revision).toBe(revision);
  expect(seen.queue.map(({ ageMs: _, ...rest }) => rest)).toEqual(queue.map(({ ageMs: _, ...rest }) => rest));
  const again = after.asks("carl", { idempotencyKey: "k" });
  expect(operationOf(await after.instances.update(after.ref, { parameters: '{"c":3}' }, again))).toBe(third);
  after.answerAll();
  await after.journal.start();
  await after.instances.release(after.ref, third, after.asks("carl"));
  expect((await emptied(after)).applied?.parameters).toBe('{"a":1,"b":2,"c":3}');
});

test("E10-28: a halted instance can be deleted", async () => {
  const { lab, first } = await busy();
  await update(lab, '{"c":1}');
  lab.answer(first, { kind: "refused", usable: false });
  await lab.until(async () => (await lab.see()).phase === "halted");
  expect(await refusal(lab.instances.bind(lab.ref, { name: "app" }, lab.asks("anna")))).toMatchObject({
    code: "preflight-failed",
  });
  lab.answerAll();
  await lab.instances.delete(lab.ref, {}, lab.asks("anna"));
  expect(await emptied(lab)).toMatchObject({ phase: "gone" });
});

test("E10-30: a delete can be undone until it was sent", async () => {
  const { lab, first } = await busy();
  const second = await update(lab, '{"b":2}', "bert");
  await lab.instances.delete(lab.ref, {}, lab.asks("dora"));
  await lab.instances.restore(lab.ref, lab.asks("dora"));
  const view = await lab.see();
  expect(view.queue.map(({ operation }) => operation)).toEqual([first, second]);
  expect(await held(lab)).toEqual([]);
  const again = operationOf(await lab.instances.delete(lab.ref, {}, lab.asks("dora")));
  lab.answer(first);
  await lab.until(() => lab.sent.includes(again));
  expect(await refusal(lab.instances.restore(lab.ref, lab.asks("dora")))).toMatchObject({ code: "too-late" });
});

test("E10-31, E10-32: what was not sent can be cancelled, and what counted on it waits; what was sent cannot", async () => {
  const { lab, first } = await busy();
  const second = await update(lab, '{"b":{"x":1}}', "bert");
  const third = operationOf(
    await lab.instances.update(lab.ref, { parameters: '{"c":3}', after: [second] }, lab.asks("carl")),
  );
  expect(await refusal(lab.instances.cancel(lab.ref, first, lab.asks("anna")))).toMatchObject({ code: "too-late" });
  await lab.instances.cancel(lab.ref, second, lab.asks("bert"));
  expect(await held(lab)).toEqual([third]);
  expect((await lab.see()).queue[1]?.heldFor).toContain("cancelled by bert");
  expect((await lab.see()).desired?.parameters).toBe('{"a":2,"b":1,"c":3}');
});

test("E10-33: a failed entry is retried as a new one that names the old", async () => {
  const { lab, first } = await busy();
  lab.answer(first, { kind: "refused" });
  await emptied(lab);
  lab.answerAll();
  const again = operationOf(await lab.instances.retry(lab.ref, first, lab.asks("bert")));
  expect(again).not.toBe(first);
  expect(await emptied(lab)).toMatchObject({ failures: [], applied: { parameters: '{"a":2,"b":1}' } });
  const lines = await lab.instances.journal(lab.ref);
  expect(lines.find(({ operation, family }) => operation === again && family === "intent")).toMatchObject({
    by: "bert",
    cause: first,
  });
});

test("E10-33: a create that failed is retried with a new id", async () => {
  const lab = await queueLab();
  await lab.journal.start();
  const create = operationOf(await lab.instances.create(lab.ref, { ...db, parameters: '{"a":1}' }, lab.asks("anna")));
  lab.answer(create, { kind: "refused" });
  await lab.until(async () => (await lab.see()).phase === "failed");
  const { osbId } = await lab.see();
  lab.answerAll();
  await lab.instances.retry(lab.ref, create, lab.asks("anna"));
  const view = await emptied(lab);
  expect(view).toMatchObject({ phase: "ready", failures: [], applied: { parameters: '{"a":1}' } });
  expect(view.osbId).not.toBe(osbId);
});

test("E10-34: the same request twice is one entry, by its key or by how soon it came", async () => {
  const { lab } = await busy();
  const first = await update(lab, '{"b":2}', "bert");
  expect(await lab.instances.update(lab.ref, { parameters: '{"b":2}' }, lab.asks("bert"))).toMatchObject({
    kind: "repeated",
    operation: first,
  });
  const keyed = lab.asks("carl", { idempotencyKey: "k" });
  const second = operationOf(await lab.instances.update(lab.ref, { parameters: '{"c":3}' }, keyed));
  await update(lab, '{"d":4}', "dora");
  expect(await lab.instances.update(lab.ref, { parameters: '{"c":3}' }, keyed)).toMatchObject({
    kind: "repeated",
    operation: second,
  });
  expect(await refusal(lab.instances.update(lab.ref, { parameters: '{"c":4}' }, keyed))).toMatchObject({
    code: "idempotency-conflict",
  });
  lab.answerAll();
  await emptied(lab);
  expect(operationOf(await lab.instances.update(lab.ref, { parameters: '{"c":3}' }, keyed))).toBe(second);
});

test("E10-35: what is so already is no entry; a refresh is", async () => {
  const lab = await ready();
  const { revision } = await lab.see();
  expect((await lab.instances.update(lab.ref, { parameters: '{"b":1}' }, lab.asks("anna"))).kind).toBe("unchanged");
  expect((await lab.see()).revision).toBe(revision);
  lab.answerAll();
  const refresh = operationOf(await lab.instances.refresh(lab.ref, lab.asks("anna")));
  await emptied(lab);
  expect(lab.sent).toContain(refresh);
});

test("the value that was there before frees what a failed update holds", async () => {
  const { lab, first } = await busy();
  await lab.instances.setPolicy(lab.ref, { onFailure: "halt" }, lab.asks("anna"));
  const second = await update(lab, '{"b":2}', "bert");
  lab.answer(first, { kind: "refused" });
  await lab.until(async () => (await lab.see()).phase === "halted");
  lab.answer(second);
  const back = await lab.instances.update(lab.ref, { parameters: '{"a":1}' }, lab.asks("anna"));
  expect(back.kind).toBe("unchanged");
  expect(await emptied(lab)).toMatchObject({ phase: "ready", failures: [], applied: { parameters: '{"a":1,"b":2}' } });
});

test("onFailure: halt holds all updates behind a failure, continue none", async () => {
  const { lab, first } = await busy();
  await lab.instances.setPolicy(lab.ref, { onFailure: "halt" }, lab.asks("anna"));
  const second = await update(lab, '{"b":2}');
  lab.answer(first, { kind: "refused" });
  await lab.until(async () => (await lab.see()).phase === "halted");
  expect(await held(lab)).toEqual([second]);
  await lab.instances.setPolicy(lab.ref, { onFailure: "continue" }, lab.asks("anna"));
  await lab.instances.release(lab.ref, second, lab.asks("anna"));
  await lab.until(() => lab.sent.includes(second));
  const third = await update(lab, '{"b":{"x":1}}');
  lab.answer(third);
  lab.answer(second, { kind: "refused" });
  expect((await emptied(lab)).applied?.parameters).toBe('{"a":1,"b":{"x":1}}');
});

test("concurrency: reject refuses a change while another is open, but not a delete", async () => {
  const { lab, first } = await busy();
  await lab.instances.setPolicy(lab.ref, { concurrency: "reject" }, lab.asks("anna"));
  expect(await refusal(lab.instances.update(lab.ref, { parameters: '{"b":2}' }, lab.asks("anna")))).toMatchObject({
    code: "busy",
    details: { open: [{ operation: first }] },
  });
  expect((await lab.instances.delete(lab.ref, {}, lab.asks("anna"))).kind).toBe("accepted");
});

test("fifty changes may be open, and a delete goes before them", async () => {
  const { lab } = await busy();
  for (let count = 2; count <= 50; count++) await update(lab, `{"p${count}":1}`);
  const full = await refusal(lab.instances.update(lab.ref, { parameters: '{"more":1}' }, lab.asks("anna")));
  expect(full).toMatchObject({ code: "too-many" });
  expect(full.details.open).toHaveLength(50);
  await lab.instances.delete(lab.ref, {}, lab.asks("anna"));
  expect((await lab.see()).queue[1]).toMatchObject({ op: "delete" });
});

test("a lock lets changes wait, or refuses them, and ends at its time", async () => {
  const lab = await ready();
  lab.answerAll();
  await lab.instances.lock(lab.ref, { reason: "audit" }, lab.asks("otto"));
  const waiting = await update(lab, '{"b":2}');
  expect(await held(lab)).toEqual([waiting]);
  expect((await lab.see()).queue[0]?.heldFor).toBe("it is locked by otto: audit");
  expect(await refusal(lab.instances.release(lab.ref, waiting, lab.asks("anna")))).toMatchObject({ code: "locked" });
  await lab.instances.unlock(lab.ref, lab.asks("otto"));
  await emptied(lab);
  await lab.instances.lock(lab.ref, { reason: "incident", effect: "reject" }, lab.asks("otto"));
  expect(await refusal(lab.instances.update(lab.ref, { parameters: '{"b":3}' }, lab.asks("anna")))).toMatchObject({
    code: "locked",
  });
  const until = lab.journal.now() + 200;
  await lab.instances.lock(lab.ref, { reason: "short", until }, lab.asks("otto"));
  await update(lab, '{"b":4}');
  expect(await emptied(lab)).toMatchObject({ lock: null, applied: { parameters: '{"a":1,"b":4}' } });
});

test("bindings go first: a delete is refused, takes them along, or is called off by one that cannot be unbound", async () => {
  const lab = await ready();
  lab.answerAll();
  await lab.instances.bind(lab.ref, { name: "one" }, lab.asks("anna"));
  await lab.instances.bind(lab.ref, { name: "two" }, lab.asks("anna"));
  await emptied(lab);
  expect(await refusal(lab.instances.bind(lab.ref, { name: "one" }, lab.asks("anna")))).toMatchObject({
    code: "exists",
  });
  expect(await refusal(lab.instances.delete(lab.ref, {}, lab.asks("anna")))).toMatchObject({
    code: "has-bindings",
    details: { bindings: ["one", "two"] },
  });
  lab.answerAll(null);
  const gone = operationOf(await lab.instances.delete(lab.ref, { cascade: true }, lab.asks("anna")));
  const [unbind, other, last] = (await lab.see()).queue.map(({ operation }) => operation);
  expect(last).toBe(gone);
  await update(lab, '{"b":2}').catch(() => undefined);
  lab.answer(unbind ?? "", { kind: "refused", message: "in use" });
  lab.answer(other ?? "");
  const view = await emptied(lab);
  expect(view).toMatchObject({ phase: "ready", lastDelete: { operation: gone, how: "blocked" } });
  expect(view.bindings).toMatchObject([{ phase: "unbind-rejected", message: "in use" }]);
  expect(lab.sent).not.toContain(gone);
  lab.answerAll();
  await lab.instances.delete(lab.ref, { cascade: true }, lab.asks("anna"));
  expect(await emptied(lab)).toMatchObject({ phase: "gone", bindings: [] });
});

test("a bind that was not sent is undone without a call, and one that failed can be tried again", async () => {
  const { lab, first } = await busy();
  const bind = operationOf(await lab.instances.bind(lab.ref, { name: "app" }, lab.asks("anna")));
  expect((await lab.instances.unbind(lab.ref, "app", lab.asks("anna"))).kind).toBe("unchanged");
  expect((await lab.see()).bindings).toEqual([]);
  expect(lab.sent).not.toContain(bind);
  lab.answer(first);
  await emptied(lab);
  const again = operationOf(await lab.instances.bind(lab.ref, { name: "app" }, lab.asks("anna")));
  lab.answer(again, { kind: "refused", message: "no room" });
  expect((await emptied(lab)).bindings).toMatchObject([{ name: "app", phase: "failed", message: "no room" }]);
  lab.answerAll();
  await lab.instances.retry(lab.ref, again, lab.asks("anna"));
  expect((await emptied(lab)).bindings).toMatchObject([{ name: "app", phase: "bound" }]);
});

test("a binding is rotated to a successor, and both know of each other", async () => {
  const lab = await ready();
  lab.answerAll();
  await lab.instances.update(lab.ref, { plan: "large" }, lab.asks("anna"));
  await lab.instances.bind(lab.ref, { name: "app" }, lab.asks("anna"));
  await emptied(lab);
  await lab.instances.rotate(lab.ref, "app", undefined, lab.asks("anna"));
  expect((await emptied(lab)).bindings).toMatchObject([
    { name: "app", phase: "bound", successor: "app.2" },
    { name: "app.2", phase: "bound", predecessor: "app" },
  ]);
});

test("an instance is adopted under its id at the broker", async () => {
  const lab = await queueLab();
  await lab.journal.start();
  lab.answerAll();
  await lab.instances.adopt(lab.ref, { ...db, osbId: "known" }, lab.asks("anna"));
  expect(await emptied(lab)).toMatchObject({ phase: "ready", osbId: "known", applied: { plan: { name: "small" } } });
});

test("an upgrade leads to the catalog's maintenance version", async () => {
  const lab = await ready();
  await lab.instances.update(lab.ref, { parameters: '{"z":1}' }, lab.asks("anna"));
  lab.answerAll();
  await emptied(lab);
  expect((await lab.instances.upgrade(lab.ref, undefined, lab.asks("anna"))).kind).toBe("unchanged");
  expect(await refusal(lab.instances.upgrade(lab.ref, "9.9.9", lab.asks("anna")))).toMatchObject({
    code: "preflight-failed",
  });
});

test("a dry run answers the report and the simulated end, and changes nothing", async () => {
  const { lab } = await busy();
  const before = await lab.see();
  const dry = await lab.instances.update(lab.ref, { plan: "large" }, lab.asks("anna", { dryRun: true }));
  expect(dry).toMatchObject({ kind: "dry run", report: { ok: true }, desired: { plan: { name: "large" } } });
  await lab.instances.delete(lab.ref, {}, lab.asks("anna", { dryRun: true }));
  expect((await lab.see()).revision).toBe(before.revision);
});

test("after tells what the instance will be after one operation of the queue", async () => {
  const { lab, first } = await busy();
  const second = await update(lab, '{"b":2}');
  await update(lab, '{"b":3}', "bert");
  expect((await lab.instances.after(lab.ref, first))?.parameters).toBe('{"a":2,"b":1}');
  expect((await lab.instances.after(lab.ref, second))?.parameters).toBe('{"a":2,"b":2}');
  expect((await lab.see()).desired?.parameters).toBe('{"a":2,"b":3}');
});

test("E10-42: a number beyond 2^53 and a null stay what they are, and nothing but the user's words is sent", async () => {
  const lab = await ready({}, '{"big":9007199254740993}');
  lab.answerAll();
  await update(lab, '{"none":null}');
  expect((await emptied(lab)).applied?.parameters).toBe('{"big":9007199254740993,"none":null}');
  expect((await lab.instances.update(lab.ref, { parameters: '{"big":9007199254740993}' }, lab.asks("a"))).kind).toBe(
    "unchanged",
  );
  expect((await lab.instances.update(lab.ref, { parameters: '{"big":9007199254740992}' }, lab.asks("a"))).kind).toBe(
    "accepted",
  );
});

test("what cannot be parameters is refused", async () => {
  const lab = await ready();
  const deep = `${'{"a":'.repeat(150)}1${"}".repeat(150)}`;
  for (const parameters of ["[]", "1", "{", '{"a":1,"a":2}', deep, `{"a":"${"x".repeat(300_000)}"}`])
    expect(await refusal(lab.instances.update(lab.ref, { parameters }, lab.asks("anna")))).toMatchObject({
      code: "invalid",
    });
  expect(await refusal(lab.instances.read({ space: "s/../t", name: "i" }))).toMatchObject({ code: "invalid" });
});

test("the journal is followed as it grows, in words, and shows no value of a parameter", async () => {
  const lab = await ready({}, '{"password":"hush"}');
  const stop = new AbortController();
  const lines: string[] = [];
  const following = (async () => {
    for await (const { family, summary, payload } of lab.instances.follow(lab.ref, 0, stop.signal))
      lines.push(`${family}: ${summary} ${JSON.stringify(payload)}`);
  })();
  lab.answerAll();
  await update(lab, '{"password":"psst"}', "bert");
  await lab.until(() => lines.filter((line) => line.startsWith("outcome")).length === 2);
  stop.abort();
  await following;
  expect(lines.find((line) => line.includes("bert wants: update /parameters/password"))).toBeDefined();
  expect(lines.join("\n")).not.toMatch(/hush|psst/);
});

test("instances are listed by space, broker and phase; what is gone is not", async () => {
  const lab = await ready();
  const list = (query: object) => lab.instances.list(query).then(({ items }) => items.map(({ name }) => name));
  expect(await list({ space: "s" })).toEqual(["i"]);
  expect(await list({ broker: "b" })).toEqual(["i"]);
  expect(await list({ space: "t" })).toEqual([]);
  expect(await list({ phase: "failed" })).toEqual([]);
  lab.answerAll();
  await lab.instances.delete(lab.ref, {}, lab.asks("anna"));
  await emptied(lab);
  expect(await list({ space: "s" })).toEqual([]);
  expect(await list({ space: "s", phase: "gone" })).toEqual(["i"]);
});

test("what is told of an accepted change, without a read, is what a read tells", async () => {
  const lab = await queueLab();
  const { instances, ref } = lab;
  const still = ({ queue, ...rest }: InstanceView) => ({ ...rest, queue: queue.map(({ ageMs: _, ...one }) => one) });
  const asked = [
    () => instances.create(ref, { ...db, parameters: '{"a":1}' }, lab.asks("anna")),
    () => instances.update(ref, { parameters: '{"b":2}' }, lab.asks("bert", { idempotencyKey: "k" })),
    () => instances.update(ref, { parameters: '{"b":2}' }, lab.asks("bert", { idempotencyKey: "k" })),
    () => instances.update(ref, { parameters: '{"b":2}' }, lab.asks("carl")),
    () => instances.bind(ref, { name: "q" }, lab.asks("anna")),
    () => instances.bind(ref, { name: "p" }, lab.asks("anna")),
    () => instances.unbind(ref, "q", lab.asks("anna")),
    () => instances.delete(ref, {}, lab.asks("anna")),
  ];
  const kinds: string[] = [];
  for (const ask of asked) {
    const admitted = await ask();
    kinds.push(admitted.kind);
    if (admitted.kind !== "dry run") expect(still(admitted.instance)).toEqual(still(await lab.see()));
  }
  expect(kinds).toEqual([
    "accepted",
    "accepted",
    "repeated",
    "unchanged",
    "accepted",
    "accepted",
    "unchanged",
    "accepted",
  ]);
});

test("what is to come after a bind waits if the bind fails", async () => {
  const lab = await ready();
  const bind = operationOf(await lab.instances.bind(lab.ref, { name: "app" }, lab.asks("anna")));
  const wanted = { parameters: '{"b":2}', after: [bind] };
  const waiting = operationOf(await lab.instances.update(lab.ref, wanted, lab.asks("anna")));
  await lab.until(() => lab.sent.includes(bind));
  lab.answer(bind, { kind: "refused", message: "no room" });
  await lab.until(async () => (await lab.see()).queue.length === 1);
  expect(await held(lab)).toEqual([waiting]);
  expect((await lab.see()).queue[0]?.heldFor).toBe("bind failed: no room");
});
