import { describe, expect, test } from "vitest";
import { until } from "../../../tools/until.js";
import { applicationKinds } from "../src/applications/application-kinds.js";
import { ClusterError } from "../src/cluster/cluster-error.js";
import type { ObjectKind } from "../src/cluster/cluster-object.js";
import { type EventBrokerOptions, startEventBroker } from "./event-broker.js";
import { MemoryCluster } from "./memory-cluster.js";

const { kyma, osbert } = applicationKinds;
const secretKind: ObjectKind = { group: "", version: "v1", kind: "Secret", plural: "secrets", namespaced: true };
const events = { type: "Events" };
const api = {
  type: "API",
  id: "api",
  name: "Orders",
  gatewayUrl: "http://gateway.example",
  targetUrl: "https://shop.example",
};

async function start({
  world = new MemoryCluster(),
  ...more
}: Omit<EventBrokerOptions, "cluster"> & { world?: MemoryCluster } = {}) {
  return Object.assign(await startEventBroker({ cluster: world.cluster, ...more }), { world });
}

/** An application with as many services of events as are named. */
function application(
  world: MemoryCluster,
  name: string,
  services: readonly string[],
  entries: readonly object[] = [events],
) {
  world.put(kyma.applications, name, { services: services.map((id) => ({ id, name: id, entries })) });
}

function grant(world: MemoryCluster, namespace: string, name: string, services?: readonly string[]) {
  world.put(kyma.grants, name, services === undefined ? {} : { services: services.map((id) => ({ id })) }, namespace);
}

describe("a broker of what applications offer", () => {
  test("each namespace sees what it was granted, under an ETag of its own, as that changes", async () => {
    const { world, sees, ask } = await start();
    application(world, "commerce", ["a", "b"]);
    grant(world, "shop", "commerce");
    grant(world, "other", "commerce", ["b"]);
    await sees("shop", ["a-plan", "b-plan"]);
    await sees("other", ["b-plan"]);
    const [shop, other] = [await ask("GET", "/shop/v2/catalog"), await ask("GET", "/other/v2/catalog")];
    expect(shop.headers.etag).not.toBe(other.headers.etag);
    application(world, "commerce", ["a", "b", "c"]);
    await sees("shop", ["a-plan", "b-plan", "c-plan"]);
    const asked = { headers: { "if-none-match": other.headers.etag ?? "" } };
    expect((await ask("GET", "/other/v2/catalog", asked)).status).toBe(304);
    world.delete(kyma.grants, "commerce", "shop");
    await sees("shop", ["404"]);
  });

  test("the credentials of one namespace do not open another", async () => {
    const { world, sees, ask } = await start();
    application(world, "commerce", ["a"]);
    grant(world, "shop", "commerce");
    grant(world, "other", "commerce");
    await sees("shop", ["a-plan"]);
    expect((await ask("GET", "/other/v2/catalog", { as: "shop" })).status).toBe(401);
    expect((await ask("GET", "/v2/catalog", { as: "shop" })).status).toBe(401);
  });

  test("before anything could be listed, platforms are asked to come again, and told no empty catalog", async () => {
    const world = new MemoryCluster();
    world.become("no such kind");
    application(world, "commerce", ["a"]);
    grant(world, "shop", "commerce");
    const { sees, plans, provision } = await start({ world });
    expect(await plans("shop")).toEqual(["503"]);
    expect((await provision("shop", "i1", "a")).status).toBe(503);
    world.become("current");
    await sees("shop", ["a-plan"]);
  });

  test("after a restart with a server that is down, what was offered is offered, to whom it was granted", async () => {
    const { world, store, sees, stop } = await start();
    application(world, "commerce", ["a", "b"]);
    grant(world, "shop", "commerce", ["a"]);
    await sees("shop", ["a-plan"]);
    await stop();
    world.become("behind");
    const again = await start({ world, store });
    expect(await again.plans("shop")).toEqual(["a-plan"]);
    expect((await again.provision("shop", "i1", "a")).status).toBe(201);
  });

  test("a server that answers with empty lists takes nothing away, until a person says so", async () => {
    const { world, sees, ask, plans } = await start();
    for (const name of ["one", "two", "three"]) {
      application(world, name, [name]);
      grant(world, "shop", name);
    }
    const all = ["one-plan", "three-plan", "two-plan"];
    await sees("shop", all);
    world.become("emptied");
    const applications = async () => (await ask("GET", "/admin/v1/events/applications")).body;
    await until("the removal is held", async () => (await applications()).held.applications?.count === 3);
    expect(await plans("shop")).toEqual(all);
    expect((await applications()).held.grants).toMatchObject({ count: 3, of: 3 });
    const confirm = async (what: string, observation: string) =>
      ask("POST", "/admin/v1/events/applications/confirm", { body: { what, observation, reason: "moved" } });
    expect((await confirm("applications", "another")).status).toBe(409);
    const { held } = await applications();
    expect((await confirm("grants", held.grants.observation)).status).toBe(200);
    await sees("shop", ["404"]);
    expect((await confirm("applications", held.applications.observation)).status).toBe(200);
    await until("they are gone", async () =>
      (await applications()).items.every(({ removed_at }: { removed_at: string | null }) => removed_at !== null),
    );
    world.become("current");
    await sees("shop", all);
  });

  test("a service with an instance is known for as long as it has that, however many others its application has taken back", async () => {
    const { world, plans, provision, stop, store } = await start();
    const many = (word: string) => Array.from({ length: 400 }, (_, at) => `${word}-${at}`);
    const offered = async (ids: readonly string[]) => {
      application(world, "commerce", ids);
      const isOffered = async () => {
        const seen = await plans("shop");
        return seen.length === ids.length && seen.includes(`${ids[0]}-plan`);
      };
      await until("it to be offered", isOffered);
    };
    grant(world, "shop", "commerce");
    await offered(many("first"));
    await offered(["sold", ...many("second")]);
    expect((await provision("shop", "i1", "sold")).status).toBe(201);
    for (const word of ["third", "fourth"]) await offered(many(word));
    await stop();
    const again = await start({ world, store });
    const [known] = (await again.ask("GET", "/admin/v1/events/applications")).body.items;
    const gone = known.services.filter(({ removed_at }: { removed_at: string | null }) => removed_at !== null);
    expect(gone.length).toBeLessThan(1_000);
    expect(gone.map(({ id }: { id: string }) => id)).toContain("sold");
    expect((await again.deprovision("shop", "i1", "sold")).status).toBe(200);
  });

  test("what the admin API tells of applications is written as all else that it tells", async () => {
    const { world, sees, ask } = await start();
    application(world, "commerce", ["a"]);
    grant(world, "shop", "commerce");
    await sees("shop", ["a-plan"]);
    const { body } = await ask("GET", "/admin/v1/events/applications");
    expect(body).toMatchObject({ is_known: true, items: [{ display_name: "commerce", removed_at: null }] });
    const names = (value: unknown): readonly string[] =>
      typeof value === "object" && value !== null
        ? [...(Array.isArray(value) ? [] : Object.keys(value)), ...Object.values(value).flatMap(names)]
        : [];
    expect(names(body).filter((name) => /[A-Z]/.test(name))).toEqual([]);
  });

  test("an application of which the server does not tell whether it is gone does not hold up the others", async () => {
    const { world, sees } = await start();
    for (const name of ["one", "two"]) {
      application(world, name, [name]);
      grant(world, "shop", name);
    }
    await sees("shop", ["one-plan", "two-plan"]);
    const read = world.read.bind(world);
    world.read = async (kind, place) => {
      if (kind === kyma.applications) throw new ClusterError("forbidden");
      return read(kind, place);
    };
    world.delete(kyma.applications, "one");
    application(world, "three", ["three"]);
    grant(world, "shop", "three");
    await sees("shop", ["one-plan", "three-plan", "two-plan"]);
    world.read = read;
    application(world, "four", ["four"]);
    await sees("shop", ["three-plan", "two-plan"]);
  });

  test("an instance of an application that is gone can be deleted, also after a restart", async () => {
    const { world, store, sees, provision, stop } = await start();
    application(world, "commerce", ["a", "b"]);
    application(world, "later", ["c"]);
    grant(world, "shop", "commerce");
    await sees("shop", ["a-plan", "b-plan"]);
    expect((await provision("shop", "i1", "a")).status).toBe(201);
    expect((await provision("shop", "i2", "b")).status).toBe(201);
    application(world, "commerce", ["a"]);
    await sees("shop", ["a-plan"]);
    world.delete(kyma.applications, "commerce");
    world.delete(kyma.grants, "commerce", "shop");
    await sees("shop", []);
    expect((await provision("shop", "i3", "a")).status).toBe(400);
    await stop();
    const again = await start({ world, store });
    expect((await again.deprovision("shop", "i1", "a")).status).toBe(200);
    expect((await again.deprovision("shop", "i2", "b")).status).toBe(200);
    expect(again.made).toEqual(["deprovision commerce a events gone", "deprovision commerce b events gone"]);
    // Without instances and grants there is no such platform any more.
    await until("the namespace is gone", async () => ["404", ""].includes((await again.plans("shop")).join()));
  });

  test("an instance can be deleted after its application was registered anew, under another id", async () => {
    const { world, ask, sees, made } = await start({ mapping: "applications" });
    const register = (applicationId: string, id: string) =>
      world.put(kyma.applications, "commerce", {
        compassMetadata: { applicationId },
        services: [{ id, name: id, entries: [events] }],
      });
    register("before", "a");
    grant(world, "shop", "commerce");
    await sees("shop", ["a"]);
    const ids = { service_id: "before", plan_id: "a" };
    const path = "/shop/v2/service_instances/i";
    expect((await ask("PUT", path, { body: { ...ids, organization_guid: "o", space_guid: "s" } })).status).toBe(201);
    register("after", "b");
    await sees("shop", ["b"]);
    expect((await ask("DELETE", `${path}?${new URLSearchParams(ids)}`)).status).toBe(200);
    expect(made).toContain("deprovision commerce a events gone");
  });

  test("an instance can be deleted after a resource of the other kind has come to describe its application", async () => {
    const { world, sees, provision, deprovision, made } = await start();
    application(world, "commerce", ["a"]);
    grant(world, "shop", "commerce");
    await sees("shop", ["a-plan"]);
    expect((await provision("shop", "i", "a")).status).toBe(201);
    world.put(osbert.applications, "commerce", { services: [{ id: "b", name: "b", events: true }] });
    world.put(osbert.grants, "commerce", { application: "commerce" }, "shop");
    world.delete(kyma.applications, "commerce");
    await sees("shop", ["b-events"]);
    expect((await deprovision("shop", "i", "a")).status).toBe(200);
    expect(made).toContain("deprovision commerce a events gone");
  });

  test("of two with one id the first has it, and what cannot be offered is told and holds up nothing", async () => {
    const { world, source, sees } = await start();
    application(world, "second", ["a"]);
    grant(world, "shop", "second");
    await sees("shop", ["a-plan"]);
    application(world, "first", ["a", "b"]);
    const entries = [events];
    const parameters = { id: "bad", entries, authCreateParameterSchema: '{"type":"nonsense"}' };
    world.put(kyma.applications, "third", { services: [parameters, { id: "good", entries }, { entries }] });
    grant(world, "shop", "first");
    grant(world, "shop", "third");
    await sees("shop", ["b-plan", "a-plan", "good-plan"]);
    expect(source.applications.service("a")?.application.name).toBe("second");
    expect(source.findings.map(({ application: name, path }) => `${name}: ${path}`).sort()).toEqual([
      'first: services "a"',
      'third: services "bad"',
      "third: spec.services[2].id",
    ]);
  });
});

describe("several processes on one store", () => {
  test("offer the same, whoever has written it, and write nothing where nothing has changed", async () => {
    const one = await start();
    const two = await start({ world: one.world, store: one.store });
    application(one.world, "commerce", ["a"]);
    grant(one.world, "shop", "commerce");
    await one.sees("shop", ["a-plan"]);
    await two.sees("shop", ["a-plan"]);
    const etag = async ({ ask }: typeof one) => (await ask("GET", "/shop/v2/catalog")).headers.etag;
    expect(await etag(one)).toBe(await etag(two));
    const seq = async () => (await one.broker.journal.read("events.catalog"))?.data as { readonly snapshot: number };
    const { snapshot } = await seq();
    // Looked at anew, and all of it is as it was.
    one.world.become("behind");
    one.world.become("current");
    grant(one.world, "other", "commerce");
    await two.sees("other", ["a-plan"]);
    expect((await seq()).snapshot).toBe(snapshot + 1);
    await one.stop();
    application(two.world, "commerce", ["a", "b"]);
    await two.sees("shop", ["a-plan", "b-plan"]);
  });
});

describe("what anybody may write", () => {
  test("names of 253 characters, markup and megabytes are served, and every namespace goes on", async () => {
    const { world, source, sees, ask, provision } = await start();
    const long = "a".repeat(253);
    application(world, long, ["l1"]);
    application(world, `${long.slice(1)}b`, ["l2"]);
    world.put(kyma.applications, "loud", {
      ...{ description: "<img onerror=alert(1)>".repeat(100_000), labels: { "no label": {} }, tags: "none" },
      services: [{ id: "x".repeat(300), entries: [events] }, { id: "ok", name: "<b>", entries: [events] }, null],
    });
    for (const name of [long, `${long.slice(1)}b`, "loud"]) grant(world, "shop", name);
    await sees("shop", ["l1-plan", "l2-plan", "ok-plan"]);
    expect(source.findings.length).toBeGreaterThan(4);
    expect((await ask("GET", "/admin/v1/events/findings")).body.count).toBe(source.findings.length);
    for (const id of ["l1", "l2", "ok"]) expect((await provision("shop", id, id)).status).toBe(201);
  });
});

describe("bindings", () => {
  const secret = (password: string) => ({ data: { username: btoa("u"), password: btoa(password) } });
  const own = {
    apis: [
      { name: "Orders", id: "o", targetUrl: "https://shop.example", credentials: { type: "Basic", secretName: "s" } },
    ],
  };

  test("of services give the gateway's address; events alone are not bindable", async () => {
    const { world, sees, provision, bind, ofService, ask } = await start();
    world.put(kyma.applications, "commerce", {
      services: [
        { id: "a", name: "a", entries: [api, events] },
        { id: "b", name: "b", entries: [events] },
      ],
    });
    grant(world, "shop", "commerce");
    await sees("shop", ["a-plan", "b-plan"]);
    const { services } = (await ask("GET", "/shop/v2/catalog")).body;
    expect(services.map(({ bindable }: { bindable: boolean }) => bindable)).toEqual([true, false]);
    await provision("shop", "i1", "a");
    await provision("shop", "i2", "b");
    expect((await bind("shop", "i1", "b1", ofService("a"))).body).toEqual({
      credentials: { GATEWAY_URL: "http://gateway.example" },
    });
    expect((await bind("shop", "i1", "b2", ofService("a"), { parameters: { any: "thing" } })).status).toBe(400);
    expect((await bind("shop", "i2", "b1", ofService("b"))).status).toBe(422);
  });

  test("read the Secret when they are made, wait for it, and a successor has what it holds by then", async () => {
    const { world, sees, ask, bind } = await start({ secretNamespace: "secrets" });
    world.put(osbert.applications, "crm", { services: [{ name: "orders", id: "orders", ...own }] });
    world.put(osbert.grants, "any", { application: "crm" }, "shop");
    await sees("shop", ["orders-api"]);
    const ids = { service_id: "orders", plan_id: "orders-api" };
    const body = { ...ids, organization_guid: "o", space_guid: "s" };
    expect((await ask("PUT", "/shop/v2/service_instances/i1", { body })).status).toBe(201);
    const path = "/shop/v2/service_instances/i1/service_bindings/b1";
    expect((await ask("PUT", `${path}?accepts_incomplete=true`, { body: ids })).status).toBe(202);
    const words = async () => (await ask("GET", `${path}/last_operation`)).body;
    await until("it waits", async () => (await words()).description.includes("secrets/s"));
    world.put(secretKind, "s", undefined, "secrets", secret("one"));
    await until("it is bound", async () => (await words()).state === "succeeded");
    const configuration = (answer: { body: { credentials: Record<string, string> } }) =>
      JSON.parse(answer.body.credentials.CONFIGURATION ?? "").credentials;
    const first = await ask("GET", path);
    expect(first.body.credentials).toMatchObject({
      CREDENTIALS_TYPE: "basic",
      ORDERS_O_TARGET_URL: "https://shop.example",
    });
    expect(configuration(first)).toEqual({ username: "u", password: "one" });
    world.put(secretKind, "s", undefined, "secrets", secret("two"));
    const second = await bind("shop", "i1", "b2", ids, { predecessor_binding_id: "b1" });
    expect(configuration(second)).toEqual({ username: "u", password: "two" });
    expect(configuration(await ask("GET", path))).toEqual({ username: "u", password: "one" });
  });

  test("are not made where the grant was taken back", async () => {
    const { world, sees, provision, bind, ofService } = await start();
    application(world, "commerce", ["a"], [api]);
    grant(world, "shop", "commerce");
    await sees("shop", ["a-plan"]);
    await provision("shop", "i1", "a");
    world.delete(kyma.grants, "commerce", "shop");
    await sees("shop", []);
    expect((await bind("shop", "i1", "b1", ofService("a"))).status).toBe(403);
  });
});
