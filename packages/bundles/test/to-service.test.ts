import { buildCatalog } from "@osbert/broker";
import { expect, test } from "vitest";
import type { BundleSpec } from "../src/formats/bundle-spec.js";
import { parseOsbertYaml } from "../src/formats/parse-osbert-yaml.js";
import { type ServiceNaming, toService } from "../src/formats/to-service.js";

const parsed = parseOsbertYaml(`osbert: 1
name: cache
version: 2.0.0
description: A cache
tags: [memory]
metadata: { displayName: Cache }
async: unsupported
plans:
  small:
    description: Little
    provision: { type: object, properties: { size: { type: integer } } }
    updatesTo: [large]
  large: { description: Much, free: false, bindable: false }
`);
const spec = (parsed as { readonly spec: BundleSpec }).spec;

const naming: ServiceNaming = {
  id: "service-1",
  name: "cache-second",
  plans: [
    { id: "plan-1", name: "small" },
    { id: "plan-2", name: "large" },
  ],
  revision: "r1",
  version: "2.0.0+abc",
};

const catalogOf = (given: ServiceNaming) =>
  buildCatalog([{ ...toService(spec, given), bind: async () => ({}), update: async () => undefined }]);

test("F5-30, F5-60, F5-81: a bundle as the catalog shows it", () => {
  expect(JSON.parse(catalogOf(naming).body)).toEqual({
    services: [
      {
        id: "service-1",
        name: "cache-second",
        description: "A cache",
        tags: ["memory"],
        metadata: { displayName: "Cache" },
        bindable: true,
        instances_retrievable: true,
        bindings_retrievable: true,
        plan_updateable: true,
        plans: [
          {
            ...{ id: "plan-1", name: "small", description: "Little", free: true, bindable: true },
            ...{ plan_updateable: true, metadata: {}, maintenance_info: { version: "2.0.0+abc" } },
            schemas: {
              service_instance: {
                create: {
                  parameters: {
                    $schema: "http://json-schema.org/draft-04/schema#",
                    type: "object",
                    properties: { size: { type: "integer" } },
                  },
                },
              },
            },
          },
          {
            ...{ id: "plan-2", name: "large", description: "Much", free: false, bindable: false },
            ...{ plan_updateable: false, metadata: {}, maintenance_info: { version: "2.0.0+abc" } },
          },
        ],
      },
    ],
  });
  expect(catalogOf(naming).warnings).toEqual([]);
});

test.each([
  ["optional", "prefer"],
  ["required", "require"],
  ["unsupported", "never"],
] as const)("a bundle whose async is %s is asked as %s, for every action", (async, mode) => {
  const rules = { provision: mode, update: mode, deprovision: mode, bind: mode, unbind: mode };
  expect(toService({ ...spec, async }, naming)).toMatchObject({ async: rules, revision: "r1" });
});

test("F5-43: a plan without an id is not offered", () => {
  const { plans } = toService(spec, { ...naming, plans: [{ id: "plan-2", name: "large" }] });
  expect(Object.keys(plans)).toEqual(["large"]);
});

test("F5-40: a plan that left is listed as deprecated where that is wanted, and never in the place of one that is there", () => {
  const [small, large] = spec.plans;
  if (small === undefined || large === undefined) throw new Error("there are two plans");
  const retired = [
    { id: "old-1", plan: { ...small, name: "tiny" } },
    { id: "old-2", plan: large },
  ];
  const { plans } = JSON.parse(catalogOf({ ...naming, retired }).body).services[0];
  expect(plans.map(({ id }: { readonly id: string }) => id)).toEqual(["plan-1", "plan-2", "old-1"]);
  expect(plans[2]).toMatchObject({ name: "tiny", metadata: { deprecated: true } });
  expect(plans[2]).not.toHaveProperty("maintenance_info");
});
