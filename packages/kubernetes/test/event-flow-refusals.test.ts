import { afterAll, beforeAll, expect, test } from "vitest";
import { apply } from "../../../tools/cluster/kubectl.js";
import { clusterTimeoutMs, sharedCluster } from "../../../tools/cluster/test-cluster.js";
import { required } from "../../../tools/required.js";
import { until } from "../../../tools/until.js";
import type { FlowSettings } from "../src/flows/flow-settings.js";
import { type FlowBroker, FlowLab, flowBroker, SaidApplications } from "./flow-lab.js";
import type { Loose } from "./loose.js";

const minutes = 300_000;
const applications = new SaidApplications();
const offered = ["shop", "denied", "held", "left", "gone", "hand", "rival", "one", "two", "three"];
let lab: FlowLab;
let broker: FlowBroker;
let isThere = false;
const stops: (() => Promise<void>)[] = [];

beforeAll(async () => {
  const cluster = required("tests of what a cluster refuses", await sharedCluster({ knative: true }));
  if (cluster === undefined) return;
  for (const name of offered) applications.add(name);
  lab = await FlowLab.open(cluster);
  stops.push(() => lab.close());
  broker = await brokerOf(lab, { appearMs: 1_000, refusedMs: 4_000, refusedTimes: 3 });
  isThere = true;
}, clusterTimeoutMs);

afterAll(async () => {
  for (const stop of stops.reverse()) await stop();
});

async function brokerOf(of: FlowLab, settings: Partial<FlowSettings> = {}): Promise<FlowBroker> {
  const opened = await flowBroker({
    ...{ facts: of.test.facts, applications, offered, settings: { ...of.settings, ...settings } },
  });
  stops.push(() => opened.stop());
  return opened;
}

/** Makes the API server refuse something of this test, from when this resolves until what it answers is called. */
async function refuse(
  name: string,
  rule: { readonly group: string; readonly resource: string; readonly operation: string; readonly where: string },
  isRefused: () => Promise<boolean>,
): Promise<() => Promise<unknown>> {
  const api = "admissionregistration.k8s.io/v1";
  const { group, resource, operation, where } = rule;
  const resourceRules = [
    { apiGroups: [group], apiVersions: ["v1"], operations: [operation], resources: [resource], scope: "*" },
  ];
  await apply(lab.test.kubectl, [
    {
      ...{ apiVersion: api, kind: "ValidatingAdmissionPolicy", metadata: { name } },
      spec: {
        matchConstraints: { resourceRules },
        matchConditions: [{ name: "here", expression: where }],
        validations: [{ expression: "false", message: `the rule ${name} forbids it` }],
      },
    },
    {
      ...{ apiVersion: api, kind: "ValidatingAdmissionPolicyBinding", metadata: { name } },
      spec: { policyName: name, validationActions: ["Deny"] },
    },
  ]);
  await until("the rule to hold", isRefused);
  const kinds = "validatingadmissionpolicybinding,validatingadmissionpolicy";
  return () => lab.test.kubectl(["delete", kinds, name]);
}

const brokerIn = (namespace: string) => ({
  ...{ apiVersion: "eventing.knative.dev/v1", kind: "Broker", metadata: { namespace, name: "default" } },
});

async function isRefusedHere(args: readonly string[], input?: object): Promise<boolean> {
  const error = await lab.test.kubectl([...args, "--dry-run=server"], JSON.stringify(input ?? "")).then(
    () => "",
    (thrown: unknown) => String(thrown),
  );
  return error.includes("forbids it");
}

async function provisioned(namespace: string, instance: string, application: string): Promise<void> {
  await lab.channel(application);
  applications.grant(namespace, application);
  await broker.provision(namespace, instance, application);
  await broker.settles(namespace, instance, "succeeded");
}

/** One event, which has to arrive, and once. */
async function arrivesOnce(application: string, namespace: string): Promise<void> {
  const { id } = await lab.send(application);
  const arrived = () => lab.sink.received.filter((event) => event.id === id && event.path === `/${namespace}`).length;
  await until(`the event ${id} in ${namespace}`, async () => arrived() > 0);
  expect(arrived()).toBe(1);
}

async function brokerState(namespace: string): Promise<string> {
  const resource = await broker.broker.journal.read(`events.namespace.${namespace}`);
  return (resource?.data as Loose)?.broker.state;
}

test(
  "a Broker that a quota refuses is told, and fails the provision with the words of the cluster; deprovisioned, nothing is left",
  async () => {
    if (!isThere) return;
    const namespace = await lab.namespace();
    await apply(lab.test.kubectl, [
      {
        ...{ apiVersion: "v1", kind: "ResourceQuota", metadata: { namespace, name: "none" } },
        spec: { hard: { "count/brokers.eventing.knative.dev": "0" } },
      },
    ]);
    await lab.channel("shop");
    const shop = "channels.messaging.knative.dev/shop";
    await lab.test.kubectl(["wait", "-n", lab.integration, "--for=condition=Ready", shop, "--timeout=100s"]);
    applications.grant(namespace, "shop");
    await broker.provision(namespace, "quota", "shop");
    await broker.tells(namespace, "quota", /the cluster refuses the Broker: .*is forbidden: .*quota: none/);
    const { description } = await broker.settles(namespace, "quota", "failed");
    // Before the quota's controller has counted, and after.
    expect(description).toMatch(/quota: none, (requested|resources): count\/brokers.eventing.knative.dev/);
    // It still holds its claim, and is cleared away as Loose other.
    await broker.deprovision(namespace, "quota", "shop");
    await broker.settles(namespace, "quota", "succeeded");
    expect(await lab.subscriptions(namespace)).toEqual([]);
  },
  minutes,
);

test(
  "a Broker that is refused for a while is made when it is not any more, and a Subscription that is refused fails the provision",
  async () => {
    if (!isThere) return;
    const patient = await brokerOf(await FlowLab.open(lab.test));
    const namespace = await lab.namespace();
    applications.grant(namespace, "shop");
    const allow = await refuse(
      `brokers-${namespace}`,
      {
        ...{ group: "eventing.knative.dev", resource: "brokers", operation: "*" },
        where: `request.namespace == '${namespace}'`,
      },
      () => isRefusedHere(["create", "-f", "-"], brokerIn(namespace)),
    );
    await patient.provision(namespace, "patient", "shop");
    await until("the wait for the channel", async () =>
      /no channel/.test((await patient.lastOperation(namespace, "patient")).description),
    );
    await until("a refusal", async () => patient.events.some(({ kind }) => kind === "cluster refused"));
    await allow();
    await until("the Broker", async () => (await lab.get("broker", namespace, "default")) !== undefined);

    const where = `request.namespace == '${lab.integration}' && object.metadata.name.startsWith('flow-')`;
    const sample = {
      ...{ apiVersion: "messaging.knative.dev/v1", kind: "Subscription" },
      metadata: { namespace: lab.integration, name: "flow-sample" },
      spec: {
        channel: { apiVersion: "messaging.knative.dev/v1", kind: "Channel", name: "denied" },
        subscriber: { uri: "http://localhost" },
      },
    };
    const other = await lab.namespace();
    applications.grant(other, "denied");
    await lab.channel("denied");
    const allowSubscriptions = await refuse(
      `subscriptions-${lab.integration}`,
      { group: "messaging.knative.dev", resource: "subscriptions", operation: "CREATE", where },
      () => isRefusedHere(["create", "-f", "-"], sample),
    );
    try {
      await broker.provision(other, "denied", "denied");
      const { description } = await broker.settles(other, "denied", "failed");
      expect(description).toContain("forbids it");
    } finally {
      await allowSubscriptions();
    }
    // The claim is still there: once it is allowed, the wire is made. Asked for again, the same instance is there.
    await until("the Subscription", async () => (await lab.subscriptions(other)).length === 1);
    await broker.deprovision(other, "denied", "denied");
    await broker.settles(other, "denied", "succeeded");
    expect(await lab.subscriptions(other)).toEqual([]);
  },
  minutes,
);

test(
  "a deprovision whose Subscription must not be removed waits, in words, and ends when it may",
  async () => {
    if (!isThere) return;
    const namespace = await lab.namespace();
    await provisioned(namespace, "held", "held");
    const [{ metadata }] = (await lab.subscriptions(namespace)) as readonly [Loose];
    const allow = await refuse(
      `held-${namespace}`,
      {
        ...{ group: "messaging.knative.dev", resource: "subscriptions", operation: "DELETE" },
        where: `oldObject.metadata.name == '${metadata.name}'`,
      },
      () => isRefusedHere(["delete", "subscriptions.messaging.knative.dev", metadata.name, "-n", lab.integration]),
    );
    await broker.deprovision(namespace, "held", "held");
    await broker.tells(namespace, "held", /waiting for the events to stop: .*forbids it/);
    await allow();
    await broker.settles(namespace, "held", "succeeded");
    expect(await lab.subscriptions(namespace)).toEqual([]);
  },
  minutes,
);

test(
  "the events of a namespace that is deleted stop, its instances can be deprovisioned, and none is made there any more",
  async () => {
    if (!isThere) return;
    const namespace = await lab.namespace(true);
    await provisioned(namespace, "left", "left");
    await lab.test.kubectl(["delete", "namespace", namespace, "--wait=false"]);
    await until("the Subscription to go", async () => (await lab.subscriptions(namespace)).length === 0);
    await broker.becomes(namespace, "left", "Degraded");
    await broker.provision(namespace, "too late", "left");
    expect((await broker.settles(namespace, "too late", "failed")).description).toContain("being deleted, or gone");
    await broker.deprovision(namespace, "left", "left");
    await broker.settles(namespace, "left", "succeeded");
    expect(await lab.subscriptions(namespace)).toEqual([]);
  },
  minutes,
);

test(
  "#8109: an instance of an application that is gone can be deprovisioned",
  async () => {
    if (!isThere) return;
    const namespace = await lab.namespace();
    await provisioned(namespace, "gone", "gone");
    applications.grant(namespace, "gone", false);
    applications.remove("gone");
    await lab.test.kubectl(["delete", "channels.messaging.knative.dev", "gone", "-n", lab.integration]);
    await broker.becomes(namespace, "gone", "Degraded");
    await broker.deprovision(namespace, "gone", "gone");
    await broker.settles(namespace, "gone", "succeeded");
    expect(await lab.subscriptions(namespace)).toEqual([]);
  },
  minutes,
);

test(
  "a Subscription that is deleted or changed by hand is put back, and nobody fights with another who goes on changing it",
  async () => {
    if (!isThere) return;
    const namespace = await lab.namespace(true);
    await provisioned(namespace, "hand", "hand");
    const [{ metadata }] = (await lab.subscriptions(namespace)) as readonly [Loose];
    const place = ["subscriptions.messaging.knative.dev", metadata.name, "-n", lab.integration] as const;
    await lab.test.kubectl(["delete", ...place, "--wait=false"]);
    await until("another Subscription", async () => {
      const [now] = await lab.subscriptions(namespace);
      return now !== undefined && now.metadata.uid !== metadata.uid;
    });
    await broker.becomes(namespace, "hand", "Healthy");
    await lab.arrives("hand", namespace);
    const retry = async () => (await lab.subscriptions(namespace))[0]?.spec.delivery?.retry;
    const applied = () => broker.written(namespace).filter((line) => line.startsWith("applied subscription")).length;
    const before = applied();
    const rivalChanges = 4;
    for (let change = 0; change < rivalChanges; change++) {
      const spec = JSON.stringify({ spec: { delivery: { retry: 90 + change } } });
      await lab.test.kubectl(["patch", ...place, "--type=merge", "--field-manager=rival", "-p", spec]);
      await until("it to be put back", async () => (await retry()) === undefined);
    }
    expect(applied() - before).toBe(rivalChanges);
  },
  minutes,
);

test(
  "#6342: who comes while a Broker lingers or is being deleted has one, and the events of others flow all the time",
  async () => {
    if (!isThere) return;
    const namespace = await lab.namespace();
    await provisioned(namespace, "one", "one");
    const uid = async () => (await lab.get("broker", namespace, "default"))?.metadata.uid;
    const first = await uid();
    // It is kept from going, so that the next one comes while it is being deleted.
    const finalizers = (value: readonly string[]) =>
      lab.test.kubectl([
        ...["patch", "broker", "default", "-n", namespace, "--type=merge", "-p"],
        JSON.stringify({ metadata: { finalizers: value } }),
      ]);
    await finalizers(["test.osbert.io/keep"]);
    await broker.deprovision(namespace, "one", "one");
    await until("the Broker to be deleted", async () => (await brokerState(namespace)) === "deleting");
    await lab.channel("two");
    applications.grant(namespace, "two");
    await broker.provision(namespace, "two", "two");
    await broker.tells(namespace, "two", /the Broker before is being deleted/);
    expect(await uid()).toBe(first);
    await finalizers([]);
    await broker.settles(namespace, "two", "succeeded");
    const second = await uid();
    expect(second).not.toBe(first);
    await lab.trigger(namespace);
    await lab.arrives("two", namespace);
    // Others come and go.
    for (const instance of ["three", "four", "five"]) {
      await provisioned(namespace, instance, "three");
      await arrivesOnce("two", namespace);
      await broker.deprovision(namespace, instance, "three");
      await arrivesOnce("two", namespace);
      await broker.settles(namespace, instance, "succeeded");
      await arrivesOnce("two", namespace);
    }
    // The last one lets go while the next one comes: whatever happens first, there is a Broker then.
    await lab.test.kubectl(["delete", "trigger", "all", "-n", namespace]);
    await broker.deprovision(namespace, "two", "two");
    await until("the Broker to linger", async () => (await brokerState(namespace)) !== "present");
    await provisioned(namespace, "again", "one");
    expect(await uid()).toBeDefined();
    await lab.trigger(namespace);
    await lab.arrives("one", namespace);
    await broker.becomes(namespace, "again", "Healthy");
  },
  minutes,
);

test(
  "two that work in one cluster leave each other's Brokers alone",
  async () => {
    if (!isThere) return;
    const otherLab = await FlowLab.open(lab.test);
    const other = await brokerOf(otherLab);
    const namespace = await lab.namespace();
    await provisioned(namespace, "mine", "one");
    const { uid } = (await lab.get("broker", namespace, "default")).metadata;
    await otherLab.channel("two");
    applications.grant(namespace, "two");
    await other.provision(namespace, "yours", "two");
    await other.settles(namespace, "yours", "succeeded");
    await other.deprovision(namespace, "yours", "two");
    await other.settles(namespace, "yours", "succeeded");
    await until("the other to have forgotten the Broker", async () => {
      const resource = await other.broker.journal.read(`events.namespace.${namespace}`);
      return (resource?.data as Loose)?.broker.state === "absent";
    });
    expect((await lab.get("broker", namespace, "default")).metadata.uid).toBe(uid);
    expect(other.written(namespace).filter((line) => line.includes("broker"))).toEqual([]);
  },
  minutes,
);
