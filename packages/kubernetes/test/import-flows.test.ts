import { afterAll, beforeAll, expect, test } from "vitest";
import type { CloudEvent } from "../../../tools/cluster/events.js";
import { clusterTimeoutMs, sharedCluster } from "../../../tools/cluster/test-cluster.js";
import { required } from "../../../tools/required.js";
import { until } from "../../../tools/until.js";
import { namespaceKey, namespaceResource } from "../src/flows/flow-record.js";
import { type ImportReport, importFlows } from "../src/import/import-flows.js";
import { type FlowBroker, FlowLab, flowBroker, SaidApplications } from "./flow-lab.js";
import { installServiceCatalog, PredecessorLab } from "./predecessor-lab.js";

let lab: FlowLab | undefined;
let before: PredecessorLab;
let broker: FlowBroker;
const applications = new SaidApplications();

beforeAll(async () => {
  const cluster = required("tests of the import", await sharedCluster({ knative: true, istio: true }));
  if (cluster === undefined) return;
  lab = await FlowLab.open(cluster);
  await installServiceCatalog(lab);
  const offered = ["import-shop", "import-two", "import-cut"];
  for (const name of offered) applications.add(name);
  // Mirrors would be written for every flow.
  const settings = { ...lab.settings, mirror: false };
  broker = await flowBroker({ facts: cluster.facts, applications, offered, settings });
  before = new PredecessorLab(lab, broker.cluster);
}, clusterTimeoutMs);

afterAll(async () => {
  await broker?.stop();
  await lab?.close();
});

/** What becomes of the instances of one namespace: other tests have theirs. */
async function imported(namespace: string, dryRun = false): Promise<ImportReport> {
  const { integration } = lab as FlowLab;
  const report = await importFlows({
    ...{ cluster: broker.cluster, broker: broker.broker, applications, dryRun, operator: "test" },
    settings: { integrationNamespace: integration },
  });
  return {
    ...report,
    instances: report.instances.filter((each) => each.namespace === namespace),
    findings: report.findings.filter(({ object }) => object.includes(namespace)),
  };
}

/** All that is kept of a namespace and an instance in it. */
async function kept(namespace: string, id: string): Promise<unknown> {
  const { journal } = broker.broker;
  const keys = [`${namespace}/${id}`, namespaceKey(namespace)];
  return Promise.all(
    keys.map(async (key) => ({
      resource: (await journal.read(key))?.data,
      parts: (await journal.parts(key, "", { limit: 100 })).items,
      entries: await journal.entries(key, { limit: 1_000 }),
    })),
  );
}

test("what the application broker has left is taken over as it is: nothing changes in the cluster, events come once each, and the last instance takes its Subscription along", async () => {
  if (lab === undefined) return;
  const application = "import-shop";
  const namespace = await before.namespace();
  applications.grant(namespace, application);
  await lab.channel(application);
  const subscription = await before.subscription(namespace, application);
  const id = await before.instance(namespace, application, "orders");
  await lab.arrives(application, namespace);
  const left = await before.everything(namespace);

  const dry = await imported(namespace, true);
  expect(dry.instances).toEqual([
    {
      ...{ namespace, name: "orders", id, outcome: "adopted", application, subscription },
      ...{ serviceId: `${application}-events`, planId: `${application}-events-plan` },
    },
  ]);
  expect((await broker.request("GET", `/${namespace}/v2/service_instances/${id}`)).status).toBe(404);

  const { instances, findings } = await imported(namespace);
  expect(instances).toEqual(dry.instances);
  expect(findings).toEqual([]);
  await until("the flow to be told of", async () => (await broker.health(namespace, id)) === "Healthy");
  expect(await broker.provision(namespace, id, application)).toBe(200);

  const was = await kept(namespace, id);
  expect((await imported(namespace)).instances).toMatchObject([{ outcome: "adopted already" }]);
  expect(await kept(namespace, id)).toEqual(was);
  expect(await before.everything(namespace)).toEqual(left);

  const { sink } = lab;
  const sent: CloudEvent[] = [];
  for (let many = 0; many < 20; many++) sent.push(await lab.send(application));
  const received = ({ id: event }: CloudEvent) =>
    sink.received.filter((each) => each.id === event && each.path === `/${namespace}`).length;
  await until("all events to come", async () => sent.every((each) => received(each) > 0));
  await lab.arrives(application, namespace);
  expect(sent.map(received)).toEqual(sent.map(() => 1));

  const path = `/${namespace}/v2/service_instances/${id}?accepts_incomplete=true`;
  const change = { service_id: `${application}-events`, parameters: { delivery: { retry: 3 } } };
  expect((await broker.request("PATCH", path, change)).status).toBe(202);
  expect((await broker.settles(namespace, id, "failed")).description).toContain("is only read");
  expect(await before.everything(namespace)).toEqual(left);
  expect(await broker.health(namespace, id)).toBe("Healthy");

  expect(await broker.deprovision(namespace, id, application)).toBe(202);
  await broker.settles(namespace, id, "succeeded");
  expect(await lab.get("subscriptions.messaging.knative.dev", lab.integration, subscription)).toBeUndefined();
  await until("the namespace to be forgotten", async () => {
    const resource = await broker.broker.journal.read(namespaceKey(namespace));
    return namespaceResource.resource(resource)?.data.broker.state === "absent";
  });
  const [, stays, labelled] = (await before.everything(namespace)) as readonly unknown[];
  expect([stays, labelled]).toEqual((left as readonly unknown[]).slice(1));
  expect((await imported(namespace)).instances).toMatchObject([{ outcome: "gone" }]);
}, 240_000);

test("two instances of one application share the Subscription that was there, until the last of them goes", async () => {
  if (lab === undefined) return;
  const application = "import-two";
  const namespace = await before.namespace();
  applications.grant(namespace, application);
  await lab.channel(application);
  const subscription = await before.subscription(namespace, application);
  const [one, two] = [
    await before.instance(namespace, application, "one"),
    await before.instance(namespace, application, "two"),
  ];
  expect((await imported(namespace)).instances.map(({ outcome }) => outcome)).toEqual(["adopted", "adopted"]);
  for (const id of [one, two])
    await until("the flow to be told of", async () => (await broker.health(namespace, id)) === "Healthy");
  await broker.deprovision(namespace, one, application);
  await broker.settles(namespace, one, "succeeded");
  await lab.arrives(application, namespace);
  await broker.deprovision(namespace, two, application);
  await broker.settles(namespace, two, "succeeded");
  expect(await lab.get("subscriptions.messaging.knative.dev", lab.integration, subscription)).toBeUndefined();
}, 240_000);

test("an import that was cut off between an instance and its flow is finished by the next one", async () => {
  if (lab === undefined) return;
  const application = "import-cut";
  const namespace = await before.namespace();
  applications.grant(namespace, application);
  await lab.channel(application);
  const subscription = await before.subscription(namespace, application);
  const id = await before.instance(namespace, application, "cut");
  await broker.broker.operator.adopt(
    { platform: namespace, instance: id },
    {
      ...{ serviceId: `${application}-events`, planId: `${application}-events-plan`, revision: null },
      ...{ organizationGuid: null, spaceGuid: null, context: {}, parameters: {} },
    },
    { operator: "test", reason: "cut off", requestId: null },
  );
  expect(await broker.health(namespace, id)).toBeUndefined();
  expect((await imported(namespace)).instances).toMatchObject([{ outcome: "adopted already", subscription }]);
  await until("the flow to be told of", async () => (await broker.health(namespace, id)) === "Healthy");
}, 240_000);
