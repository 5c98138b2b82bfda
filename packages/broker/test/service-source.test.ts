import type { Json } from "@osbert/journal";
import { memoryStore } from "@osbert/journal/memory";
import { BrokerError } from "@osbert/protocol";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { type BrokerOptions, followedServices, type Schema, type Service, type ServiceSource } from "../src/index.js";
import type { BrokerEvent } from "../src/observe/index.js";
import { type TestBroker, testBroker } from "../src/testing/index.js";

const by = { actor: { type: "user", subject: "publisher" } } as const;
const serviceId = "5e7f0a7e-7d0a-4c5e-9f2e-3f7a51c0de01";
const planId = "5e7f0a7e-7d0a-4c5e-9f2e-3f7a51c0de02";

/** A service as it is at a revision: which one made something is in what it gives. */
function serviceAt(revision: string, provision: Schema = {}): Service {
  return {
    id: serviceId,
    name: "database",
    description: "A database",
    revision,
    plans: {
      small: {
        id: planId,
        description: "A small one",
        maintenanceInfo: { version: `${revision}.0.0` },
        provision: { type: "object", properties: { size: { maximum: Number(revision) * 10 } }, ...provision },
      },
    },
    async provision() {
      return { state: { madeBy: revision } };
    },
    async update() {
      return { state: { madeBy: revision } };
    },
    async deprovision(operation) {
      operation.describe(`removed by ${revision}`);
      removedBy.push(revision);
    },
    async bind(_operation, { state }) {
      return { credentials: { madeBy: (state as { madeBy: string }).madeBy, boundBy: revision } };
    },
  };
}
const removedBy: string[] = [];

/** Valid, and too much work to compile: as a schema may be that an earlier version took. */
const tooMuch: Schema = { dependencies: { a: Array.from({ length: 5_000 }, (_, at) => `p${at}`) } };

/**
 * Snapshots are lists of revisions, of one service. `away`: revisions that left the snapshot cannot be had. `tooMuch`: those whose schema is, for
 * the version that runs now.
 */
function source() {
  const of = { away: false, resolved: [] as string[], tooMuch: [] as string[] };
  const madeAt = (revision: string) => serviceAt(revision, of.tooMuch.includes(revision) ? tooMuch : {});
  const services = followedServices({
    key: "catalog",
    services: (snapshot) => (snapshot as readonly string[]).map(madeAt),
    async resolve(_service, revision) {
      of.resolved.push(revision);
      if (of.away) throw new Error("the registry does not answer");
      return madeAt(revision);
    },
  });
  return Object.assign(of, { services, publish: (snapshot: Json) => services.publish(snapshot, by) });
}

const caller = {
  ...{ platform: "", credential: "me", identity: null, requestId: null },
  apiVersion: { major: 2, minor: 17 },
};
const ids = { service_id: serviceId, plan_id: planId };
const path = (instance: string) => `/v2/service_instances/${instance}`;

function provision(flow: TestBroker, instance: string, parameters: object = {}) {
  const body = { ...ids, organization_guid: "o", space_guid: "s", parameters };
  return flow.request("PUT", path(instance), { body });
}
function bind(flow: TestBroker, instance: string, binding: string) {
  return flow.request("PUT", `${path(instance)}/service_bindings/${binding}`, { body: ids });
}
function unbind(flow: TestBroker, instance: string, binding: string) {
  return flow.request("DELETE", `${path(instance)}/service_bindings/${binding}?${new URLSearchParams(ids)}`);
}
function update(flow: TestBroker, instance: string, more: object) {
  return flow.request("PATCH", path(instance), { body: { service_id: serviceId, ...more } });
}
function deprovision(flow: TestBroker, instance: string, acceptsIncomplete: "true" | "false") {
  const query = new URLSearchParams({ ...ids, accepts_incomplete: acceptsIncomplete });
  return flow.request("DELETE", `${path(instance)}?${query}`);
}

/** A broker that can be started anew on the same store. */
async function start(store: BrokerOptions["store"] | undefined, options: Partial<BrokerOptions> = {}) {
  const own = source();
  const flow = await testBroker({ stderr: "nothing", services: own.services, ...(store && { store }), ...options });
  onTestFinished(() => flow.stop());
  return Object.assign(own, { flow });
}

describe("a broker whose services come from a source", () => {
  test("while nobody knows what is offered, platforms are asked to come again, and told no empty catalog", async () => {
    const { flow, publish } = await start(undefined);
    const unknown = await flow.request("GET", "/v2/catalog");
    expect(unknown.status).toBe(503);
    expect(unknown.headers["retry-after"]).toBe("5");
    expect((await provision(flow, "i1")).status).toBe(503);
    expect(() => flow.broker.catalog).toThrow("not known yet");
    await publish(["1"]);
    expect((await flow.request("GET", "/v2/catalog")).body.services[0].name).toBe("database");
    expect((await provision(flow, "i1")).status).toBe(201);
    await publish([]);
    expect((await flow.request("GET", "/v2/catalog")).body).toEqual({ services: [] });
  });

  test("an instance goes on with the revision that it was made of, until the platform asks for the new version", async () => {
    const { flow, publish, resolved } = await start(undefined);
    await publish(["1"]);
    expect((await provision(flow, "i1", { size: 5 })).status).toBe(201);
    await publish(["2"]);
    expect((await bind(flow, "i1", "b1")).body.credentials).toEqual({ madeBy: "1", boundBy: "1" });
    expect((await provision(flow, "i2")).status).toBe(201);
    expect((await bind(flow, "i2", "b1")).body.credentials).toEqual({ madeBy: "2", boundBy: "2" });
    // Its own schema holds for it, not the one that is offered now.
    expect((await update(flow, "i1", { parameters: { size: 5 } })).status).toBe(200);
    expect((await bind(flow, "i1", "b2")).body.credentials).toEqual({ madeBy: "1", boundBy: "1" });
    expect((await update(flow, "i1", { maintenance_info: { version: "3.0.0" } })).status).toBe(422);
    expect((await update(flow, "i1", { maintenance_info: { version: "2.0.0" } })).status).toBe(200);
    expect((await bind(flow, "i1", "b3")).body.credentials).toEqual({ madeBy: "2", boundBy: "2" });
    // However often it was asked, it was resolved once.
    expect(resolved).toEqual(["1"]);
  });

  test("what an instance has must fit the plan to which it is upgraded", async () => {
    const { flow, publish } = await start(undefined);
    await publish(["2"]);
    expect((await provision(flow, "i1", { size: 15 })).status).toBe(201);
    await publish(["1"]);
    const refused = await update(flow, "i1", { maintenance_info: { version: "1.0.0" } });
    expect(refused.status).toBe(400);
    expect(refused.body.description).toContain("after the upgrade to plan small");
    expect((await bind(flow, "i1", "b1")).body.credentials).toEqual({ madeBy: "2", boundBy: "2" });
  });

  test("an instance whose service left the catalog is bound and deleted by its own revision, also after a restart", async () => {
    const store = memoryStore();
    const first = await start(store);
    await first.publish(["1"]);
    await provision(first.flow, "i1");
    await first.publish([]);
    expect((await bind(first.flow, "i1", "b1")).body.credentials).toEqual({ madeBy: "1", boundBy: "1" });
    await first.flow.broker.stop();
    const second = await start(store);
    expect((await second.flow.request("GET", "/v2/catalog")).body).toEqual({ services: [] });
    expect((await bind(second.flow, "i1", "b2")).body.credentials).toEqual({ madeBy: "1", boundBy: "1" });
    const before = removedBy.length;
    for (const binding of ["b1", "b2"]) {
      expect((await unbind(second.flow, "i1", binding)).status).toBe(200);
    }
    expect((await deprovision(second.flow, "i1", "false")).status).toBe(200);
    expect(removedBy.slice(before)).toEqual(["1"]);
    expect(second.resolved).toEqual(["1"]);
  });

  test.each([false, true])(
    "an instance whose revision has a schema that is too much work now is bound, upgraded and deleted (checked before: %s)",
    async (servicesAreChecked) => {
      const own = source();
      const services = Object.assign(own.services, { servicesAreChecked });
      const flow = await testBroker({ stderr: "nothing", services });
      onTestFinished(() => flow.stop());
      const { publish } = own;
      await publish(["1"]);
      for (const instance of ["i1", "i2"]) expect((await provision(flow, instance, { size: 5 })).status).toBe(201);
      await publish(["2"]);
      own.tooMuch.push("1");
      expect((await bind(flow, "i1", "b1")).body.credentials).toEqual({ madeBy: "1", boundBy: "1" });
      expect((await update(flow, "i1", { maintenance_info: { version: "2.0.0" } })).status).toBe(200);
      expect((await deprovision(flow, "i2", "false")).status).toBe(200);
      expect(removedBy.pop()).toBe("1");
    },
  );

  test("a snapshot with a schema that is too much work now is offered after a restart, and not published anew", async () => {
    const store = memoryStore();
    const first = await start(store);
    await first.publish(["1"]);
    expect((await provision(first.flow, "i1")).status).toBe(201);
    await first.flow.stop();
    const events: BrokerEvent[] = [];
    const own = source();
    own.tooMuch.push("1", "2");
    const flow = await testBroker({
      ...{ stderr: "nothing", services: own.services, store },
      observe: (event: BrokerEvent) => events.push(event),
    });
    onTestFinished(() => flow.stop());
    expect((await flow.request("GET", "/v2/catalog")).body.services).toHaveLength(1);
    expect(events).toContainEqual(
      expect.objectContaining({ kind: "catalog warning", message: expect.stringContaining("too much work") }),
    );
    const refused = await provision(flow, "i2");
    expect([refused.status, refused.body.description]).toEqual([400, expect.stringContaining("too much work")]);
    await expect(own.publish(["2"])).rejects.toThrow("too much work");
    expect((await deprovision(flow, "i1", "false")).status).toBe(200);
  });

  test("while a revision cannot be had, a bind is asked to come again and a deprovision goes on later", async () => {
    const own = await start(undefined);
    const { flow, publish } = own;
    await publish(["1"]);
    await provision(flow, "i1");
    await publish(["2"]);
    own.away = true;
    const refused = await bind(flow, "i1", "b1");
    expect(refused.status).toBe(503);
    expect(JSON.stringify(refused.body)).not.toContain("registry");
    expect((await deprovision(flow, "i1", "true")).status).toBe(202);
    own.away = false;
    await flow.advance(31_000);
    expect((await flow.lastOperation("i1")).body.state).toBe("succeeded");
    expect(removedBy.at(-1)).toBe("1");
  });

  test("what cannot be offered is told, and what was offered before stays", async () => {
    const events: BrokerEvent[] = [];
    const { flow, publish } = await start(undefined, { observe: (event) => void events.push(event) });
    await publish(["1"]);
    const { etag } = flow.broker.catalog;
    // Published as it should be, it is refused before it is durable.
    await expect(publish(["2", "2"])).rejects.toThrow("breaks");
    await expect(publish([5 as never])).rejects.toThrow("revision must be a text");
    expect(events.filter(({ kind }) => kind === "catalog refused")).toHaveLength(0);
    await flow.broker.journal.transact("catalog", () => ({ result: null, change: { data: ["2", "2"] } }), { by });
    await vi.waitFor(() => expect(events.filter(({ kind }) => kind === "catalog refused")).toHaveLength(1));
    expect(flow.broker.catalog.etag).toBe(etag);
    await publish(["2"]);
    expect(flow.broker.catalog.etag).not.toBe(etag);
  });

  test("a source that does not answer is asked again, and keeps nobody waiting for what needs no answer", async () => {
    const own = await start(undefined);
    const { flow, publish } = own;
    await publish(["1"]);
    await provision(flow, "i1");
    await bind(flow, "i1", "b1");
    await publish(["2"]);
    vi.spyOn(own.services, "resolve").mockImplementationOnce(() => new Promise(() => undefined));
    const late = flow.broker.endpoints.bind({
      ...{ caller, instance: "i1", binding: "b2", query: {}, body: ids },
    });
    late.catch(() => undefined);
    expect((await bind(flow, "i1", "b1")).status).toBe(200);
    await flow.advance(10_001);
    await expect(late).rejects.toMatchObject({ status: 503 });
    expect((await bind(flow, "i1", "b2")).status).toBe(201);
    own.away = true;
    await publish([]);
    expect((await bind(flow, "nowhere", "b1")).status).toBe(404);
    expect((await update(flow, "nowhere", {})).status).toBe(404);
  });

  test("a hook is asked of the revision that does the work", async () => {
    const asked: string[] = [];
    const services = followedServices({
      key: "catalog",
      services: (snapshot) => (snapshot as readonly string[]).map(hooked),
      resolve: async (_service, revision) => hooked(revision),
    });
    function hooked(revision: string): Service {
      const before = ({ verb }: { verb: string }) => void asked.push(`${verb} at ${revision}`);
      return { ...serviceAt(revision), ...(revision === "1" && { hooks: { before } }) } as Service;
    }
    const flow = await testBroker({ stderr: "nothing", services });
    onTestFinished(() => flow.stop());
    await services.publish(["1"], by);
    await provision(flow, "i1");
    await services.publish(["2"], by);
    expect((await bind(flow, "i1", "b1")).status).toBe(201);
    expect((await unbind(flow, "i1", "b1")).status).toBe(200);
    expect((await deprovision(flow, "i1", "false")).status).toBe(200);
    expect(asked).toEqual(["provision at 1", "bind at 1", "unbind at 1", "deprovision at 1"]);
    // Nor is one of another revision: it knows nothing of what the instance was made of.
    await provision(flow, "i2");
    await services.publish(["1"], by);
    expect((await deprovision(flow, "i2", "false")).status).toBe(200);
    expect(asked).toHaveLength(4);
  });

  test("a hook can refuse the end of an instance whose revision, or whole service, left the catalog", async () => {
    const services = followedServices({
      key: "catalog",
      services: (snapshot) => (snapshot as readonly string[]).map(guarded),
      resolve: async (_service, revision) => guarded(revision),
    });
    function guarded(revision: string): Service {
      const before = ({ verb, plan }: { verb: string; plan: string }) => {
        if (verb === "deprovision") throw new BrokerError("unprocessable", `${plan} is protected at ${revision}`);
      };
      return { ...serviceAt(revision), ...(revision === "1" && { hooks: { before } }) } as Service;
    }
    const flow = await testBroker({ stderr: "nothing", services });
    onTestFinished(() => flow.stop());
    await services.publish(["1"], by);
    await provision(flow, "i1");
    for (const snapshot of [["1"], ["2"], []]) {
      await services.publish(snapshot, by);
      const refused = await deprovision(flow, "i1", "true");
      expect(refused).toMatchObject({ status: 422, body: { description: "small is protected at 1" } });
    }
    expect((await deprovision(flow, "nowhere", "true")).status).toBe(410);
  });

  test("MAINT-04: a version that only the instance's own revision has is a conflict", async () => {
    const { flow, publish } = await start(undefined);
    await publish(["1"]);
    await provision(flow, "i1");
    await publish(["2"]);
    const refused = await update(flow, "i1", { maintenance_info: { version: "1.0.0" } });
    expect(refused.status).toBe(422);
    expect(refused.body.error).toBe("MaintenanceInfoConflict");
  });

  test("an instance can be upgraded to a service that has no revisions any more", async () => {
    const { revision: _, ...plain } = serviceAt("2");
    const services = followedServices({
      key: "catalog",
      services: (snapshot) => (snapshot as readonly string[]).map((each) => (each === "2" ? plain : serviceAt(each))),
      resolve: async (_service, revision) => serviceAt(revision),
    });
    const flow = await testBroker({ stderr: "nothing", services });
    onTestFinished(() => flow.stop());
    await services.publish(["1"], by);
    await provision(flow, "i1");
    await services.publish(["2"], by);
    expect((await update(flow, "i1", { maintenance_info: { version: "2.0.0" } })).status).toBe(200);
    expect((await bind(flow, "i1", "b1")).body.credentials).toEqual({ madeBy: "2", boundBy: "2" });
  });

  test("an instance without a revision waits for a catalog that is not known yet", async () => {
    const { flow } = await start(undefined);
    const data = {
      phase: "ready",
      updating: null,
      serviceId,
      planId,
      created: "",
      bindings: 0,
      last: null,
      removed: [],
    };
    await flow.broker.journal.transact("/i1", () => ({ result: null, change: { data } }), { by });
    expect((await bind(flow, "i1", "b1")).status).toBe(503);
    expect((await update(flow, "i1", { parameters: { size: 1 } })).status).toBe(503);
  });

  test.each(["a/b", "broker.paused"])("the key %s is not a source's", (key) => {
    expect(() => followedServices({ key, services: () => [] })).toThrow("must not");
  });

  test("a broker that is started again is ready, and its source open", async () => {
    const { flow, publish } = await start(undefined);
    await publish(["1"]);
    await flow.broker.stop();
    await flow.broker.start();
    expect(await flow.broker.readiness()).toEqual({ ready: true, reasons: [] });
    await publish(["2"]);
    expect(flow.broker.catalog.services.get(serviceId)?.service.revision).toBe("2");
  });

  test("its services are changed at the source", async () => {
    const { flow } = await start(undefined);
    await expect(flow.broker.offer([])).rejects.toThrow("come from a source");
  });

  test("a bind that was held against a revision which the instance has left meanwhile has to be asked again", async () => {
    const own = await start(undefined);
    const { flow, publish } = own;
    await publish(["1"]);
    await provision(flow, "i1");
    await publish(["2"]);
    let goOn: () => void = () => undefined;
    const held = new Promise<void>((resolve) => {
      goOn = resolve;
    });
    const resolve = own.services.resolve.bind(own.services);
    vi.spyOn(own.services, "resolve").mockImplementationOnce(async (service, revision) => {
      await held;
      return resolve(service, revision);
    });
    const late = bind(flow, "i1", "b1");
    // Upgraded by another process meanwhile, which has an answer to the same question.
    await flow.broker.journal.transact(
      "/i1",
      (resource) => ({
        result: null,
        change: { data: { ...(resource?.data as object), revision: "2" } },
      }),
      { by },
    );
    goOn();
    const refused = await late;
    expect(refused.status).toBe(422);
    expect(refused.body.error).toBe("ConcurrencyError");
    expect((await bind(flow, "i1", "b1")).body.credentials).toMatchObject({ boundBy: "2" });
  });
});

test("a service with a revision that leaves a list is retired like any other", async () => {
  const flow = await testBroker({ stderr: "nothing", services: [serviceAt("1")] });
  onTestFinished(() => flow.stop());
  await provision(flow, "i1");
  await flow.broker.offer([], { retirePlansInUse: true });
  expect((await bind(flow, "i1", "b1")).status).toBe(422);
  expect((await deprovision(flow, "i1", "false")).status).toBe(200);
});

describe("what a source does besides", () => {
  test("a source runs operations of its own on the broker's journal, which are no instance's", async () => {
    const runs: string[] = [];
    const own: ServiceSource = {
      services: [serviceAt("1")],
      kinds: {
        "registry.read": {
          async run(operation) {
            runs.push(operation.key);
            await operation.change((resource) => ({ data: [resource.data] }));
            return operation.poll("wait for ever", () => undefined, { everyMs: 60_000 });
          },
        },
      },
      async open({ journal }) {
        const change = { accept: [{ kind: "registry.read" }] };
        await journal.transact("registry.main", () => ({ result: null, change }), { by });
      },
      resolve: async () => undefined,
      judge: {
        provision: (id) =>
          id === "withdrawn"
            ? { kind: "refused", code: "service-retired", why: "it was withdrawn" }
            : { kind: "allowed" },
        planChange: () => null,
        accepted: async () => null,
      },
      close: () => undefined,
    };
    const flow = await testBroker({ services: own });
    onTestFinished(() => flow.stop());
    await vi.waitFor(() => expect(runs).toEqual(["registry.main"]));
    const { operator } = flow.broker;
    expect((await operator.operations({})).items).toEqual([]);
    expect(await flow.broker.backlog()).toMatchObject({ services: [{ open: 0 }, { service: "unknown", open: 0 }] });
    const body = { organization_guid: "o", space_guid: "s", service_id: "withdrawn", plan_id: planId };
    const told = await flow.request("PUT", path("i"), { body });
    expect([told.status, told.body]).toEqual([
      400,
      expect.objectContaining({ description: expect.stringContaining("it was withdrawn") }),
    ]);
  });

  test("a source must not call its operations as the broker calls its own", async () => {
    const kinds = { bind: { run: async () => null } };
    const own = {
      services: [],
      kinds,
      open: async () => undefined,
      resolve: async () => undefined,
      close: () => undefined,
    };
    await expect(testBroker({ services: own })).rejects.toThrow("must not be called bind");
  });
});
