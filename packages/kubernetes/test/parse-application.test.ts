import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { derivedId } from "../src/applications/application-id.js";
import { parseApplication } from "../src/applications/parse-application.js";
import { parseGrant } from "../src/applications/parse-grant.js";
import type { ClusterObject } from "../src/cluster/cluster-object.js";

const options = { secretNamespace: "kyma-integration" };

function object(spec: unknown, name = "commerce"): ClusterObject {
  return { apiVersion: "v1", kind: "Application", metadata: { name, uid: "u1" }, spec };
}

const commerce = {
  description: "A shop",
  displayName: "Commerce",
  providerDisplayName: "Shops",
  labels: { region: "eu", "not a label!": "x", tier: "has blanks" },
  tags: ["shop", 7],
  compassMetadata: { applicationId: "28d0bfa1" },
  services: [
    {
      id: "orders",
      name: "orders",
      displayName: "Orders",
      description: "<script>alert(1)</script>",
      authCreateParameterSchema: '{"type":"object"}',
      entries: [
        { type: "Events" },
        {
          type: "API",
          id: "orders-api",
          name: "Orders API",
          targetUrl: "https://shop.example/orders",
          gatewayUrl: "http://gateway.example/orders",
          accessLabel: "commerce-orders",
          credentials: {
            type: "OAuth",
            secretName: "orders-secret",
            authenticationUrl: "https://shop.example/token",
            csrfInfo: { tokenEndpointURL: "https://shop.example/csrf" },
          },
          requestParametersSecretName: "orders-parameters",
        },
      ],
    },
  ],
};

describe("an Application of Kyma's", () => {
  test("is read whole, markup as the text that it is", () => {
    const { application, findings } = parseApplication("kyma", object(commerce), options);
    expect(application).toMatchObject({
      ...{ name: "commerce", kind: "kyma", displayName: "Commerce", provider: "Shops", externalId: "28d0bfa1" },
      ...{ labels: { region: "eu" }, tags: ["shop"] },
      services: [
        {
          ...{ id: "orders", description: "<script>alert(1)</script>", events: true, parameters: { type: "object" } },
          apis: [
            {
              ...{ id: "orders-api", name: "Orders API", gatewayUrl: "http://gateway.example/orders" },
              credentials: {
                ...{ type: "oauth", tokenUrl: "https://shop.example/token", csrfTokenUrl: "https://shop.example/csrf" },
                secret: { namespace: "kyma-integration", name: "orders-secret" },
              },
              requestParameters: { namespace: "kyma-integration", name: "orders-parameters" },
            },
          ],
        },
      ],
    });
    expect(findings.map(({ path }) => path)).toEqual(["spec.labels", "spec.labels.tier", "spec.tags[1]"]);
  });

  test("services without an id, two with one and those with nothing are left out, and the rest is served", () => {
    const entries = [{ type: "Events" }];
    const services = [
      { name: "a", entries },
      { id: "b", name: "b", entries },
      { id: "b", entries },
      { id: "c" },
      "d",
      null,
    ];
    const { application, findings } = parseApplication("kyma", object({ services }), options);
    expect(application?.services.map(({ id }) => id)).toEqual(["b"]);
    expect(findings.map(({ path }) => path)).toEqual([
      "spec.services[0].id",
      "spec.services[2]",
      "spec.services[3]",
      "spec.services[4]",
      "spec.services[4].id",
      "spec.services[5].id",
    ]);
  });

  test("megabytes in descriptions are cut, with a finding", () => {
    const description = "x".repeat(3_000_000);
    const services = [{ id: "a", description, entries: [{ type: "Events" }] }];
    const { application, findings } = parseApplication("kyma", object({ description, services }), options);
    expect(JSON.stringify(application).length).toBeLessThan(10_000);
    expect(findings.map(({ path }) => path)).toEqual(["spec.description", "spec.services[0].description"]);
    expect(JSON.stringify(findings).length).toBeLessThan(1_000);
  });

  test("addresses that are none, and Secrets in other places, are not taken", () => {
    const entry = {
      type: "API",
      targetUrl: "javascript:alert(1)",
      gatewayUrl: "no address",
      credentials: { type: "Basic", secretName: "../kube-system/admin" },
    };
    const { application, findings } = parseApplication(
      "kyma",
      object({ services: [{ id: "a", entries: [entry] }] }),
      options,
    );
    expect(application?.services[0]?.apis).toMatchObject([{ targetUrl: null, gatewayUrl: null, credentials: null }]);
    expect(findings.length).toBe(4);
  });
});

describe("an Application of Osbert's own", () => {
  test("has ids of names where it says none, and they do not run into each other", () => {
    const of = (name: string, service: string) =>
      parseApplication("osbert", object({ services: [{ name: service, events: true }] }, name), options).application
        ?.services[0]?.id;
    const long = "a".repeat(253);
    const ids = [of("a", "bc"), of("ab", "c"), of(long, "x"), of(`${long.slice(1)}b`, "x"), of("a", "bc")];
    expect(new Set(ids).size).toBe(4);
    expect(ids[0]).toBe(ids[4]);
    expect(ids[0]).toMatch(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
  });

  test("names parts apart, whatever they hold", () => {
    fc.assert(
      fc.property(fc.array(fc.string()), fc.array(fc.string()), (one, other) => {
        expect(derivedId(...one) === derivedId(...other)).toBe(JSON.stringify(one) === JSON.stringify(other));
      }),
    );
  });
});

describe("a grant", () => {
  const grant = (kind: "kyma" | "osbert", spec: unknown) =>
    parseGrant(kind, {
      ...{ apiVersion: "v1", kind: "Grant", metadata: { name: "commerce", namespace: "shop", uid: "u1" } },
      ...(spec !== undefined && { spec }),
    }).grant;

  test("without a list grants everything, with an empty one nothing", () => {
    expect(grant("kyma", undefined)).toMatchObject({ namespace: "shop", application: "commerce", services: null });
    expect(grant("kyma", { services: null })?.services).toBe(null);
    expect(grant("kyma", { services: [] })?.services).toEqual([]);
    expect(grant("kyma", { services: [{ id: "a" }, { id: "a" }, {}, 7] })?.services).toEqual(["a"]);
    expect(grant("osbert", { application: "other", services: ["a", 7] })).toMatchObject({
      application: "other",
      services: ["a"],
    });
  });

  test("that cannot be read grants nothing", () => {
    expect(grant("kyma", "everything")).toBe(null);
    expect(grant("kyma", { services: "all" })?.services).toEqual([]);
    expect(grant("osbert", {})).toBe(null);
  });
});

test("whatever stands in a resource, it is read or told, bounded, and never thrown", () => {
  const keys = fc.constantFrom(
    ...["description", "displayName", "labels", "tags", "services", "id", "name", "entries", "apis", "type", "events"],
    ...["credentials", "secretName", "targetUrl", "compassMetadata", "applicationId", "__proto__", "parameters"],
  );
  const leaf = fc.oneof(
    fc.string({ unit: "binary" }),
    fc.constantFrom("API", "Events", "Basic"),
    fc.integer(),
    fc.boolean(),
    fc.constant(null),
  );
  const { spec } = fc.letrec<{ spec: unknown }>((tie) => ({
    spec: fc.oneof({ depthSize: "small" }, leaf, fc.array(tie("spec")), fc.dictionary(keys, tie("spec"))),
  }));
  fc.assert(
    fc.property(fc.constantFrom("kyma" as const, "osbert" as const), spec, (kind, value) => {
      const { application, findings } = parseApplication(kind, object(value), options);
      expect(findings.length).toBeLessThanOrEqual(50);
      for (const service of application?.services ?? []) {
        expect(service.id).not.toBe("");
        expect(service.events || service.apis.length > 0).toBe(true);
      }
      expect(JSON.parse(JSON.stringify(application))).toEqual(application);
      parseGrant(kind, object(value));
    }),
    { numRuns: 500 },
  );
});
