import { describe, expect, onTestFinished, test } from "vitest";
import type { Service, ServiceSource } from "../src/index.js";
import { type TestBrokerOptions, testBroker } from "../src/testing/index.js";

function service(name: string, plans: readonly string[]): Service {
  return {
    id: `${name}-id`,
    name,
    description: name,
    plans: Object.fromEntries(plans.map((plan) => [plan, { id: `${name}-${plan}`, description: plan }])),
    async provision() {
      return { metadata: { labels: { made: "yes" }, attributes: { size: "small", health: "unknown" } } };
    },
  };
}

/** A source whose platforms see the plans that the test says. */
async function start(options: Partial<TestBrokerOptions> & { readonly source?: Partial<ServiceSource> } = {}) {
  const seen = new Map<string, readonly string[] | undefined>([
    ["east", ["a-small", "a-large", "b-small"]],
    ["west", ["a-large"]],
    ["empty", []],
    ["new", undefined],
  ]);
  const of = {
    seen,
    looks: 0,
    changedAt: 1_000_000,
    services: [service("a", ["small", "large"]), service("b", ["small"])],
  };
  let changed: () => void = () => undefined;
  const source: ServiceSource = {
    async open(ports) {
      changed = ports.changed;
    },
    get services() {
      return of.services;
    },
    changedAt: 2_000_000,
    resolve: async () => undefined,
    audience: {
      has: (platform) => seen.has(platform),
      version: (platform) => seen.get(platform)?.join(),
      sees(platform, _service, plan) {
        of.looks++;
        return seen.get(platform)?.includes(plan) ?? false;
      },
      changedAt: () => of.changedAt,
    },
    close: () => undefined,
    ...options.source,
  };
  const flow = await testBroker({ services: source, stderr: "nothing", ...options });
  onTestFinished(() => flow.stop());
  const catalog = (platform: string, etag?: string) =>
    flow.request("GET", `/${platform}/v2/catalog`, etag === undefined ? {} : { headers: { "if-none-match": etag } });
  return Object.assign(of, { flow, catalog, change: () => changed() });
}

type Told = { readonly name: string; readonly plans: readonly { readonly id: string }[] };
const planIds = (body: { readonly services: readonly Told[] }) =>
  body.services.map(({ name, plans }) => [name, plans.map(({ id }) => id)]);

describe("a source with an audience", () => {
  test("each platform has a catalog of its own, without services of which it sees no plan", async () => {
    const { catalog } = await start();
    expect(planIds((await catalog("east")).body)).toEqual([
      ["a", ["a-small", "a-large"]],
      ["b", ["b-small"]],
    ]);
    expect(planIds((await catalog("west")).body)).toEqual([["a", ["a-large"]]]);
    expect((await catalog("empty")).body).toEqual({ services: [] });
  });

  test("of a platform about which nothing is known yet, no empty catalog is told", async () => {
    const { catalog, flow } = await start();
    const answer = await catalog("new");
    expect(answer.status).toBe(503);
    expect(answer.headers["retry-after"]).toBe("5");
    expect((await catalog("nowhere")).status).toBe(404);
    expect((await flow.request("GET", "/v2/catalog")).status).toBe(404);
  });

  test("each has an ETag of its own, which changes with what it sees and with nothing else", async () => {
    const { catalog, seen } = await start();
    const [east, west] = [await catalog("east"), await catalog("west")];
    expect(east.headers.etag).not.toBe(west.headers.etag);
    expect((await catalog("west", west.headers.etag)).status).toBe(304);
    expect((await catalog("west", east.headers.etag)).status).toBe(200);
    seen.set("west", ["a-large", "b-small"]);
    expect((await catalog("west", west.headers.etag)).status).toBe(200);
    expect((await catalog("east", east.headers.etag)).status).toBe(304);
    seen.set("west", ["a-large"]);
    expect((await catalog("west", west.headers.etag)).status).toBe(304);
  });

  test("it is made once for each catalog and version", async () => {
    const broker = await start();
    await broker.catalog("west");
    expect(broker.looks).toBe(3);
    await broker.catalog("west");
    expect(broker.looks).toBe(3);
    broker.services = [...broker.services, service("c", ["small"])];
    broker.change();
    await broker.catalog("west");
    expect(broker.looks).toBe(7);
  });

  test("many platforms that ask once each are not all kept, and are still answered", async () => {
    const broker = await start({ source: { services: [service("a", ["small"])] } });
    for (let at = 0; at < 300; at++) {
      broker.seen.set(`p${at}`, ["a-small"]);
      expect((await broker.catalog(`p${at}`)).status).toBe(200);
    }
    const { looks } = broker;
    await broker.catalog("p299");
    expect(broker.looks).toBe(looks);
    await broker.catalog("p0");
    expect(broker.looks).toBe(looks + 1);
  });

  test("it was last changed when the services or what the platform sees of them was", async () => {
    const broker = await start();
    expect((await broker.catalog("west")).headers["last-modified"]).toBe(new Date(2_000_000).toUTCString());
    broker.changedAt = 5_000_000;
    expect((await broker.catalog("west")).headers["last-modified"]).toBe(new Date(5_000_000).toUTCString());
  });

  test("who runs the broker may say which platforms there are, in a function that takes its time", async () => {
    const there = new Set(["west"]);
    const { catalog } = await start({ platforms: async (platform) => there.has(platform) });
    expect((await catalog("west")).status).toBe(200);
    expect((await catalog("east")).status).toBe(404);
    there.add("east");
    expect((await catalog("east")).status).toBe(200);
  });

  test("the judge is told the platform", async () => {
    const { flow } = await start({
      source: {
        judge: {
          provision: (_service, _plan, platform) =>
            platform === "east" ? { kind: "allowed" } : { kind: "refused", code: "forbidden", why: "not granted" },
          planChange: () => null,
          accepted: async () => null,
        },
      },
    });
    const put = (platform: string) =>
      flow.request("PUT", `/${platform}/v2/service_instances/i1`, {
        body: { service_id: "a-id", plan_id: "a-small", organization_guid: "o", space_guid: "s" },
      });
    expect((await put("east")).status).toBe(201);
    expect((await put("west")).status).toBe(403);
  });
});

describe("what a source tells of an instance that is fetched", () => {
  async function fetched(instanceMetadata: NonNullable<ServiceSource["instanceMetadata"]>) {
    const { flow } = await start({ source: { instanceMetadata } });
    await flow.request("PUT", "/east/v2/service_instances/i1", {
      body: { service_id: "a-id", plan_id: "a-small", organization_guid: "o", space_guid: "s" },
    });
    return { flow, get: () => flow.request("GET", "/east/v2/service_instances/i1") };
  }
  const recorded = { labels: { made: "yes" }, attributes: { size: "small", health: "unknown" } };

  test("is laid over what was recorded, at the moment of asking", async () => {
    let health = "Degraded";
    const asked: object[] = [];
    const { get } = await fetched(async (address, serviceId) => {
      asked.push({ ...address, serviceId });
      return { attributes: { health } };
    });
    const attributes = { size: "small", health: "Degraded" };
    expect((await get()).body.metadata).toEqual({ ...recorded, attributes });
    health = "Ready";
    expect((await get()).body.metadata).toEqual({ ...recorded, attributes: { ...attributes, health: "Ready" } });
    expect(asked[0]).toEqual({ platform: "east", instance: "i1", serviceId: "a-id" });
  });

  test.each([
    ["fails", () => Promise.reject(new Error("broken"))],
    [
      "throws",
      () => {
        throw new Error("broken");
      },
    ],
    ["says nothing", async () => undefined],
    ["says what is malformed", async () => ({ attributes: "all well" }) as never],
  ])("is left out where it %s", async (_what, instanceMetadata) => {
    const { get } = await fetched(instanceMetadata);
    expect(await get()).toMatchObject({ status: 200, body: { metadata: recorded } });
  });

  test("is left out where it does not come in time", async () => {
    const { flow, get } = await fetched(() => new Promise(() => undefined));
    const answer = get();
    await flow.advance(2_000);
    expect(await answer).toMatchObject({ status: 200, body: { metadata: recorded } });
  });
});
