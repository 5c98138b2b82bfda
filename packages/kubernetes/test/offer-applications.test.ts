import { buildCatalog, type Service } from "@osbert/broker";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { apiCredentials, declaredGateway } from "../src/applications/api-credentials.js";
import type { ApiEntry, Application, ApplicationKind, ApplicationService } from "../src/applications/application.js";
import type { ApplicationRecord } from "../src/applications/catalog-records.js";
import { keptOffer, offerApplications, type ServiceOffer } from "../src/applications/offer-applications.js";

const api: ApiEntry = {
  id: "0a-1",
  name: "2 Orders & more",
  targetUrl: "https://shop.example",
  gatewayUrl: "http://gateway.example",
  accessLabel: "shop-orders",
  credentials: null,
  requestParameters: null,
};

function service(id: string, more: Partial<ApplicationService> = {}): ApplicationService {
  return {
    ...{ id, name: id, displayName: id, description: id, provider: null, longDescription: null, labels: {}, tags: [] },
    ...{ events: true, apis: [], parameters: null, ...more },
  };
}

function record(
  name: string,
  services: readonly ApplicationService[],
  { since = 0, kind = "kyma" as ApplicationKind, ...more }: Partial<Application> & { since?: number } = {},
): ApplicationRecord {
  const application = {
    ...{ name, uid: name, kind, displayName: name, provider: "", description: name, longDescription: null },
    ...{ labels: {}, tags: [], externalId: `${name}-id`, ...more },
  };
  const kept = services.map((each) => ({ service: each, since, removedAt: null }));
  return { application, generation: 1, since, removedAt: null, services: kept, findings: [] };
}

const told = ({ id, name, plans }: ServiceOffer) => [
  id,
  name,
  plans.map((plan) => [plan.id, plan.name, plan.isBindable]),
];

describe("services made of applications", () => {
  test("of services, one each with one plan, whose id is to the letter the predecessor's", () => {
    const { services, findings } = offerApplications(
      [record("shop", [service("s1", { apis: [api], labels: { a: "b" } }), service("s2")])],
      "services",
    );
    expect(services.map(told)).toEqual([
      ["s1", "s1", [["s1-plan", "default", true]]],
      ["s2", "s2", [["s2-plan", "default", false]]],
    ]);
    expect(services.map(({ isBindable }) => isBindable)).toEqual([true, false]);
    expect(services[0]?.metadata).toMatchObject({
      applicationServiceId: "s1",
      labels: { a: "b", provisionOnlyOnce: "true" },
      bindingLabels: { "shop-orders": "true" },
    });
    expect(findings).toEqual([]);
  });

  test("of applications, one each with a plan for each service; one without an id is a finding", () => {
    const { services, findings } = offerApplications(
      [
        record("shop", [service("s1", { apis: [api], parameters: { type: "object" } }), service("s2")]),
        record("nameless", [service("s3")], { externalId: null }),
      ],
      "applications",
    );
    expect(services.map(told)).toEqual([
      [
        "shop-id",
        "shop",
        [
          ["s1", "s1", true],
          ["s2", "s2", false],
        ],
      ],
    ]);
    expect(services[0]?.metadata).toMatchObject({ labels: { "documentation-per-plan": "true" } });
    expect(services[0]?.plans[0]?.parameters).toEqual({ type: "object" });
    expect(findings).toMatchObject([{ application: "nameless", path: "spec.compassMetadata.applicationId" }]);
  });

  test.each(["services", "applications"] as const)(
    "of Osbert's own, plans for what there is, whatever the mapping (%s)",
    (mapping) => {
      const own = [
        service("both", { apis: [api] }),
        service("events"),
        service("apis", { events: false, apis: [api] }),
      ];
      const { services } = offerApplications([record("shop", own, { kind: "osbert" })], mapping);
      expect(services.map(told)).toEqual([
        [
          "both",
          "both",
          [
            ["both-events", "events", false],
            ["both-api", "api", true],
            ["both-all", "all", true],
          ],
        ],
        ["events", "events", [["events-events", "events", false]]],
        ["apis", "apis", [["apis-api", "api", true]]],
      ]);
    },
  );

  test("of two with one id, the one that was there first has it, also if it comes later in the alphabet", () => {
    const { services, findings } = offerApplications(
      [record("a", [service("s1")], { since: 2 }), record("b", [service("s1")], { since: 1 })],
      "services",
    );
    expect(services.map(({ plans }) => plans[0]?.content.application)).toEqual(["b"]);
    expect(findings).toMatchObject([{ application: "a", message: expect.stringContaining("another one had before") }]);
  });

  test("names that are none, or two with one, are told apart by their ids, with a finding", () => {
    const named = (id: string, name: string) => service(id, { name });
    const { services, findings } = offerApplications(
      [
        record("shop", [
          named("1", "Örders & more!"),
          named("2", "orders"),
          named("3", "orders"),
          named("4", "注文"),
          named("5", "x".repeat(253)),
        ]),
      ],
      "services",
    );
    const names = services.map(({ name }) => name);
    expect(names).toEqual([
      "orders-more",
      "orders",
      expect.stringMatching(/^orders-[0-9a-f]{5}$/),
      "service",
      "x".repeat(100),
    ]);
    expect(findings.length).toBe(4);
  });
});

test("what is offered breaks no rule of the specification, and no two have an id or a name in common", () => {
  const services = fc.array(
    fc.record({
      id: fc.constantFrom("a", "b", "a-plan", "a-events", "b-api"),
      name: fc.string({ unit: "grapheme" }),
      events: fc.boolean(),
      isApi: fc.boolean(),
    }),
    { maxLength: 5 },
  );
  const records = fc.uniqueArray(
    fc.record({
      ...{
        name: fc.constantFrom("x", "y", "z"),
        services,
        since: fc.nat(3),
        kind: fc.constantFrom("kyma" as const, "osbert" as const),
      },
      externalId: fc.constantFrom(null, "a", "x", "z"),
    }),
    { selector: ({ name }) => name },
  );
  fc.assert(
    fc.property(records, fc.constantFrom("services" as const, "applications" as const), (drawn, mapping) => {
      const all = drawn.map(({ name, services: own, since, kind, externalId }) => {
        const unique = [...new Map(own.map((each) => [each.id, each])).values()];
        const made = unique.map(({ id, name: called, events, isApi }) =>
          service(id, { name: called, events: events || !isApi, apis: isApi ? [api] : [] }),
        );
        return record(name, made, { since, kind, externalId });
      });
      const offer = offerApplications(all, mapping);
      const asService = ({ id, name, description, plans, metadata }: ServiceOffer): Service => ({
        ...{ id, name, description, metadata, bindable: false },
        plans: Object.fromEntries(plans.map((plan) => [plan.name, { id: plan.id, description: plan.description }])),
      });
      // Throws where two have something in common.
      buildCatalog(offer.services.map(asService));
      expect(offerApplications([...all].reverse(), mapping)).toEqual(offer);
      for (const each of offer.services) {
        const owner = all.find(({ application }) => application.name === each.plans[0]?.content.application);
        const kept = owner && keptOffer(owner, each.id, each.revision);
        expect(kept?.plans.map(({ id }) => id)).toEqual(expect.arrayContaining(each.plans.map(({ id }) => id)));
      }
    }),
    { numRuns: 300 },
  );
});

describe("what a binding gives", () => {
  const application: Application = { ...record("shop", []).application, services: [] };
  const secrets: Record<string, Record<string, string>> = {
    basic: { username: "u", password: "p", other: "not told" },
    request: { headers: '{"x-tenant":["a"]}', queryParameters: "no JSON" },
  };
  const of = (apis: readonly ApiEntry[], revision: ServiceOffer["revision"]) =>
    apiCredentials({
      ...{ namespace: "ns", application, service: service("s1", { apis }), revision, gateway: declaredGateway },
      secret: ({ name }) => secrets[name] ?? {},
    });
  const basic = (name: string): ApiEntry["credentials"] => ({
    ...{ type: "basic", tokenUrl: null, csrfTokenUrl: "https://csrf.example" },
    secret: { namespace: "kyma-integration", name },
  });

  test("of services, the gateway's address and nothing else", () => {
    expect(of([api], "services-1")).toEqual({ GATEWAY_URL: "http://gateway.example" });
    expect(of([{ ...api, gatewayUrl: null }], "services-1")).toBe(null);
  });

  test("of applications, what callers need, and where each API is, under names that an environment can have", () => {
    const apis = [
      { ...api, credentials: basic("basic"), requestParameters: { namespace: "kyma-integration", name: "request" } },
      { ...api, gatewayUrl: null },
    ];
    const given = of(apis, "applications-1") as Record<string, string>;
    expect(JSON.parse(given.CONFIGURATION ?? "")).toEqual({
      credentials: { username: "u", password: "p" },
      csrfConfig: { tokenUrl: "https://csrf.example" },
      requestParameters: { headers: { "x-tenant": ["a"] } },
    });
    expect({ ...given, CONFIGURATION: "" }).toEqual({
      CREDENTIALS_TYPE: "basic",
      CONFIGURATION: "",
      ORDERS_MORE_0A_1_GATEWAY_URL: "http://gateway.example",
      ORDERS_MORE_0A_1_TARGET_URL: "https://shop.example",
      ORDERS_MORE_0A_1_2_TARGET_URL: "https://shop.example",
      ORDERS_MORE_0A_1_2_CREDENTIALS_TYPE: "noauth",
      ORDERS_MORE_0A_1_2_CONFIGURATION: '{"credentials":{}}',
    });
    for (const name of Object.keys(given)) expect(name).toMatch(/^[A-Z_][A-Z0-9_]*$/);
  });
});
