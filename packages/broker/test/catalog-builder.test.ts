import fc from "fast-check";
import { expect, test } from "vitest";
import { buildCatalog, CatalogBuilder } from "../src/catalog/catalog-builder.js";
import { defineService } from "../src/index.js";
import type { Service } from "../src/service/service.js";

function make(id: string, { name = id, plan = `${id}-small`, description = "A test" } = {}): Service {
  return defineService({ id, name, description, plans: { small: { id: plan, description: "One" } } });
}

function outcome(build: () => ReturnType<typeof buildCatalog>) {
  try {
    const { etag, body, services, warnings } = build();
    return { etag, body, warnings, ids: [...services.keys()], offered: [...services.values()], size: services.size };
  } catch (error) {
    return String(error);
  }
}

test("F5-80: catalogs that are made one after the other are as if each were made alone, also after one that was refused", () => {
  // Some have the name of another, or a plan's id, or a description that there is something to say of: so few ids that blocks begin at some of them.
  const known = Array.from({ length: 300 }, (_, index) => `service-${index}`);
  const one = fc.constantFrom(...known).chain((id) =>
    fc.oneof(
      { weight: 30, arbitrary: fc.constant(make(id)) },
      { weight: 3, arbitrary: fc.constant(make(id, { description: "x".repeat(300) })) },
      {
        weight: 1,
        arbitrary: fc.constantFrom(make(id, { name: "service-7" }), make(id, { plan: "service-9-small" })),
      },
    ),
  );
  const list = fc.uniqueArray(one, { maxLength: 120, selector: ({ id }) => id });
  fc.assert(
    fc.property(list, fc.array(fc.tuple(fc.nat(200), fc.nat(3), list), { maxLength: 6 }), (first, steps) => {
      const builder = new CatalogBuilder({});
      let services: readonly Service[] = first;
      expect(outcome(() => builder.build(services))).toEqual(outcome(() => buildCatalog(services)));
      for (const [at, left, added] of steps) {
        services = services.toSpliced(at, left, ...added.slice(0, 3));
        const given = outcome(() => builder.build(services));
        expect(given).toEqual(outcome(() => buildCatalog(services)));
        if (typeof given !== "string")
          for (const [at, id] of given.ids.entries()) expect(given.offered[at]?.service.id).toBe(id);
      }
    }),
    { numRuns: 40 },
  );
});

test("of thousands of services, one that changes, comes or goes costs its neighbours, and all others are not looked at", () => {
  let looks = 0;
  const counted = Array.from({ length: 5_000 }, (_, index) => {
    const service = make(`service-${index}`);
    return Object.defineProperty({ ...service }, "id", {
      enumerable: true,
      get: () => {
        looks += 1;
        return service.id;
      },
    }) as Service;
  });
  const builder = new CatalogBuilder({ areChecked: true });
  const first = builder.build(counted);
  const cost = (services: readonly Service[]) => {
    looks = 0;
    const catalog = builder.build(services);
    return { catalog, looks };
  };
  const changed = cost(counted.with(2_500, make("service-2500", { description: "Another" })));
  const gone = cost(counted.toSpliced(2_500, 1));
  const back = cost(counted);
  for (const { looks } of [changed, gone, back]) expect(looks).toBeLessThan(1_000);
  expect(changed.catalog.etag).not.toBe(first.etag);
  expect(gone.catalog.services.has("service-2500")).toBe(false);
  expect(back.catalog.etag).toBe(first.etag);
  // Who has the first one sees nothing of all that.
  expect([first.services.size, first.services.get("service-2500")?.service]).toEqual([5_000, counted[2_500]]);
});

test("of thousands of services that were all asked for something, few stay made, and what they are stays", () => {
  const services = Array.from({ length: 2_000 }, (_, index) => make(`service-${index}`));
  const catalog = new CatalogBuilder({ areChecked: true }).build(services);
  const offered = [...catalog.services.values()];
  const asked = offered.map(({ plans }) => plans);
  const last = offered.at(-1);
  expect(last?.plans).toBe(asked.at(-1));
  expect(offered[0]?.plans).not.toBe(asked[0]);
  expect([...(offered[0]?.plans.values() ?? [])].map(({ plan }) => plan)).toEqual(
    [...(asked[0]?.values() ?? [])].map(({ plan }) => plan),
  );
});
