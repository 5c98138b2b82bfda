import { expect, test } from "vitest";
import type { Application, ApplicationService } from "../src/applications/application.js";
import type { ClusterObject } from "../src/cluster/cluster-object.js";
import { claim, release } from "../src/flows/claims.js";
import { claimImported } from "../src/import/claim-imported.js";
import { type ImportPlan, planImport } from "../src/import/plan-import.js";
import type { PredecessorObjects } from "../src/import/predecessor-objects.js";

/** An application with a service of events, and one of APIs alone. */
const application = {
  name: "shop",
  externalId: "compass-shop",
  services: [
    { id: "shop-events", events: true },
    { id: "shop-more", events: true },
    { id: "shop-api", events: false },
  ],
} as unknown as Application;

const applications = {
  service(id: string) {
    const service = application.services.find((each: ApplicationService) => each.id === id);
    return service === undefined ? undefined : { application, service };
  },
  isGranted: (namespace: string) => namespace !== "denied",
};

const nothing: PredecessorObjects = {
  ...{ instances: [], classes: [], plans: [], subscriptions: [], brokers: [] },
  namespaces: ["team", "denied"].map((name) => object("Namespace", undefined, name)),
};

function object(kind: string, namespace: string | undefined, name: string, rest: object = {}): ClusterObject {
  const { metadata = {}, ...more } = rest as { metadata?: object };
  const place = { name, ...(namespace !== undefined && { namespace }), uid: `uid-of-${name}` };
  return { apiVersion: "v1", kind, metadata: { ...place, ...metadata }, ...more };
}

const ready = { conditions: [{ type: "Ready", status: "True" }] };

function instance(name: string, spec: object, rest: object = {}, namespace = "team"): ClusterObject {
  return object("ServiceInstance", namespace, name, {
    spec: { externalID: `id-${name}`, ...spec },
    status: ready,
    ...rest,
  });
}

const events = { serviceClassExternalID: "shop-events", servicePlanExternalID: "shop-events-plan" };

function subscription(name: string, service = "shop-events", metadata: object = {}): ClusterObject {
  const labels = { "broker-namespace": "team", "application-name": "shop", "application-service-id": service };
  return object("Subscription", "integration", name, { metadata: { labels, ...metadata } });
}

const broker = object("Broker", "team", "default");

function plan(found: Partial<PredecessorObjects>): ImportPlan {
  return planImport({ ...nothing, ...found }, { applications, broker: "application-broker" });
}

test("an instance of a service is taken over with the Subscription and the Broker that were there", () => {
  const { instances, findings } = plan({
    ...{ instances: [instance("one", events)], subscriptions: [subscription("brokersub-a")], brokers: [broker] },
  });
  expect(findings).toEqual([]);
  expect(instances).toEqual([
    {
      ...{ namespace: "team", name: "one", id: "id-one", serviceId: "shop-events", planId: "shop-events-plan" },
      ...{ parameters: {}, hasSecretParameters: false, deleting: false, mapping: "services" },
      namespaceUid: "uid-of-team",
      flow: {
        ...{ application: "shop", service: "shop-events", broker: { uid: "uid-of-default" } },
        subscription: { name: "brokersub-a", uid: "uid-of-brokersub-a" },
      },
    },
  ]);
});

test("of a whole application, the plan says which of its services it is", () => {
  const { instances } = plan({
    instances: [
      instance("one", { clusterServiceClassExternalID: "compass-shop", clusterServicePlanExternalID: "shop-more" }),
    ],
  });
  expect(instances).toMatchObject([
    { mapping: "applications", serviceId: "compass-shop", flow: { service: "shop-more" } },
  ]);
});

test("classes and plans are found by reference, and the plan that the broker has accepted last counts", () => {
  const named = (kind: string, name: string, externalID: string, by = "application-broker") =>
    object(kind, "team", name, { spec: { externalID, serviceBrokerName: by } });
  const refs = { serviceClassRef: { name: "c1" }, servicePlanRef: { name: "p1" } };
  const found = {
    classes: [named("ServiceClass", "c1", "compass-shop"), named("ServiceClass", "c2", "shop-events", "another")],
    plans: [named("ServicePlan", "p1", "shop-events")],
  };
  const accepted = { ...ready, externalProperties: { servicePlanExternalID: "shop-more" } };
  const { instances, findings } = plan({
    ...found,
    instances: [
      instance("by-reference", refs),
      instance("changed", refs, { status: accepted }),
      instance("foreign", { serviceClassRef: { name: "c2" }, servicePlanRef: { name: "p1" } }),
      instance("unnamed", { serviceClassRef: { name: "shop-api" }, servicePlanRef: { name: "shop-api-plan" } }),
    ],
  });
  expect(instances.map(({ name, planId }) => [name, planId])).toEqual([
    ["by-reference", "shop-events"],
    ["changed", "shop-more"],
    ["unnamed", "shop-api-plan"],
  ]);
  expect(instances.at(-1)?.flow).toBeNull();
  expect(findings.filter(({ object: name }) => name.includes("foreign"))).toEqual([]);
});

test.each<readonly [string, object, object, string, string]>([
  ["no id", { ...events, externalID: undefined }, {}, "team", "no external id"],
  ["no class", { externalID: "x" }, {}, "team", "has not found its class"],
  ["not provisioned", events, { status: {} }, "team", "not provisioned"],
  ["deprovisioned", events, { status: { ...ready, deprovisionStatus: "Succeeded" } }, "team", "not provisioned"],
  ["an unknown service", { ...events, serviceClassExternalID: "x" }, {}, "team", "no application offers service x"],
  ["another plan", { ...events, servicePlanExternalID: "x" }, {}, "team", "no application offers"],
  ["no grant", events, {}, "denied", "is not granted shop-events of shop"],
  ["no namespace", events, {}, "elsewhere", "namespace is being deleted"],
  ["a spec that is none", { externalID: 7, parameters: [] }, { spec: "hostile", status: 3 }, "team", "no external id"],
])("an instance with %s is left out, in words", (_, spec, rest, namespace, words) => {
  const { instances, findings } = plan({ instances: [instance("one", spec, rest, namespace)] });
  expect(instances).toEqual([]);
  expect(findings[0]).toMatchObject({ level: "left out", object: `ServiceInstance ${namespace}/one` });
  expect(findings[0]?.message).toContain(words);
});

test("one that is being deleted, or whose update failed, is there: its deletion has to find it", () => {
  const provisioned = { status: { provisionStatus: "Provisioned", conditions: [{ type: "Ready", status: "False" }] } };
  const deleting = { ...provisioned, metadata: { deletionTimestamp: "2020-05-05T05:05:05Z" } };
  const { instances, findings } = plan({
    instances: [instance("one", events, deleting), instance("two", { ...events, parametersFrom: [{}] }, provisioned)],
    subscriptions: [subscription("brokersub-a")],
    brokers: [broker],
  });
  expect(instances.map(({ deleting: isSo }) => isSo)).toEqual([true, false]);
  expect(findings.map(({ level, message }) => [level, message.slice(0, 30)])).toEqual([
    ["note", "it is being deleted; it is tak"],
    ["note", "its parameters from Secrets ar"],
  ]);
});

test("of several Subscriptions one is taken over; the others are told of, and those that nobody needs", () => {
  const { instances, findings } = plan({
    instances: [instance("one", events)],
    subscriptions: [
      subscription("brokersub-a", "shop-more"),
      subscription("brokersub-b"),
      subscription("brokersub-c", "x", { labels: { "broker-namespace": "team", "application-name": "other" } }),
      subscription("brokersub-d", "shop-events", { deletionTimestamp: "2020-05-05T05:05:05Z" }),
      subscription("ours", "shop-events", {
        labels: { "broker-namespace": "team", "application-name": "shop", "app.kubernetes.io/managed-by": "osbert" },
      }),
    ],
    brokers: [broker],
  });
  expect(instances[0]?.flow?.subscription?.name).toBe("brokersub-b");
  expect(findings.map(({ object: name, message }) => [name.slice(-11), message.slice(0, 24)])).toEqual([
    ["brokersub-a", "it brings the events of "],
    ["brokersub-c", "no instance that is take"],
  ]);
});

test("what is missing is made as for every flow, and told; a labelled namespace without instances stays as it is", () => {
  const labelled = object("Namespace", undefined, "idle", {
    metadata: { labels: { "knative-eventing-injection": "enabled" } },
  });
  const { findings } = plan({ instances: [instance("one", events)], namespaces: [...nothing.namespaces, labelled] });
  expect(findings.map(({ level, object: name }) => [level, name])).toEqual([
    ["note", "ServiceInstance team/one"],
    ["note", "Namespace idle"],
    ["note", "Namespace team"],
  ]);
});

const wanted = {
  ...{ flow: "f1", namespace: "team", platform: "team", instance: "id-one" },
  ...{ application: "shop", service: "shop-events" },
};
const there = { subscription: { name: "brokersub-a", uid: "u1" }, broker: { uid: "u2" } };

/** The resource after a change. */
function after(change: ReturnType<typeof claimImported>["change"]): Parameters<typeof claimImported>[0] {
  return {
    data: change?.data,
    parts: new Map(Object.entries(change?.parts ?? {}).filter(([, part]) => part !== null)),
    open: [],
  } as never;
}

test("a flow is claimed with its Subscription, under its name, and its Broker, which is another's", () => {
  const { result, change } = claimImported(undefined, wanted, there, 1_000);
  expect(result).toBe("claimed");
  expect(change?.data).toMatchObject({ holders: ["f1"], broker: { state: "present", adopted: true, uid: "u2" } });
  expect(change?.parts).toMatchObject({
    "flow/f1": { operation: 0, application: "shop" },
    "wire/shop": { name: "brokersub-a", uid: "u1", state: "present", holders: ["f1"] },
  });
});

test("what was done here since counts more than what was there before: a claim, a change, a release", () => {
  const claimed = after(claimImported(undefined, wanted, there, 1_000).change);
  expect(claimImported(claimed, wanted, there, 2_000)).toEqual({ result: "known" });
  const changed = after(claim(undefined, { ...wanted, operation: 3, delivery: { retry: 1 } }, 1_000).change);
  expect(claimImported(changed, wanted, there, 2_000)).toEqual({ result: "known" });
  const released = after(release(claimed, { ...wanted, operation: 3 }, 1_500).change);
  expect(claimImported(released, wanted, there, 2_000)).toEqual({ result: "known" });
});

test("where there is a wire already, it stays the one", () => {
  const first = after(claimImported(undefined, wanted, there, 1_000).change);
  const other = { ...there, subscription: { name: "brokersub-b", uid: "u9" } };
  const { result, change } = claimImported(first, { ...wanted, flow: "f2", instance: "id-two" }, other, 2_000);
  expect(result).toBe("claimed");
  expect(Object.keys(change?.parts ?? {})).toEqual(["flow/f2"]);
});
