import { expect, test } from "vitest";
import type { Admitted } from "../src/index.js";
import { catalogOf, catalogServer } from "./catalog-server.js";
import { anna, olga, platformInTime } from "./platform-in-time.js";
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

const small = { offering: "postgres", plan: "small" } as const;

async function withBroker() {
  const catalog = catalogOf({ postgres: ["small", "large"] });
  Object.assign(catalog.services[0] as object, { instances_retrievable: true, plan_updateable: true });
  const server = await catalogServer({ catalog });
  const lab = await platformInTime(server);
  const ref = { space: "space", name: "i" };
  const became = (phase: string) => lab.passUntil(100, async () => (await lab.read(ref)).phase === phase);
  const ended = (admitted: Admitted) =>
    lab.passUntil(
      100,
      async () => (await lab.platform.instances.operation(ref, operationOf(admitted)))?.state !== "open",
    );
  const removeBroker = async () => {
    let isRemoved = false;
    const removing = lab.platform.brokers.remove("acme", { force: true }, olga).finally(() => {
      isRemoved = true;
    });
    await lab.passUntil(10, () => isRemoved);
    await removing;
  };
  return {
    ...lab,
    server,
    ref,
    became,
    ended,
    removeBroker,
    instances: lab.platform.instances,
    brokers: lab.platform.brokers,
  };
}

const keyed = (idempotencyKey: string) => ({ ...anna, idempotencyKey });

test("a create, an update and an adoption find what they began when their broker was removed since", async () => {
  const { instances, ref, became, ended, removeBroker, read } = await withBroker();
  const create = () => instances.create(ref, small, keyed("c"));
  const created = await create();
  await became("ready");
  const update = () => instances.update(ref, { plan: "large" }, keyed("u"));
  const updated = await update();
  await ended(updated);
  const { osbId } = await read(ref);
  const adopt = () => instances.adopt(ref, { ...small, osbId: osbId ?? "" }, keyed("a"));
  await instances.delete(ref, { mode: "abandon", reason: "moved" }, olga);
  await became("abandoned");
  const adopted = await adopt();
  await became("ready");
  await removeBroker();
  for (const [again, first] of [
    [await create(), created],
    [await update(), updated],
    [await adopt(), adopted],
  ] as const)
    expect(again).toMatchObject({
      kind: "repeated",
      operation: operationOf(first),
      instance: { phase: "unmanaged" },
    });
  // Without the key, with another, or with another body it is a new request.
  expect(await refusal(instances.create(ref, small, anna))).toMatchObject({ code: "not-found" });
  expect(await refusal(instances.create(ref, small, keyed("other")))).toMatchObject({ code: "not-found" });
  const other = instances.create(ref, { ...small, plan: "large" }, keyed("c"));
  expect(await refusal(other)).toMatchObject({ code: "idempotency-conflict" });
});

test("so do they when their plan is gone, or another broker has an offering of the same name", async () => {
  const { instances, brokers, server, ref, became, ended } = await withBroker();
  const create = () => instances.create(ref, small, keyed("c"));
  const created = await create();
  await became("ready");
  const update = () => instances.update(ref, { plan: "large" }, keyed("u"));
  const updated = await update();
  await ended(updated);
  await brokers.register("twin", { url: server.url, authentication: { kind: "none" } }, olga);
  expect(await create()).toMatchObject({ kind: "repeated", operation: operationOf(created) });
  await brokers.remove("twin", {}, olga);
  await instances.delete(ref, {}, anna);
  await became("gone");
  server.catalog = catalogOf({ redis: ["tiny"] });
  await brokers.relist("acme", olga);
  expect(await create()).toMatchObject({ kind: "repeated", operation: operationOf(created) });
  expect(await update()).toMatchObject({ kind: "repeated", operation: operationOf(updated) });
});

test("so does an adoption when somebody else has the instance by now", async () => {
  const { instances, ref, became, read } = await withBroker();
  await instances.create(ref, small, anna);
  await became("ready");
  const osbId = (await read(ref)).osbId ?? "";
  const adopt = (name: string) => instances.adopt({ ...ref, name }, { ...small, osbId }, keyed(name));
  await instances.delete(ref, { mode: "abandon", reason: "moved" }, olga);
  await became("abandoned");
  const adopted = await adopt("i");
  await became("ready");
  await instances.delete(ref, { mode: "abandon", reason: "moved" }, olga);
  await became("abandoned");
  await adopt("other");
  expect(await adopt("i")).toMatchObject({ kind: "repeated", operation: operationOf(adopted) });
});

test("so does the retry of a create when the instance is there, and when its broker is gone", async () => {
  const { instances, server, ref, became, removeBroker } = await withBroker();
  server.reply = () => ({ status: 400, body: { description: "no" } });
  const failed = operationOf(await instances.create(ref, small, anna));
  await became("failed");
  server.reply = undefined;
  const retry = () => instances.retry(ref, failed, keyed("r"));
  const retried = await retry();
  await became("ready");
  expect(await retry()).toMatchObject({ kind: "repeated", operation: operationOf(retried) });
  await removeBroker();
  expect(await retry()).toMatchObject({ kind: "repeated", operation: operationOf(retried) });
});

test("so does the retry of a delete that was to take bindings along", async () => {
  const lab = await ready();
  const bind = operationOf(await lab.instances.bind(lab.ref, { name: "app" }, lab.asks("anna")));
  lab.answer(bind);
  await emptied(lab);
  lab.answerAll({ kind: "refused" });
  const failed = operationOf(await lab.instances.delete(lab.ref, { cascade: true }, lab.asks("anna")));
  await emptied(lab);
  expect(await lab.see()).toMatchObject({ lastDelete: { operation: failed, how: "blocked" } });
  const retry = () => lab.instances.retry(lab.ref, failed, lab.asks("anna", { idempotencyKey: "r" }));
  const retried = operationOf(await retry());
  expect(retried).not.toBe(failed);
  await emptied(lab);
  expect(await retry()).toMatchObject({ kind: "repeated", operation: retried });
});
