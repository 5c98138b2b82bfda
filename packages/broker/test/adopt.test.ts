import { expect, test } from "vitest";
import type { AdoptedInstance } from "../src/admin/index.js";
import type { ServiceSource } from "../src/index.js";
import type { TestBroker } from "../src/testing/index.js";
import { bound, expectRefusal, flowOn, ids, lab, ready, unchanged } from "./lab.js";

const by = { operator: "ops", reason: "from the broker before", requestId: null };
const sync = { acceptsIncomplete: false };

const before: AdoptedInstance = {
  ...{ serviceId: ids.service, planId: ids.small, revision: null },
  ...{ organizationGuid: null, spaceGuid: null },
  ...{ context: { platform: "kubernetes", namespace: "shop" }, parameters: { size: 2 } },
};

function adopt(flow: TestBroker, adopted: Partial<AdoptedInstance> = {}, dryRun = false) {
  return flow.broker.operator.adopt({ platform: "", instance: "i1" }, { ...before, ...adopted }, by, dryRun);
}

test("an adopted instance is fetched, repeated, updated, bound and deleted as if it had been made here, and nothing was done for it before", async () => {
  const laboratory = lab();
  const flow = await flowOn("fastify", laboratory);
  expect(await adopt(flow)).toBe("adopted");
  expect(laboratory.done).toEqual([]);
  expect((await flow.fetch("i1")).body).toMatchObject({ plan_id: ids.small, parameters: { size: 2 } });
  expect((await flow.provision("i1", { parameters: { size: 2 } })).status).toBe(200);
  expect(laboratory.done).toEqual([]);
  expect((await flow.update("i1", { ...sync, parameters: { size: 3 } })).status).toBe(200);
  await bound(flow, "i1", "b1");
  expect((await flow.unbind("i1", "b1", sync)).status).toBe(200);
  expect((await flow.deprovision("i1", sync)).status).toBe(200);
  expect(laboratory.done).toEqual([
    'update i1 small {"size":3}',
    "bind b1",
    'unbind b1 {"user":"b1"}',
    "deprovision i1",
  ]);
});

test("who asks for an adopted instance with other parameters or another plan gets a conflict", async () => {
  const flow = await flowOn("fastify", lab());
  await adopt(flow);
  expectRefusal(await flow.provision("i1", { parameters: { size: 9 } }), 409);
  expectRefusal(await flow.provision("i1", { plan: "large", parameters: { size: 2 } }), 409);
});

test("adopting twice is adopting once, also after the instance was changed; one that was made here, or deleted, stays as it is", async () => {
  const flow = await flowOn("fastify", lab());
  await adopt(flow);
  expect(await unchanged(flow, () => adopt(flow))).toBe("adopted already");
  await flow.update("i1", { ...sync, parameters: { size: 3 } });
  expect(await unchanged(flow, () => adopt(flow))).toBe("adopted already");
  await flow.deprovision("i1", sync);
  expect(await unchanged(flow, () => adopt(flow))).toBe("gone");
  await ready(flow, "i1");
  expect(await unchanged(flow, () => adopt(flow))).toBe("exists");
});

test("a dry run tells what would come of it and changes nothing", async () => {
  const flow = await flowOn("fastify", lab());
  expect(await unchanged(flow, () => adopt(flow, {}, true))).toBe("adopted");
  await adopt(flow);
  expect(await unchanged(flow, () => adopt(flow, {}, true))).toBe("adopted already");
});

test("what is not offered cannot be adopted", async () => {
  const flow = await flowOn("fastify", lab());
  await expect(adopt(flow, { serviceId: "unknown" })).rejects.toThrow("service unknown is not offered");
  await expect(adopt(flow, { planId: "unknown" }, true)).rejects.toThrow("plan unknown is not a plan of service");
});

test("the journal of an adopted instance says who adopted it and why", async () => {
  const flow = await flowOn("fastify", lab());
  await adopt(flow);
  const [entry] = await flow.broker.journal.entries("/i1", { limit: 10 });
  expect(entry).toMatchObject({ kind: "operator", payload: { action: "adopt", reason: by.reason } });
});

test("a deprovision of an adopted instance that fails leaves it adopted: its own request is still recognised", async () => {
  const laboratory = lab();
  const flow = await flowOn("fastify", laboratory);
  await adopt(flow);
  laboratory.behave.deprovision = () => {
    throw new Error("not now");
  };
  await flow.deprovision("i1");
  await flow.advance();
  await flow.broker.operator
    .operations({})
    .then(({ items: [open] }) =>
      open === undefined ? undefined : flow.broker.operator.cancel({ platform: "", instance: "i1" }, open.id, by),
    );
  await flow.advance();
  expect((await flow.provision("i1", { parameters: { size: 2 } })).status).toBe(200);
});

test("an instance is adopted at the revision that it was made of, which its source still knows, and is removed by it", async () => {
  const [before, now] = [lab({ revision: "1" } as never), lab({ revision: "2" } as never)];
  const source: ServiceSource = {
    open: async () => undefined,
    services: [now.service],
    resolve: async (_, revision) => (revision === "1" ? before.service : undefined),
    close: () => undefined,
  };
  const flow = await flowOn("fastify", now, { services: source });
  expect(await adopt(flow, { revision: "1" })).toBe("adopted");
  expect((await flow.deprovision("i1", sync)).status).toBe(200);
  expect([before.done, now.done]).toEqual([["deprovision i1"], []]);
});
