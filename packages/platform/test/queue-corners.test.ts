import { memoryStore } from "@osbert/journal/memory";
import { expect, test } from "vitest";
import { admitCreate, type WantedInstance } from "../src/decisions/admit-create.js";
import { askedBefore, type Desk } from "../src/decisions/desk.js";
import { type Holds, withHold } from "../src/decisions/queue-state.js";
import { unmanage } from "../src/decisions/unmanage.js";
import { instanceLabels, osbIdLabel, osbIdLabelName } from "../src/records/instance-labels.js";
import { type BindingRecord, instances } from "../src/records/instance-record.js";
import { type QueueLab, queueLab } from "./queue-lab.js";
import { db, emptied, held, operationOf, ready, refusal, sent, update } from "./queue-stories.js";

test("E10-31: who cancels the second attempt of a create is back where the first one failed, and nobody else's wish is lost", async () => {
  const lab = await queueLab();
  await lab.journal.start();
  const create = await sent(lab, lab.instances.create(lab.ref, db, lab.asks("anna")));
  const waiting = await update(lab, '{"b":2}', "bert");
  lab.answer(create, { kind: "refused" });
  await lab.until(async () => (await lab.see()).phase === "failed");
  await lab.instances.lock(lab.ref, { reason: "audit" }, lab.asks("otto"));
  const again = operationOf(await lab.instances.retry(lab.ref, create, lab.asks("anna")));
  await lab.instances.cancel(lab.ref, again, lab.asks("anna"));
  expect(await lab.see()).toMatchObject({ phase: "failed", queue: [{ operation: waiting, state: "held" }] });
});

test("an unbind that a delete waits for cannot be held: the delete would go before it", async () => {
  const lab = await ready();
  lab.answer(operationOf(await lab.instances.bind(lab.ref, { name: "app" }, lab.asks("anna"))));
  await emptied(lab);
  await sent(lab, lab.instances.update(lab.ref, { parameters: '{"a":2}' }, lab.asks("anna")));
  await lab.instances.delete(lab.ref, { cascade: true }, lab.asks("anna"));
  const unbind = (await lab.see()).queue.find(({ op }) => op === "unbind")?.operation ?? "";
  expect(await refusal(lab.instances.hold(lab.ref, unbind, "later", lab.asks("anna")))).toMatchObject({
    code: "deleting",
  });
});

test("a correction does not go before what was sent while nobody is at it", async () => {
  const store = memoryStore();
  const before = await ready({ store });
  const failed = await sent(
    before,
    before.instances.update(before.ref, { parameters: '{"a":2}' }, before.asks("anna")),
  );
  before.answer(failed, { kind: "refused" });
  await emptied(before);
  before.fallSilent();
  const first = await sent(before, before.instances.update(before.ref, { parameters: '{"b":2}' }, before.asks("anna")));
  await before.journal.stop({ drainMs: 0 });
  const lab = await queueLab({ store });
  const cure = await update(lab, '{"a":3}');
  expect((await lab.see()).queue.map(({ operation }) => operation)).toEqual([first, cure]);
});

test("a binding whose bind failed while its unbind was queued is counted once", async () => {
  const lab = await ready();
  lab.answer(operationOf(await lab.instances.bind(lab.ref, { name: "kept" }, lab.asks("anna"))));
  await emptied(lab);
  const bind = await sent(lab, lab.instances.bind(lab.ref, { name: "app" }, lab.asks("anna")));
  const unbind = operationOf(await lab.instances.unbind(lab.ref, "app", lab.asks("anna")));
  lab.answer(unbind);
  lab.answer(bind, { kind: "refused" });
  await emptied(lab);
  const { items } = await lab.instances.list({ space: "s" });
  expect(items).toMatchObject([{ bindings: 1 }]);
});

test("bindings that failed are bounded, too: an instance with too many of them could not be read any more", async () => {
  const lab = await ready();
  const record: BindingRecord = {
    ...{ id: "x", osbId: "x", phase: "failed", createdBy: "anna", createdAt: 0, parameters: null, appGuid: null },
    ...{ answer: null, expiresAt: null, renewBefore: null, predecessor: null, successor: null, message: "no" },
  };
  const failed = Array.from({ length: 200 }, (_, number) => instances.part(`binding/f${number}`, record));
  const write = instances.decide(() => ({ result: null, change: { parts: Object.assign({}, ...failed) } }));
  await lab.journal.transact("instance/s/i", write, lab.asks("anna"));
  expect(await refusal(lab.instances.bind(lab.ref, { name: "more" }, lab.asks("anna")))).toMatchObject({
    code: "too-many",
    message: expect.stringContaining("failed"),
  });
  expect((await lab.instances.unbind(lab.ref, "f7", lab.asks("anna"))).kind).toBe("unchanged");
  expect((await lab.instances.bind(lab.ref, { name: "more" }, lab.asks("anna"))).kind).toBe("accepted");
});

test("a lock that deletes are not exempt from keeps an instance from being abandoned, and nothing is ended", async () => {
  const lab = await ready();
  const first = await sent(lab, lab.instances.update(lab.ref, { parameters: '{"a":2}' }, lab.asks("anna")));
  await lab.instances.lock(lab.ref, { reason: "audit" }, lab.asks("otto"));
  const asked = lab.instances.delete(lab.ref, { mode: "abandon", reason: "no more" }, lab.asks("anna"));
  expect(await refusal(asked)).toMatchObject({ code: "locked" });
  expect((await lab.see()).queue.map(({ operation }) => operation)).toEqual([first]);
});

test("E5: a refused delete that leaves the instance unusable holds what is queued until an update has cured it", async () => {
  const lab = await ready();
  const first = await sent(lab, lab.instances.update(lab.ref, { parameters: '{"a":2}' }, lab.asks("anna")));
  const second = await update(lab, '{"b":2}', "bert");
  const gone = operationOf(await lab.instances.delete(lab.ref, {}, lab.asks("anna")));
  lab.answer(gone, { kind: "refused", usable: false });
  lab.answer(first);
  await lab.until(async () => (await lab.see()).lastDelete !== null);
  expect(await lab.see()).toMatchObject({ phase: "halted" });
  expect(await held(lab)).toEqual([second]);
  lab.answerAll();
  await update(lab, '{"c":3}');
  expect(await emptied(lab)).toMatchObject({ phase: "ready", applied: { parameters: '{"a":2,"b":2,"c":3}' } });
});

test("E10-33: a create that failed and was corrected since is not retried over what is there", async () => {
  const lab = await queueLab();
  await lab.journal.start();
  const create = await sent(lab, lab.instances.create(lab.ref, db, lab.asks("anna")));
  lab.answer(create, { kind: "refused" });
  await lab.until(async () => (await lab.see()).phase === "failed");
  lab.answerAll();
  await update(lab, '{"a":2}');
  await emptied(lab);
  expect(await refusal(lab.instances.retry(lab.ref, create, lab.asks("anna")))).toMatchObject({ code: "too-late" });
  expect(await lab.see()).toMatchObject({ queue: [], applied: { parameters: '{"a":2,"b":1}' } });
});

test("E10-34: what is being called off is not the same request: who asks again means it", () => {
  const operation = { id: "1-a", acceptedAt: 0, brief: { asked: "hash" }, cancelled: false };
  const desk = (cancelled: boolean) =>
    ({
      request: { by: "anna", asked: "hash", keyPart: null, inputs: new Map([["1-a", { by: "anna", input: {} }]]) },
      queue: [{ ...operation, cancelled }],
      now: 1_000,
    }) as unknown as Desk;
  expect(askedBefore(desk(false))).toEqual({ kind: "repeated", operation: "1-a" });
  expect(askedBefore(desk(true))).toBeUndefined();
});

test("an unbind that a delete waits for cannot be cancelled: the delete would go out with the binding still there", async () => {
  const lab = await ready();
  lab.answer(operationOf(await lab.instances.bind(lab.ref, { name: "app" }, lab.asks("anna"))));
  await emptied(lab);
  await sent(lab, lab.instances.update(lab.ref, { parameters: '{"a":2}' }, lab.asks("anna")));
  await lab.instances.delete(lab.ref, { cascade: true }, lab.asks("anna"));
  const unbind = (await lab.see()).queue.find(({ op }) => op === "unbind")?.operation ?? "";
  expect(await refusal(lab.instances.cancel(lab.ref, unbind, lab.asks("anna")))).toMatchObject({ code: "deleting" });
});

test("what others are to come after is not held: they would come before it", async () => {
  const lab = await ready();
  await sent(lab, lab.instances.update(lab.ref, { parameters: '{"a":2}' }, lab.asks("anna")));
  const first = await update(lab, '{"b":2}', "bert");
  await lab.instances.delete(lab.ref, { mode: "after", after: first }, lab.asks("dora"));
  expect(await refusal(lab.instances.hold(lab.ref, first, "later", lab.asks("bert")))).toMatchObject({ code: "busy" });
});

test("an instance whose create was sent is not created anew at another broker, where nobody knows its id", () => {
  const id = "sent-before";
  const data = {
    phase: "failed",
    applied: null,
    broker: "a",
    offering: { id: "o", name: "o" },
    osbId: id,
    id: "i",
    held: {},
  };
  const desk = {
    request: { keyPart: null, asked: "hash", by: "anna", ifMatch: null },
    data,
    queue: [],
    holds: {},
  } as unknown as Desk;
  const wanted = { broker: "b", offering: { id: "o", name: "o" }, osbId: null } as unknown as WantedInstance;
  expect(() => admitCreate(desk, wanted)).toThrow(/abandon that before/);
});

test("reasons to be held do not add up until the instance is too large to be kept", () => {
  let holds: Holds = {};
  for (let failure = 0; failure < 500; failure++)
    holds = withHold(holds, ["one"], { kind: "failure", operation: `${failure}-x`, message: "no ".repeat(400) });
  expect(JSON.stringify(holds).length).toBeLessThan(15_000);
  expect(holds.one?.at(-1)).toMatchObject({ operation: "499-x" });
});

test("an unmanaged instance keeps its id from being adopted by another, and no broker from being removed", () => {
  const data = { broker: "b", phase: "unmanaged" as const, applied: null, osbId: "x", adoptingId: null };
  const labels = instanceLabels(data);
  expect(labels).toHaveProperty(osbIdLabelName);
  expect(labels).not.toHaveProperty("broker");
});

test("E10-13: instances of a broker are listed by its name in the order of their keys, a page at a time, whether they are managed or not", async () => {
  const lab = await ready();
  const names = Array.from({ length: 12 }, (_, number) => `i${String(number).padStart(2, "0")}`);
  for (const name of names)
    await lab.instances.create({ space: "s", name }, { offering: "db", plan: "small" }, lab.asks("anna"));
  const take = instances.decide((resource, now) => {
    const left = resource === undefined ? undefined : unmanage(resource, "olga", "https://b.test", now);
    return { result: null, ...(left !== undefined && { change: left }) };
  });
  const seen = { ...lab.asks("olga"), partsUnder: ["binding/"], open: "all" } as const;
  // Three of four, so that a page is full of one kind before the other has ended.
  for (const [number, name] of names.entries())
    if (number % 4 !== 0) await lab.journal.transact(`instance/s/${name}`, take, seen);
  for (const limit of [1, 2, 5, 100]) {
    const listed: string[] = [];
    for (let after: string | undefined; ; ) {
      const page = await lab.instances.list({ broker: "b", limit, ...(after !== undefined && { after }) });
      expect(page.items.length).toBeLessThanOrEqual(limit);
      listed.push(...page.items.map(({ name }) => name));
      if (page.next === null) break;
      after = page.next;
    }
    expect(listed).toEqual(["i", ...names]);
  }
  expect((await lab.instances.list({ broker: "b", phase: "unmanaged" })).items).toHaveLength(9);
});

test.each([
  {
    next: "its next change",
    ask: (lab: QueueLab) => lab.instances.lock(lab.ref, { reason: "not now" }, lab.asks("olga")),
    found: { phase: "unmanaged" },
  },
  {
    next: "its adoption",
    ask: async (lab: QueueLab) => {
      const osbId = (await lab.see()).osbId ?? "";
      lab.answerAll();
      await lab.instances.adopt(lab.ref, { offering: "db", plan: "small", osbId }, lab.asks("olga"));
      await lab.instances.setPolicy(lab.ref, { onFailure: "halt" }, lab.asks("olga"));
      await emptied(lab);
    },
    found: { phase: "ready" },
  },
])(
  "E10-13: an instance that was unmanaged before such ones had labels is read, and found by its broker from $next on",
  async ({ ask, found }) => {
    const lab = await ready();
    const take = instances.decide((resource, now) => {
      const left = resource === undefined ? undefined : unmanage(resource, "olga", "https://b.test", now);
      if (left?.data == null) throw new Error("there is nothing to leave");
      const { leftAtUrl: _leftAtUrl, ...data } = left.data;
      return {
        result: null,
        change: { ...left, data, labels: { [osbIdLabelName]: osbIdLabel("b", data.osbId ?? "") } },
      };
    });
    await lab.journal.transact("instance/s/i", take, { ...lab.asks("olga"), partsUnder: ["binding/"], open: "all" });
    const older = [{ name: "i", phase: "unmanaged" }];
    expect((await lab.instances.list({ broker: "b" })).items).toEqual([]);
    expect((await lab.instances.list({ space: "s", broker: "b", phase: "unmanaged" })).items).toMatchObject(older);
    expect((await lab.instances.list({})).items).toMatchObject(older);
    await ask(lab);
    expect((await lab.instances.list({ broker: "b" })).items).toMatchObject([found]);
  },
);

test.each([
  { plan: "small", kept: { parameters: db.parameters, maintenance: "1.0.0" } },
  { plan: "large", kept: { parameters: null, maintenance: null } },
])(
  "E10-13: what is known of an unmanaged instance stays when it is adopted again as $plan, if that is what it was",
  async ({ plan, kept }) => {
    const lab = await ready();
    const dashboardUrl = "https://dashboard.test";
    const take = instances.decide((resource, now) => {
      const left = resource === undefined ? undefined : unmanage(resource, "olga", "https://b.test", now);
      if (left?.data == null) throw new Error("there is nothing to leave");
      return { result: null, change: { ...left, data: { ...left.data, dashboardUrl } } };
    });
    await lab.journal.transact("instance/s/i", take, { ...lab.asks("olga"), partsUnder: ["binding/"], open: "all" });
    const { phase, osbId } = await lab.see();
    expect(phase).toBe("unmanaged");
    // It keeps no broker from being removed, and is found by it all the same, by whoever asks what the removal has left.
    const { items } = await lab.instances.list({ broker: "b", phase: "unmanaged" });
    expect(items).toMatchObject([{ name: "i", phase: "unmanaged" }]);
    const wanted = { offering: "db", plan, osbId: osbId ?? "" };
    const adopt = operationOf(await lab.instances.adopt(lab.ref, wanted, lab.asks("olga")));
    // While it is open, what is queued behind it builds on the same.
    expect((await lab.see()).desired).toMatchObject(kept);
    lab.answer(adopt);
    expect(await emptied(lab)).toMatchObject({
      phase: "ready",
      applied: { plan: { name: plan }, ...kept },
      dashboardUrl,
    });
  },
);

test("E10-3: a create over one that failed has the policies that it names, and keeps the others", async () => {
  const lab = await queueLab();
  await lab.journal.start();
  const policy = { onFailure: "halt" } as const;
  lab.answer(operationOf(await lab.instances.create(lab.ref, { ...db, policy }, lab.asks("anna"))), {
    kind: "refused",
  });
  await lab.until(async () => (await lab.see()).phase === "failed");
  await lab.instances.create(lab.ref, { ...db, policy: { orphans: "hold" } }, lab.asks("bert"));
  expect((await lab.see()).policy).toEqual({ onFailure: "halt", concurrency: "queue", orphans: "hold" });
});

test("credentials that will never be there are not told as if they were to come", async () => {
  const lab = await ready();
  const bind = operationOf(await lab.instances.bind(lab.ref, { name: "app" }, lab.asks("anna")));
  expect(await refusal(lab.instances.credentials(lab.ref, "app"))).toMatchObject({ code: "unavailable" });
  lab.answer(bind, { kind: "refused" });
  await emptied(lab);
  expect(await refusal(lab.instances.credentials(lab.ref, "app"))).toMatchObject({
    code: "not-found",
    message: "the binding app has no credentials: it is failed",
  });
  lab.answer(operationOf(await lab.instances.bind(lab.ref, { name: "old" }, lab.asks("anna"))));
  await emptied(lab);
  const expire = instances.decide((resource) => {
    const record = resource?.parts.get("binding/old");
    if (record === undefined) throw new Error("there is no binding");
    return {
      result: null,
      change: { parts: instances.part("binding/old", { ...record, expiresAt: "2020-01-01T00:00:00Z" }) },
    };
  });
  await lab.journal.transact("instance/s/i", expire, { ...lab.asks("anna"), parts: ["binding/old"] });
  expect(await refusal(lab.instances.credentials(lab.ref, "old"))).toMatchObject({
    code: "not-found",
    message: expect.stringContaining("expired"),
  });
});

test("a dry run of whatever it is changes nothing: not of a retry, nor of a lock with an end", async () => {
  const lab = await ready();
  const open = await sent(lab, lab.instances.update(lab.ref, { parameters: '{"a":2}' }, lab.asks("anna")));
  await lab.journal.stop({ drainMs: 0 });
  const other = await queueLab({ store: lab.store, before: lab });
  const seqs = () =>
    Promise.all(["instance/s/i", "unlock/s/i"].map(async (key) => (await other.journal.read(key))?.seq));
  const before = await seqs();
  const dry = other.asks("anna", { dryRun: true });
  expect(await other.instances.retry(other.ref, open, dry)).toMatchObject({
    kind: "dry run",
    report: { ok: true },
    desired: { parameters: '{"a":2,"b":1}' },
  });
  await other.instances.lock(other.ref, { reason: "audit", until: other.journal.now() + 60_000 }, dry);
  expect(await seqs()).toEqual(before);
});

test("what is gone, too, is found by its broker, by whoever asks for that", async () => {
  const lab = await ready();
  lab.answerAll();
  await lab.instances.delete(lab.ref, {}, lab.asks("anna"));
  await lab.until(async () => (await lab.see()).phase === "gone");
  expect((await lab.instances.list({ broker: "b", phase: "gone" })).items).toMatchObject([{ name: "i" }]);
  expect((await lab.instances.list({ broker: "other", phase: "gone" })).items).toEqual([]);
  expect((await lab.instances.list({ broker: "b" })).items).toEqual([]);
});
