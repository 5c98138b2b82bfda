import type { Json, JsonObject } from "@osbert/protocol";
import { namedMisbehaviours } from "./named-misbehaviours.js";

const plan = (name: string, description: string, more: JsonObject = {}): JsonObject => ({
  id: `plan-${name}`,
  name,
  description,
  free: true,
  ...more,
});

const offering = (name: string, plans: readonly Json[], more: JsonObject = {}): JsonObject => ({
  id: `service-${name}`,
  name,
  description: "A service that misbehaves as it is told",
  bindable: true,
  plan_updateable: true,
  plans,
  ...more,
});

/** A plan for each misbehaviour, which is how it is asked for without parameters. */
const namedPlans = (): readonly JsonObject[] =>
  Object.entries(namedMisbehaviours).map(([name, { does }]) => plan(name, `It ${does}`));

const withSchema = (parameters: JsonObject): JsonObject => ({
  services: [
    offering("misbehaving", [plan("good", "A plan", { schemas: { service_instance: { create: { parameters } } } })]),
  ],
});

/** Catalogs by name, each made anew. `usual` has every misbehaviour as a plan, in an offering of which everything can be fetched and in one of which nothing can. */
export const misbehavingCatalogs = {
  usual: () => ({
    services: [
      offering("misbehaving", namedPlans(), { instances_retrievable: true, bindings_retrievable: true }),
      offering("unfetchable", [plan("unfetchable-good", "Nothing of it can be fetched")]),
      offering("rotatable", [plan("rotatable-good", "Bindings are replaced by others", { binding_rotatable: true })]),
      offering("maintained", [
        plan("maintained-good", "Has a version", { maintenance_info: { version: "2.0.0", description: "better" } }),
      ]),
    ],
  }),
  empty: () => ({ services: [] }),
  "no-services": () => ({}),
  list: () => [],
  "ids-twice": () => ({
    services: [
      offering("one", [plan("good", "A plan"), plan("good", "The same again")]),
      offering("one", [plan("other", "A plan")]),
    ],
  }),
  "no-plans": () => ({ services: [offering("misbehaving", [])] }),
  "wrong-types": () => ({
    services: [
      { id: 1, name: ["misbehaving"], description: null, bindable: "yes", plans: { good: true } },
      "misbehaving",
      null,
    ],
  }),
  "schema-too-large": () => withSchema({ type: "object", description: "x".repeat(64 * 1024) }),
  "schema-wrong": () => withSchema({ type: "objekt", properties: [] }),
  "schema-exploding-pattern": () =>
    withSchema({ type: "object", properties: { name: { type: "string", pattern: "^(([a-z])+.)+[A-Z]([a-z])+$" } } }),
  "schema-elsewhere": () => withSchema({ $ref: "http://127.0.0.1:1/schema.json" }),
  "schema-of-itself": () => withSchema({ $ref: "#" }),
  // Written as a text: an object of JavaScript's cannot have such a field by a literal.
  "field-proto": () =>
    JSON.parse(
      '{"services":[{"__proto__":{"polluted":true},"id":"service-p","name":"__proto__","description":"x","bindable":true,"plans":[{"id":"plan-p","name":"constructor","description":"x","__proto__":{"free":false}}]}]}',
    ) as Json,
  "plans-15000": () => ({
    services: Array.from({ length: 150 }, (_, service) =>
      offering(
        `many-${service}`,
        Array.from({ length: 100 }, (_, index) => plan(`${service}-${index}`, `Plan ${index} of offering ${service}`)),
      ),
    ),
  }),
} as const satisfies Readonly<Record<string, () => Json>>;

export type MisbehavingCatalog = keyof typeof misbehavingCatalogs;
