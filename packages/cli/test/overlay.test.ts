import { buildCatalog, CatalogError, defineService, type Service } from "@osbert/broker";
import type { Catalog } from "@osbert/protocol";
import { expect, test } from "vitest";
import { catalogFaults } from "../src/serve/catalog-faults.js";
import { overlay } from "../src/serve/overlay.js";
import { faultLine } from "../src/settings/fault.js";
import { loadSettings } from "../src/settings/load.js";
import { services } from "./fixtures/services.js";
import { outsideWith } from "./outside.js";

const svg = "<svg xmlns='http://www.w3.org/2000/svg'/>";

function overlaid(catalog: string, given: readonly Service[] = services) {
  const files = { "/place/o.yaml": `module: s.ts\ncatalog:\n  services:\n${catalog}`, "/place/i.svg": svg };
  const { settings, places } = loadSettings("o.yaml", outsideWith(files, { SECRET: "dashboard" }));
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
    "o.yaml:4:5 catalog.services.databse: the module has no service of this name; did you mean database?",
    "o.yaml:6:5 catalog.services.other: the module has no service of this name; it has database, queue",
    "o.yaml:5:23 catalog.services.queue.plans.onyl: the module has no plan of this name; did you mean only?",
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
