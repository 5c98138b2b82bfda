import { expect, test } from "vitest";
import { emptied, operationOf, ready, refusal, sent, update } from "./queue-stories.js";

// E2: the answer to a request was lost, and it is sent again with the same idempotency key.

test("an unbind of what was never sent is done at once, and is so when it is asked for again", async () => {
  const lab = await ready();
  await sent(lab, lab.instances.update(lab.ref, { parameters: '{"a":2}' }, lab.asks("anna")));
  await lab.instances.bind(lab.ref, { name: "app" }, lab.asks("anna"));
  const unbind = () => lab.instances.unbind(lab.ref, "app", lab.asks("anna", { idempotencyKey: "k" }));
  expect(await unbind()).toMatchObject({ kind: "unchanged" });
  expect(await unbind()).toMatchObject({ kind: "unchanged", instance: { bindings: [] } });
});

test("so is the unbind of a binding that failed", async () => {
  const lab = await ready();
  lab.answer(operationOf(await lab.instances.bind(lab.ref, { name: "app" }, lab.asks("anna"))), { kind: "refused" });
  await emptied(lab);
  const unbind = () => lab.instances.unbind(lab.ref, "app", lab.asks("anna", { idempotencyKey: "k" }));
  expect(await unbind()).toMatchObject({ kind: "unchanged" });
  expect(await unbind()).toMatchObject({ kind: "unchanged" });
  // The key is that of one request.
  const other = lab.instances.unbind(lab.ref, "other", lab.asks("anna", { idempotencyKey: "k" }));
  expect(await refusal(other)).toMatchObject({ code: "idempotency-conflict" });
});

test("so is an update that corrects a failure by what is so already", async () => {
  const lab = await ready();
  lab.answer(await update(lab, '{"a":2}'), { kind: "refused" });
  await emptied(lab);
  const asks = lab.asks("anna", { idempotencyKey: "k" });
  const correct = () => lab.instances.update(lab.ref, { parameters: '{"a":1}' }, asks);
  expect(await correct()).toMatchObject({ kind: "unchanged", instance: { failures: [] } });
  expect(await correct()).toMatchObject({ kind: "unchanged" });
});

test("a delete finds what it began when the instance is gone, and so does what was done before it", async () => {
  const lab = await ready();
  lab.answerAll();
  const keyed = (idempotencyKey: string) => lab.asks("anna", { idempotencyKey });
  const asked = {
    update: () => lab.instances.update(lab.ref, { parameters: '{"a":2}' }, keyed("u")),
    bind: () => lab.instances.bind(lab.ref, { name: "app" }, keyed("b")),
    unbind: () => lab.instances.unbind(lab.ref, "app", keyed("n")),
    delete: () => lab.instances.delete(lab.ref, {}, keyed("d")),
  };
  const first = new Map<string, string>();
  for (const [name, ask] of Object.entries(asked)) {
    first.set(name, operationOf(await ask()));
    await emptied(lab);
  }
  expect(await lab.see()).toMatchObject({ phase: "gone" });
  for (const [name, ask] of Object.entries(asked))
    expect(await ask(), name).toMatchObject({
      kind: "repeated",
      operation: first.get(name),
      instance: { phase: "gone" },
    });
  expect(await refusal(lab.instances.delete(lab.ref, {}, lab.asks("anna")))).toMatchObject({ code: "not-found" });
});
