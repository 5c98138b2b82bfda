import { afterAll, beforeAll, expect, test } from "vitest";
import { type Cluster, startCluster } from "../../../tools/cluster/cluster.js";
import { clusterTimeoutMs } from "../../../tools/cluster/test-cluster.js";
import { required } from "../../../tools/required.js";
import { until } from "../../../tools/until.js";
import type { FlowSettings } from "../src/flows/flow-settings.js";
import { type FlowBroker, FlowLab, flowBroker, SaidApplications } from "./flow-lab.js";
import type { Loose } from "./loose.js";

// One cluster for all that breaks a cluster: the tests are a story, and each leaves it well.

/** Outages are noticed, and their ends, in seconds. */
const pace = { behindAfterMs: 1_500, lookAgainMs: 1_000, firstDelayMs: 200, longestDelayMs: 1_000, timeoutMs: 5_000 };
const minutes = 300_000;
const applications = new SaidApplications();
const offered = ["early", "shop", "late", "slow", "silent"];
const stops: (() => Promise<void>)[] = [];
let cluster: Cluster | undefined;
let lab: FlowLab;
let broker: FlowBroker;

beforeAll(async () => {
  cluster = required("tests of event flow in outages", await startCluster({}));
  if (cluster === undefined) return;
  for (const name of offered) applications.add(name);
  lab = await FlowLab.open({ facts: cluster.facts, kubectl: cluster.kubectl });
  broker = await brokerOf(lab);
}, clusterTimeoutMs);

afterAll(async () => {
  for (const stop of stops.reverse()) await stop();
  await lab?.close();
  await cluster?.stop();
}, 60_000);

async function brokerOf(of: FlowLab, settings: Partial<FlowSettings> = {}): Promise<FlowBroker> {
  const { facts } = of.test;
  const opened = await flowBroker({ facts, applications, offered, settings: { ...of.settings, ...settings }, pace });
  stops.push(() => opened.stop());
  return opened;
}

test(
  "without Knative a provision waits, in words, and fails with them in the end; it goes on when Knative comes in time",
  async () => {
    if (cluster === undefined) return;
    const impatient = await brokerOf(await FlowLab.open(lab.test), { appearMs: 500 });
    const patientLab = await FlowLab.open(lab.test);
    const patient = await brokerOf(patientLab, { repairMs: 2_000 });
    const [namespace, other] = [await lab.namespace(), await lab.namespace()];
    for (const each of [namespace, other]) applications.grant(each, "early");
    await impatient.provision(other, "hasty", "early");
    const { description } = await impatient.settles(other, "hasty", "failed");
    expect(description).toContain("Knative Eventing is not installed in the cluster");
    await patient.provision(namespace, "early", "early");
    await patient.tells(namespace, "early", /Knative Eventing is not installed in the cluster/);
    // What never was is let go of at once.
    await impatient.deprovision(other, "hasty", "early");
    await impatient.settles(other, "hasty", "succeeded");
    // Its kinds come before its webhook: a Broker that is made between the two is of no use.
    lab.hasMore(await cluster.add({ knative: true }));
    await patientLab.channel("early");
    await patient.settles(namespace, "early", "succeeded");
    await patient.becomes(namespace, "early", "Healthy");
  },
  minutes,
);

test(
  "policies that are optional are left out without a mesh and come with it, those that are required fail; nothing here enforces them",
  async () => {
    if (cluster === undefined) return;
    const meshLab = await FlowLab.open(lab.test);
    const optional = await brokerOf(meshLab, { policies: "optional" });
    const strictLab = await FlowLab.open(lab.test);
    const strict = await brokerOf(strictLab, { policies: "required" });
    const [namespace, other] = [await meshLab.namespace(), await strictLab.namespace()];
    for (const each of [namespace, other]) applications.grant(each, "shop");
    await Promise.all([meshLab.channel("shop"), strictLab.channel("shop")]);
    await strict.provision(other, "strict", "shop");
    expect((await strict.settles(other, "strict", "failed")).description).toContain(
      "the cluster does not know policies of a service mesh",
    );
    await optional.provision(namespace, "mesh", "shop");
    await optional.settles(namespace, "mesh", "succeeded");
    const reason = async () => {
      const { items } = await optional.broker.journal.parts(`events.namespace.${namespace}`, "flow/");
      return (items as Loose)[0].value.conditions.find(({ type }: Loose) => type === "PolicyReady").reason;
    };
    expect(await reason()).toBe("PolicySkipped");
    await cluster.add({ istio: true });
    await until("the policies", async () => (await reason()) === "Applied");
    const ofNamespace = ["-n", "knative-eventing", "-l", `events.osbert.io/namespace=${namespace}`, "-o", "name"];
    const policies = () => lab.test.kubectl(["get", "authorizationpolicies", ...ofNamespace]);
    expect(await policies()).toMatch(/authorizationpolicy/);
    await optional.deprovision(namespace, "mesh", "shop");
    await optional.settles(namespace, "mesh", "succeeded");
    await until("the policies to go", async () => (await policies()) === "");
    await strict.deprovision(other, "strict", "shop");
    await strict.settles(other, "strict", "succeeded");
  },
  minutes,
);

test(
  "while the API server is away a provision waits and the health of flows is unknown; when it is back all goes on, and nothing was done twice",
  async () => {
    if (cluster === undefined) return;
    const [ready, waiting, ending] = [await lab.namespace(true), await lab.namespace(), await lab.namespace()];
    for (const each of [ready, ending]) applications.grant(each, "shop");
    applications.grant(waiting, "late");
    await lab.channel("shop");
    await broker.provision(ready, "ready", "shop");
    await broker.settles(ready, "ready", "succeeded");
    await broker.provision(ending, "ending", "shop");
    await broker.settles(ending, "ending", "succeeded");
    await broker.provision(waiting, "waiting", "late");
    await broker.tells(waiting, "waiting", /no channel of the application late yet/);
    await lab.arrives("shop", ready);
    const before = await lab.subscriptions(ready);

    await cluster.stopPart("apiserver");
    await broker.becomes(ready, "ready", "Unknown");
    await broker.tells(waiting, "waiting", /the cluster does not answer/);
    expect(await broker.lastOperation(ready, "ready")).toMatchObject({ state: "succeeded" });
    await broker.deprovision(ending, "ending", "shop");
    await broker.tells(ending, "ending", /waiting for the events to stop: the cluster does not answer/);
    await cluster.startPart("apiserver");

    await broker.settles(ending, "ending", "succeeded");
    expect(await lab.subscriptions(ending)).toEqual([]);
    await lab.channel("late");
    await broker.settles(waiting, "waiting", "succeeded");
    await broker.becomes(ready, "ready", "Healthy");
    await lab.arrives("shop", ready);
    const after = await lab.subscriptions(ready);
    expect(after.map(identity)).toEqual(before.map(identity));
    const kindsWritten = (namespace: string) => broker.written(namespace).map((line) => line.split(" ", 2).join(" "));
    expect(kindsWritten(ready)).toEqual(["applied broker", "applied subscription"]);
    expect(kindsWritten(waiting)).toEqual(["applied broker", "applied subscription"]);
  },
  minutes,
);

test(
  "a provision while etcd does not answer, for longer than a call may take, is told so, goes on with it, and makes everything once",
  async () => {
    if (cluster === undefined) return;
    const namespace = await lab.namespace();
    applications.grant(namespace, "slow");
    await lab.channel("slow");
    await lab.test.kubectl([
      "wait",
      "-n",
      lab.integration,
      "--for=condition=Ready",
      "channels.messaging.knative.dev/slow",
      "--timeout=100s",
    ]);
    await cluster.pausePart("etcd");
    try {
      await broker.provision(namespace, "slow", "slow");
      await broker.tells(namespace, "slow", /the cluster (does not answer|is too busy)/);
    } finally {
      await cluster.continuePart("etcd");
    }
    await broker.settles(namespace, "slow", "succeeded");
    const [subscription, ...more] = await lab.subscriptions(namespace);
    expect(more).toEqual([]);
    expect(subscription.metadata.generation).toBe(1);
    expect((await lab.get("broker", namespace, "default")).metadata.generation).toBe(1);
  },
  minutes,
);

test(
  "a provision while Knative's webhook does not answer is told so, and goes on when it does",
  async () => {
    if (cluster === undefined) return;
    const namespace = await lab.namespace();
    applications.grant(namespace, "silent");
    await lab.channel("silent");
    await cluster.stopPart("knative-control");
    await broker.provision(namespace, "silent", "silent");
    await broker.tells(namespace, "silent", /a webhook of the cluster does not answer/);
    const refused = broker.events.filter(
      (event) => event.kind === "cluster refused" && event.namespace === namespace,
    ).length;
    expect(refused).toBeLessThan(20);
    await cluster.startPart("knative-control");
    await broker.settles(namespace, "silent", "succeeded");
    expect(await lab.subscriptions(namespace)).toHaveLength(1);
  },
  minutes,
);

test(
  "#7696: a Broker that breaks degrades its flow and heals it when it is well, and what has succeeded has succeeded",
  async () => {
    if (cluster === undefined) return;
    const namespace = await lab.namespace(true);
    applications.grant(namespace, "shop");
    await broker.provision(namespace, "healing", "shop");
    const succeeded = await broker.settles(namespace, "healing", "succeeded");
    const endpoints = ["-n", "knative-eventing", "endpoints", "broker-ingress"];
    const well = JSON.parse(await lab.test.kubectl(["get", ...endpoints, "-o", "json"]));
    const breakIt = '{"subsets":[]}';
    await lab.test.kubectl(["patch", ...endpoints, "--type=merge", "-p", breakIt]);
    await broker.becomes(namespace, "healing", "Degraded");
    expect(await broker.lastOperation(namespace, "healing")).toEqual(succeeded);
    const mendIt = JSON.stringify({ subsets: well.subsets });
    await lab.test.kubectl(["patch", ...endpoints, "--type=merge", "-p", mendIt]);
    await broker.becomes(namespace, "healing", "Healthy");
    expect(await broker.lastOperation(namespace, "healing")).toEqual(succeeded);
    const ofSink = (await broker.history(namespace)).filter((line) => line.startsWith("SinkReady"));
    expect(ofSink.slice(-3)).toEqual(["SinkReady True", "SinkReady False", "SinkReady True"]);
    await lab.arrives("shop", namespace);
  },
  minutes,
);

test(
  "when Knative is removed flows are unknown, and can be deprovisioned",
  async () => {
    if (cluster === undefined) return;
    const namespace = await lab.namespace();
    applications.grant(namespace, "shop");
    await broker.provision(namespace, "left", "shop");
    await broker.settles(namespace, "left", "succeeded");
    await lab.test.kubectl([
      ...["delete", "crd", "--wait=false"],
      ...["subscriptions.messaging.knative.dev", "brokers.eventing.knative.dev", "channels.messaging.knative.dev"],
    ]);
    await until("the health to be unknown", async () => {
      return /Unknown/.test((await broker.health(namespace, "left")) ?? "");
    });
    await broker.deprovision(namespace, "left", "shop");
    await broker.settles(namespace, "left", "succeeded");
  },
  minutes,
);

function identity({ metadata: { name, uid, generation } }: Loose): object {
  return { name, uid, generation };
}
