import type { ServicePlan } from "@osbert/protocol";
import { expect, test } from "vitest";
import { PlanSchemas } from "../src/brokers/plan-schemas.js";
import {
  largestParametersBytes,
  type PreflightIntent,
  type PreflightState,
  preflight,
} from "../src/decisions/preflight.js";
import type { OfferingRecord } from "../src/records/broker-record.js";
import type { Freeze } from "../src/records/freeze-record.js";
import { preflightRules } from "../src/records/preflight-report.js";
import type { Visibility } from "../src/records/visibility-record.js";

const schema = (type: string) => ({
  parameters: {
    $schema: "http://json-schema.org/draft-07/schema#",
    type: "object",
    properties: { size: { type } },
    additionalProperties: false,
  },
});

const small: ServicePlan = {
  ...{ id: "small", name: "small", description: "", plan_updateable: true, binding_rotatable: true },
  schemas: {
    service_instance: { create: schema("number"), update: schema("string") },
    service_binding: { create: schema("boolean") },
  },
  maintenance_info: { version: "2.0.0" },
};
const plans: readonly ServicePlan[] = [
  small,
  { id: "large", name: "large", description: "", schemas: { service_instance: { update: schema("boolean") } } },
  { id: "bare", name: "bare", description: "", bindable: false },
  { id: "former", name: "former", description: "" },
  {
    ...{ id: "broken", name: "broken", description: "", plan_updateable: true },
    schemas: {
      service_instance: {
        create: { parameters: { $schema: "http://json-schema.org/draft-07/schema#", type: "nonsense" } },
        update: {
          parameters: { $schema: "http://json-schema.org/draft-07/schema#", properties: { a: { pattern: "(?=x)" } } },
        },
      },
      service_binding: {
        create: {
          parameters: {
            $schema: "http://json-schema.org/draft-07/schema#",
            properties: { a: { allOf: [{ $ref: "#" }, { $ref: "#" }] } },
          },
        },
      },
    },
  },
];
const offering: OfferingRecord = {
  offering: { id: "db", name: "db", description: "", bindable: true, plans },
  leftAt: null,
  plansLeft: { former: 1 },
};
const schemas = new PlanSchemas();
const fresh: PreflightState = {
  ...{ space: "space", name: "orders", brokerName: "acme", offering, instance: null, freezes: [], now: 1_000 },
  visibilities: [],
  health: { state: "ok", since: 0, message: null, failures: 0 },
  checkParameters: (plan, use, parameters) => schemas.check(plan, use, parameters),
};
const ready = { phase: "ready", plan: "small", usable: true, bindings: 0 } as const;
const existing: PreflightState = { ...fresh, instance: ready };
const create = (plan: string, parameters: string | null = null): PreflightIntent => ({
  op: "create",
  plan,
  parameters,
});
const update = (plan: string | null, parameters: string | null = null): PreflightIntent => ({
  op: "update",
  plan,
  parameters,
});
const bind = (parameters: string | null = null): PreflightIntent => ({ op: "bind", binding: "b", parameters });
const rotate = (expiresAt: string | null): PreflightIntent => ({
  op: "rotate",
  binding: "b2",
  predecessorExpiresAt: expiresAt,
});
const visibility: Visibility = {
  ...{ name: "v", broker: "acme", offering: "db", plan: "large", spaces: ["other"], by: "olga", at: 0 },
};
const ofOffering: Visibility = { ...visibility, name: "all", plan: null };
const fullQuota = { severity: "error", rule: "quota", path: null, message: "full" } as const;
const freeze: Freeze = {
  ...{ id: "1", space: "space", broker: null, plan: null, by: "olga", at: 0, reason: "move", effect: "reject" },
  ...{ deletesExempt: true, until: 2_000 },
};
const withPhase = (phase: NonNullable<PreflightState["instance"]>["phase"]) => ({
  ...fresh,
  instance: { ...ready, phase },
});

const cases: readonly (readonly [
  title: string,
  intent: PreflightIntent,
  state: PreflightState,
  rules: readonly string[],
])[] = [
  ["a create of what is offered", create("small", '{"size":1}'), fresh, []],
  ["a name that cannot be typed", create("small"), { ...fresh, name: "a b" }, ["error name"]],
  ["a name with a slash", { op: "bind", binding: "a/b", parameters: null }, existing, ["error name"]],
  ["a broker that nobody registered", create("small"), { ...fresh, health: undefined }, ["error broker-unknown"]],
  [
    "a broker that is down",
    create("small"),
    { ...fresh, health: { state: "failing", since: 0, message: null, failures: 1 } },
    ["warning broker-unreachable"],
  ],
  ["an offering that nobody has", create("small"), { ...fresh, offering: undefined }, ["error offering-unknown"]],
  [
    "E10-11: a create of an offering that left",
    create("small"),
    { ...fresh, offering: { ...offering, leftAt: 5 } },
    ["error offering-left"],
  ],
  [
    "E10-11: an update of an instance whose offering left",
    update(null, '{"size":"x"}'),
    { ...existing, offering: { ...offering, leftAt: 5 } },
    [],
  ],
  ["a plan that nobody has", create("huge"), fresh, ["error plan-unknown"]],
  ["E10-11: a create of a plan that left", create("former"), fresh, ["error plan-left"]],
  ["E10-11: a change to a plan that left", update("former"), existing, ["error plan-left"]],
  [
    "E10-11: an update that stays with a plan that left",
    update(null, "{}"),
    { ...existing, instance: { ...ready, plan: "former" } },
    [],
  ],
  [
    "P-CAT-07, P-UPD-01: a change from a plan that does not let go",
    update("small"),
    { ...existing, instance: { ...ready, plan: "large" } },
    ["error plan-not-updateable"],
  ],
  [
    "P-UPD-01: parameters of a plan that does not let go",
    update(null, '{"size":true}'),
    { ...existing, instance: { ...ready, plan: "large" } },
    [],
  ],
  [
    "P-BIND-01: a bind of a plan that cannot be bound",
    bind(),
    { ...existing, instance: { ...ready, plan: "bare" } },
    ["error plan-not-bindable"],
  ],
  [
    "a change to a plan that cannot be bound, with bindings",
    update("bare"),
    { ...existing, instance: { ...ready, bindings: 1 } },
    ["error bindings-need-plan"],
  ],
  ["a change to a plan that cannot be bound, without", update("bare"), existing, []],
  [
    "P-ROT-01: a rotation where bindings cannot be rotated",
    rotate(null),
    { ...existing, instance: { ...ready, plan: "large" } },
    ["error binding-not-rotatable"],
  ],
  [
    "P-ROT-02: a rotation of a binding that has expired",
    rotate("1970-01-01T00:00:00.500Z"),
    existing,
    ["error binding-expired"],
  ],
  ["P-ROT-02: a rotation of one that has not", rotate("1970-01-01T00:00:09Z"), existing, []],
  ["an upgrade to what the catalog has", { op: "upgrade", version: "2.0.0" }, existing, []],
  [
    "E10-52: an upgrade to another version",
    { op: "upgrade", version: "1.0.0" },
    existing,
    ["error maintenance-unknown"],
  ],
  [
    "an upgrade of a plan that has no versions",
    { op: "upgrade", version: "1.0.0" },
    { ...existing, instance: { ...ready, plan: "large" } },
    ["error maintenance-unknown"],
  ],
  [
    "E10-51: an upgrade and another plan at once",
    { op: "upgrade", version: "2.0.0", plan: "large" },
    existing,
    ["error maintenance-with-plan"],
  ],
  ["parameters against the schema of a create", create("small", '{"size":"x"}'), fresh, ["error parameters-schema"]],
  ["parameters against the schema of an update", update(null, '{"size":1}'), existing, ["error parameters-schema"]],
  ["parameters against the schema of a bind", bind('{"size":1}'), existing, ["error parameters-schema"]],
  ["E10-9: parameters against the projected plan", update("large", '{"size":true}'), existing, []],
  ["parameters that are none", create("small", "[1]"), fresh, ["error parameters-not-object"]],
  ["parameters that are no JSON", create("small", "{"), fresh, ["error parameters-not-object"]],
  [
    "parameters without an end",
    create("small", `{"size":${"[".repeat(200)}${"]".repeat(200)}}`),
    fresh,
    ["error parameters-not-object"],
  ],
  [
    "parameters of megabytes",
    create("small", JSON.stringify({ size: "ä".repeat(largestParametersBytes / 2) })),
    fresh,
    ["error parameters-too-large"],
  ],
  ["a schema that is none", create("broken", "{}"), fresh, ["warning schema-unusable"]],
  [
    "a schema with a pattern that takes for ever",
    update(null, '{"a":"x"}'),
    { ...existing, instance: { ...ready, plan: "broken" } },
    ["warning schema-unusable"],
  ],
  [
    "a schema whose work doubles with each level of the parameters",
    bind(`${'{"a":'.repeat(60)}1${"}".repeat(60)}`),
    { ...existing, instance: { ...ready, plan: "broken" } },
    ["warning schema-unusable"],
  ],
  ["a create under a name that is taken", create("small"), existing, ["error phase"]],
  ["a create under a name that is free again", create("small"), withPhase("gone"), []],
  ["an update of what is not there", update(null, "{}"), fresh, ["error phase"]],
  ["an update of what is being deleted", update(null, "{}"), withPhase("deleting"), ["error phase"]],
  ["an update of what nobody manages", update(null, "{}"), withPhase("unmanaged"), ["error phase"]],
  ["an update of what could not be created", update(null, "{}"), withPhase("failed"), []],
  ["a bind of what could not be created", bind(), withPhase("failed"), ["error phase"]],
  [
    "P-UPD-07: a bind of what cannot be used",
    bind(),
    { ...existing, instance: { ...ready, usable: false } },
    ["error unusable"],
  ],
  ["E10-28: a delete of what halted", { op: "delete" }, withPhase("halted"), []],
  ["a delete whose offering nobody has any more", { op: "delete" }, { ...existing, offering: undefined }, []],
  ["an adoption of what nobody manages", { op: "adopt", plan: "small" }, withPhase("unmanaged"), []],
  ["an adoption under a name that is taken", { op: "adopt", plan: "small" }, existing, ["error phase"]],
  [
    "a plan that is not offered in the space",
    create("large"),
    { ...fresh, visibilities: [visibility] },
    ["error plan-not-visible"],
  ],
  [
    "a plan that is offered in the space",
    create("large"),
    { ...fresh, visibilities: [{ ...visibility, spaces: ["space"] }] },
    [],
  ],
  [
    "a plan whose offering is offered elsewhere",
    create("large"),
    { ...fresh, visibilities: [ofOffering] },
    ["error plan-not-visible"],
  ],
  [
    "a plan with a rule of its own",
    create("large"),
    { ...fresh, visibilities: [ofOffering, { ...visibility, spaces: ["space"] }] },
    [],
  ],
  [
    "a change of what is not offered here any more",
    update(null, "{}"),
    { ...existing, visibilities: [ofOffering] },
    [],
  ],
  ["a space that is full", create("large"), { ...fresh, found: [fullQuota] }, ["error quota"]],
  ["a change that is frozen", update(null, "{}"), { ...existing, freezes: [freeze] }, ["error frozen"]],
  [
    "a change that will wait",
    update(null, "{}"),
    { ...existing, freezes: [{ ...freeze, effect: "queue" }] },
    ["warning frozen"],
  ],
  ["a delete that a freeze exempts", { op: "delete" }, { ...existing, freezes: [freeze] }, []],
  ["a freeze of another space", update(null, "{}"), { ...existing, freezes: [{ ...freeze, space: "other" }] }, []],
  [
    "a freeze of the plan that is wanted",
    create("small"),
    { ...fresh, freezes: [{ ...freeze, space: null, plan: "small" }] },
    ["error frozen"],
  ],
  [
    "a freeze of the plan to change to",
    update("large"),
    { ...existing, freezes: [{ ...freeze, space: null, plan: "large" }] },
    ["error frozen"],
  ],
  ["an unbind that a freeze exempts", { op: "unbind" }, { ...existing, freezes: [freeze] }, []],
  [
    "a freeze of the plan",
    update(null, "{}"),
    { ...existing, freezes: [{ ...freeze, space: null, plan: "small" }] },
    ["error frozen"],
  ],
  ["a freeze that is over", update(null, "{}"), { ...existing, now: 3_000, freezes: [freeze] }, []],
];

test.each(cases)("%s", (_title, intent, state, rules) => {
  const { ok, findings } = preflight(intent, state);
  expect(findings.map(({ severity, rule }) => `${severity} ${rule}`)).toEqual(rules);
  expect(ok).toBe(!rules.some((rule) => rule.startsWith("error")));
});

test("every rule of the preflight has a case", () => {
  const shown = new Set(cases.flatMap(([, , , rules]) => rules.map((rule) => rule.split(" ")[1])));
  expect(shown).toEqual(new Set(Object.keys(preflightRules)));
});

test("no more compiled schemas are kept than there is room for, and those are the right ones", () => {
  const kept = new PlanSchemas();
  const plan = (max: number): ServicePlan => ({
    ...{ id: "p", name: "p", description: "" },
    schemas: { service_binding: { create: { parameters: { type: "object", maxProperties: max } } } },
  });
  for (let max = 0; max < 300; max++) expect(kept.check(plan(max), "bind", {})).toEqual({ kind: "fine" });
  expect(kept.check(plan(0), "bind", { a: 1 }).kind).toBe("violated");
  expect(kept.check(plan(1), "bind", { a: 1 }).kind).toBe("fine");
});
