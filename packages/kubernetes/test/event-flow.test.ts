import { afterAll, beforeAll, expect, test } from "vitest";
import { clusterTimeoutMs, sharedCluster } from "../../../tools/cluster/test-cluster.js";
import { required } from "../../../tools/required.js";
import { until } from "../../../tools/until.js";
import { type FlowBroker, FlowLab, flowBroker, SaidApplications } from "./flow-lab.js";
import type { Loose } from "./loose.js";

let lab: FlowLab | undefined;
const applications = new SaidApplications();
let broker: FlowBroker;

beforeAll(async () => {
  const cluster = required("tests of event flow", await sharedCluster({ knative: true, istio: true }));
  if (cluster === undefined) return;
  lab = await FlowLab.open(cluster);
  const offered = ["shop", "shop2", "late", "revoked", "gone", "race1", "race2", "foreign", "delivery"];
  for (const name of offered) applications.add(name);
  broker = await flowBroker({ facts: cluster.facts, applications, offered, settings: lab.settings });
}, clusterTimeoutMs);

afterAll(async () => {
  await broker?.stop();
  await lab?.close();
});

test("events of an application arrive in a namespace after it was provisioned there, and stop after it was deprovisioned", async () => {
  if (lab === undefined) return;
  const namespace = await lab.namespace();
  await lab.channel("shop");
  applications.grant(namespace, "shop");
  expect(await broker.provision(namespace, "i1", "shop")).toBe(202);
  await broker.settles(namespace, "i1", "succeeded");
  await lab.trigger(namespace);
  await lab.arrives("shop", namespace);
  expect(await broker.health(namespace, "i1")).toBe("Healthy");
  expect(await broker.deprovision(namespace, "i1", "shop")).toBe(202);
  await broker.settles(namespace, "i1", "succeeded");
  expect(await lab.subscriptions(namespace)).toEqual([]);
  // The Trigger is a user's: the Broker stays for it.
  expect(await lab.get("broker", namespace, "default")).toBeDefined();
}, 180_000);

test("#7193: a channel that is late is waited for, in words, and then the provision succeeds", async () => {
  if (lab === undefined) return;
  const namespace = await lab.namespace();
  applications.grant(namespace, "late");
  await broker.provision(namespace, "i2", "late");
  await until("the wait for the channel", async () =>
    (await broker.lastOperation(namespace, "i2")).description.includes(
      "there is no channel of the application late yet",
    ),
  );
  await lab.channel("late");
  await broker.settles(namespace, "i2", "succeeded");
}, 180_000);

test("a Broker that nobody needs any more is deleted after a while, and made anew for who comes then", async () => {
  if (lab === undefined) return;
  const namespace = await lab.namespace();
  await lab.channel("shop2");
  applications.grant(namespace, "shop2");
  await broker.provision(namespace, "i3", "shop2");
  await broker.settles(namespace, "i3", "succeeded");
  const { uid } = (await lab.get("broker", namespace, "default")).metadata;
  await broker.deprovision(namespace, "i3", "shop2");
  await broker.settles(namespace, "i3", "succeeded");
  await until("the Broker to go", async () => (await lab?.get("broker", namespace, "default")) === undefined);
  await broker.provision(namespace, "i4", "shop2");
  await broker.settles(namespace, "i4", "succeeded");
  expect((await lab.get("broker", namespace, "default")).metadata.uid).not.toBe(uid);
}, 180_000);

test("a Broker that was there before is used, and never deleted", async () => {
  if (lab === undefined) return;
  const namespace = await lab.namespace();
  await lab.test.kubectl(
    ["apply", "-f", "-"],
    JSON.stringify({ apiVersion: "eventing.knative.dev/v1", kind: "Broker", metadata: { namespace, name: "default" } }),
  );
  await lab.channel("foreign");
  applications.grant(namespace, "foreign");
  await broker.provision(namespace, "i5", "foreign");
  await broker.settles(namespace, "i5", "succeeded");
  await broker.deprovision(namespace, "i5", "foreign");
  await broker.settles(namespace, "i5", "succeeded");
  await until("the namespace to be forgotten", async () => {
    const resource = await broker.broker.journal.read(`events.namespace.${namespace}`);
    return (resource?.data as Loose)?.broker.state === "absent";
  });
  expect(await lab.get("broker", namespace, "default")).toBeDefined();
}, 180_000);

test("a grant that is revoked stops the events, and the instance stays; granted again, they flow", async () => {
  if (lab === undefined) return;
  const namespace = await lab.namespace();
  await lab.channel("revoked");
  applications.grant(namespace, "revoked");
  await broker.provision(namespace, "i6", "revoked");
  await broker.settles(namespace, "i6", "succeeded");
  await lab.trigger(namespace);
  await lab.arrives("revoked", namespace);
  applications.grant(namespace, "revoked", false);
  await until("the flow to be degraded", async () => (await broker.health(namespace, "i6")) === "Degraded");
  expect((await broker.lastOperation(namespace, "i6")).state).toBe("succeeded");
  applications.grant(namespace, "revoked");
  await until("the flow to heal", async () => (await broker.health(namespace, "i6")) === "Healthy");
  await lab.arrives("revoked", namespace);
}, 180_000);

test("a Broker that is deleted by hand is made again, and its Triggers go on", async () => {
  if (lab === undefined) return;
  const namespace = await lab.namespace(true);
  await lab.channel("gone");
  applications.grant(namespace, "gone");
  await broker.provision(namespace, "i7", "gone");
  await broker.settles(namespace, "i7", "succeeded");
  await lab.test.kubectl(["delete", "broker", "default", "-n", namespace, "--wait=false"]);
  await lab.arrives("gone", namespace);
  await until("the flow to be well", async () => (await broker.health(namespace, "i7")) === "Healthy");
}, 180_000);

test("PATCH changes how events are delivered; what the cluster refuses fails and changes nothing", async () => {
  if (lab === undefined) return;
  const namespace = await lab.namespace();
  await lab.channel("delivery");
  applications.grant(namespace, "delivery");
  await broker.provision(namespace, "i8", "delivery", { delivery: { retry: 3 } });
  await broker.settles(namespace, "i8", "succeeded");
  const delivery = async () => (await lab?.subscriptions(namespace))?.[0]?.spec.delivery;
  expect(await delivery()).toMatchObject({ retry: 3 });
  const path = `/${namespace}/v2/service_instances/i8?accepts_incomplete=true`;
  const change = {
    service_id: "delivery-events",
    parameters: { delivery: { retry: 7, backoffPolicy: "linear", backoffDelay: "PT1S" } },
  };
  expect((await broker.request("PATCH", path, change)).status).toBe(202);
  await broker.settles(namespace, "i8", "succeeded");
  expect(await delivery()).toMatchObject({ retry: 7, backoffPolicy: "linear" });
}, 180_000);
