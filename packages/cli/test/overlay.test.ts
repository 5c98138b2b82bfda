import {
  buildCatalog,
  CatalogError,
  defineService,
  defineServiceFunctions,
  type Service,
  type ServiceFunctions,
} from "@osbert/broker";
import type { Catalog } from "@osbert/protocol";
import { faultLine } from "@osbert/server/yaml";
import { expect, test } from "vitest";
import { catalogFaults } from "../src/serve/catalog-faults.js";
import { overlay } from "../src/serve/overlay.js";
import { loadSettings } from "../src/settings/load.js";
import { services } from "./fixtures/services.js";
import { systemWith } from "./system.js";

const svg = "<svg xmlns='http://www.w3.org/2000/svg'/>";

function overlaid(catalog: string, given: readonly (Service | ServiceFunctions)[] = services) {
  const files = { "/place/o.yaml": `module: s.ts\ncatalog:\n  services:\n${catalog}`, "/place/i.svg": svg };
  const { settings, places } = loadSettings("o.yaml", systemWith(files, { SECRET: "dashboard" }));
  return { ...overlay(given, settings.catalog, places), places };
}

function catalogOf(list: readonly Service[]): Catalog {
  return JSON.parse(buildCatalog(list).body) as Catalog;
}

test("an operator's words stand over the code's, by the names of service and plan", () => {
  const { services: list, faults } = overlaid(`
    database:
      description: Operated
      tags: [mine]
      displayName: Our database
      image: i.svg
      supportUrl: https://help.example
      metadata: { team: storage }
      dashboardClient: { id: dash, secret: { env: SECRET }, redirectUri: https://dash.example }
      plans:
        small:
          description: Tiny
          free: false
          bindable: false
          costs: [{ amount: { eur: 9.5 }, unit: MONTHLY }]
          bullets: [one, two]
          maintenanceInfo: { version: 1.2.3 }
          schemas: { provision: { type: object, properties: { size: { type: integer, maximum: 3 } } } }
`);
  expect(faults).toEqual([]);
  const [database, queue] = catalogOf(list).services;
  expect(database).toMatchObject({
    id: "database-id",
    description: "Operated",
    tags: ["mine"],
    metadata: {
      displayName: "Our database",
      kept: "by the code",
      team: "storage",
      supportUrl: "https://help.example",
      imageUrl: `data:image/svg+xml;base64,${Buffer.from(svg).toString("base64")}`,
    },
    dashboard_client: { id: "dash", secret: "dashboard", redirect_uri: "https://dash.example" },
  });
  expect(database?.plans[0]).toMatchObject({
    id: "small-id",
    description: "Tiny",
    free: false,
    bindable: false,
    metadata: { costs: [{ amount: { eur: 9.5 }, unit: "MONTHLY" }], bullets: ["one", "two"] },
    maintenance_info: { version: "1.2.3" },
    schemas: { service_instance: { create: { parameters: { properties: { size: { maximum: 3 } } } } } },
  });
  expect(database?.plans[1]?.description).toBe("Large, says the code");
  expect(queue?.description).toBe("A queue, says the code");
  // The code's own services are untouched: the next reload starts from them.
  expect(catalogOf(services).services[0]?.description).toBe("A database, says the code");
});

test("a plan that is not offered is not in the catalog", () => {
  const { services: list } = overlaid("    database: { plans: { small: { offered: false } } }\n");
  expect(catalogOf(list).services[0]?.plans.map(({ name }) => name)).toEqual(["large"]);
});

test("the functions of a class keep their private fields", async () => {
  const { services: list } = overlaid("    queue: { description: Other }\n");
  const queue = list[1] as unknown as { bind(): Promise<unknown>; description: string };
  expect(queue.description).toBe("Other");
  expect(await queue.bind()).toEqual({ credentials: { secret: "from a private field" } });
});

test("a name that the module does not have is told with its line and the nearest one", () => {
  const { faults } = overlaid("    databse: {}\n    queue: { plans: { onyl: {} } }\n    other: {}\n");
  expect(faults.map(faultLine)).toEqual([
    "o.yaml:5:23 catalog.services.queue.plans.onyl: the module has no plan of this name, and a new one needs id and description; did you mean only?",
    "o.yaml:4:5 catalog.services.databse: the module has no service of this name, and a new one needs use; did you mean database?",
    "o.yaml:6:5 catalog.services.other: the module has no service of this name, and a new one needs use; it has database, queue",
  ]);
});

test("what breaks the specification is told with the line that says it, or else with the module", () => {
  const broken = defineService({
    id: "x",
    name: "broken",
    description: "",
    plans: { p: { id: "p", description: "p" } },
  });
  const { services: list, places } = overlaid(
    "    database: { id: small-id }\n    queue: { plans: { only: { maintenanceInfo: { version: one } } } }\n",
    [...services, broken],
  );
  let lines: readonly string[] = [];
  try {
    buildCatalog(list);
  } catch (error) {
    lines = catalogFaults(error as CatalogError, list, places, "/place/s.ts").map(faultLine);
    expect(error).toBeInstanceOf(CatalogError);
  }
  expect(lines).toEqual([
    expect.stringMatching(/^o.yaml:4:5 catalog.services.database.plans.small.id: /),
    expect.stringMatching(
      /^o.yaml:5:\d+ catalog.services.queue.plans.only.maintenance_info.version: must be a semantic/,
    ),
    expect.stringMatching(/^\/place\/s.ts: services\[2\].description: /),
  ]);
});

test("a plan that the module does not have is added, with its schemas", () => {
  const { services: list, faults } = overlaid(`
    database:
      plans:
        huge:
          id: huge-id
          description: Huge, says the operator
          schemas: { provision: { type: object, required: [size] }, bind: { type: object } }
`);
  expect(faults).toEqual([]);
  const [database] = catalogOf(list).services;
  expect(database?.plans.map(({ name }) => name)).toEqual(["small", "large", "huge"]);
  expect(database?.plans[2]).toMatchObject({
    id: "huge-id",
    description: "Huge, says the operator",
    schemas: {
      service_instance: { create: { parameters: { required: ["size"] } } },
      service_binding: { create: { parameters: { type: "object" } } },
    },
  });
});

test("a service of the file has the functions and the state of the one that it uses, and nothing that the catalog says of that", async () => {
  const { services: list, faults } = overlaid(`
    - { name: messages, use: queue, id: messages-id, description: Messages, image: i.svg,
        plans: [{ name: first, id: first-id, description: First }, { name: second, id: second-id, description: Second }] }
    - { name: database, offered: false }
`);
  expect(faults).toEqual([]);
  const offered = catalogOf(list).services;
  expect(offered.map(({ name }) => name)).toEqual(["queue", "messages"]);
  expect(offered[1]).toMatchObject({ id: "messages-id", description: "Messages", bindable: true });
  expect(offered[1]?.plans.map(({ id, name }) => [id, name])).toEqual([
    ["first-id", "first"],
    ["second-id", "second"],
  ]);
  expect(offered[1]?.metadata).toEqual({ imageUrl: expect.stringMatching(/^data:image\/svg/) });
  const messages = list[1] as unknown as { bind(): Promise<unknown> };
  expect(await messages.bind()).toEqual({ credentials: { secret: "from a private field" } });
});

const functions = defineServiceFunctions({
  name: "cache",
  requires: ["syslog_drain"],
  state: { type: "object", properties: { port: { type: "integer" } }, required: ["port"] },
  async provision(_operation, { plan }) {
    return { state: { port: plan.length } };
  },
  async bind(_operation, { state }) {
    return { credentials: { port: state.port } };
  },
});

test("functions are offered only as the file describes them, under their own name or another", () => {
  expect(overlaid("    queue: {}\n", [...services, functions]).services.map(({ name }) => name)).toEqual([
    "database",
    "queue",
  ]);
  const yaml = `
    cache: { id: c, description: A cache, plans: { one: { id: c1, description: One } } }
    sessions: { use: cache, id: s, description: Sessions, tags: [web], plans: { one: { id: s1, description: One } } }
`;
  const { services: list, faults } = overlaid(yaml, [functions]);
  expect(faults).toEqual([]);
  expect(list.map(({ state }) => state)).toEqual([functions.state, functions.state]);
  expect(catalogOf(list).services).toMatchObject([
    { name: "cache", id: "c", requires: ["syslog_drain"], bindable: true },
    { name: "sessions", id: "s", requires: ["syslog_drain"], tags: ["web"], bindable: true },
  ]);
});

test("what a service of the file lacks is told with its line, and so is what it uses that is not there", () => {
  const { faults } = overlaid(
    `
    cache: { description: A cache, plans: { one: { id: c1 } } }
    other: { use: cahce, id: o, description: Other, plans: { one: { id: o1, description: One } } }
    third: { use: cache, id: t, description: Third }
    fourth: { use: __proto__ }
`,
    [functions],
  );
  expect(faults.map(faultLine)).toEqual([
    "o.yaml:5:45 catalog.services.cache.plans.one: a new one needs description",
    "o.yaml:5:5 catalog.services.cache.id: is missing; only the broker that offers a service can give it one",
    "o.yaml:6:19 catalog.services.other.use: the module has no service and no functions of this name; did you mean cache?",
    "o.yaml:7:5 catalog.services.third.plans: is missing; write at least one plan",
    "o.yaml:8:20 catalog.services.fourth.use: the module has no service and no functions of this name; it has cache",
  ]);
});

test("the same id or name twice is told with the line of the second", () => {
  const twice = () =>
    overlaid(`
    - { name: messages, use: queue, id: m, description: Messages, plans: [{ name: p, id: p, description: P }] }
    - { name: letters, use: queue, id: m, description: Letters, plans: [{ name: p, id: only-id, description: P }] }
`);
  const { services: list, places } = twice();
  let lines: readonly string[] = [];
  try {
    buildCatalog(list);
  } catch (error) {
    lines = catalogFaults(error as CatalogError, list, places, "/place/s.ts").map(faultLine);
  }
  expect(lines).toEqual([
    expect.stringMatching(/^o.yaml:6:\d+ catalog.services.letters.id: .* is used by catalog.services.messages.id /),
    expect.stringMatching(/^o.yaml:6:\d+ catalog.services.letters.plans.p.id: /),
  ]);
  const sameName = () => overlaid("    - { name: queue, tags: [a] }\n    - { tags: [b] }\n    - { name: queue }\n");
  expect(sameName).toThrow(
    /^o.yaml:5:7 catalog.services\[1\]: must have a name; .*\no.yaml:6:9 catalog.services.queue: is there twice; give one of them another name$/,
  );
});

test("a schema of the file that is none is told with its line", () => {
  const { services: list, places } = overlaid(`
    database:
      plans:
        small:
          schemas:
            provision: { type: nothing }
`);
  try {
    buildCatalog(list);
    expect.unreachable();
  } catch (error) {
    expect(catalogFaults(error as CatalogError, list, places, "/place/s.ts").map(faultLine)).toContainEqual(
      expect.stringMatching(/^o.yaml:9:24 catalog.services.database.plans.small.schemas.provision: /),
    );
  }
});
