import { readdirSync, readFileSync } from "node:fs";
import { onTestFinished } from "vitest";
import { sendToChannel, startSink } from "../../../tools/cluster/events.js";
import { apply, applyArgs, untilEstablished } from "../../../tools/cluster/kubectl.js";
import { serviceAccountKubeconfig } from "../../../tools/cluster/service-account.js";
import { freshNamespace, sharedCluster, type TestCluster } from "../../../tools/cluster/test-cluster.js";
import { required } from "../../../tools/required.js";
import { until } from "../../../tools/until.js";
import { accessObjects } from "../src/serve/access-objects.js";
import { loadEventSettings } from "../src/serve/run.js";
import { ask } from "./program.js";
import { systemWith } from "./system.js";

/** The cluster, with Osbert's own kinds. */
export async function eventsCluster(): Promise<TestCluster | undefined> {
  const cluster = required("tests of osbert events serve", await sharedCluster({ knative: true, istio: true }));
  if (cluster === undefined) return undefined;
  const definitions = new URL("../../kubernetes/crds/", import.meta.url);
  for (const name of readdirSync(definitions))
    await cluster.kubectl([...applyArgs, "-f", "-"], readFileSync(new URL(name, definitions), "utf8"));
  await untilEstablished(cluster.kubectl);
  return cluster;
}

const own = "events.osbert.io/v1alpha1";

/** An application with a channel, granted to one namespace of two, and the settings of a broker with the rights that it needs. */
export async function eventsLab(cluster: TestCluster) {
  const { kubectl } = cluster;
  const granted = freshNamespace("granted");
  const other = freshNamespace("other");
  const integration = freshNamespace("integration");
  const application = freshNamespace("shop");
  const sink = await startSink();
  onTestFinished(() => sink.stop());
  await apply(
    kubectl,
    [granted, other, integration].map((name) => ({ apiVersion: "v1", kind: "Namespace", metadata: { name } })),
  );
  await apply(kubectl, [
    {
      ...{ apiVersion: "messaging.knative.dev/v1", kind: "Channel" },
      metadata: { namespace: integration, name: application, labels: { "application-name": application } },
    },
    {
      ...{ apiVersion: own, kind: "Application", metadata: { name: application } },
      spec: { services: [{ name: application, events: true }] },
    },
    {
      ...{ apiVersion: own, kind: "ApplicationGrant", metadata: { namespace: granted, name: "shop" } },
      spec: { application },
    },
    sink.service({ namespace: granted, name: "sink" }),
  ]);
  onTestFinished(async () => {
    await kubectl(["delete", "application.events.osbert.io", application, "--wait=false"]);
  });

  const events = `events: { integrationNamespace: ${integration}, linger: 500ms, debounce: 500ms, hysteresis: 500ms }\n`;
  const { settings } = loadEventSettings("osbert.yaml", systemWith({ "/place/osbert.yaml": events }));
  const account = { namespace: integration, name: freshNamespace("broker") };
  await apply(kubectl, accessObjects(settings, account));
  const yaml = `${events}
cluster: { kubeconfig: ${await serviceAccountKubeconfig(cluster, account)} }
listen: { port: 0 }
credentials:
  - { username: granted, password: g, platform: ${granted} }
  - { username: other, password: o, platform: ${other} }
  - { username: platform, password: p }
admin: { credentials: [{ username: ops, password: a }] }
metrics: { enabled: true, credentials: [{ username: watcher, password: w }] }
`;
  return {
    ...{ granted, other, integration, application, yaml },
    async trigger() {
      await apply(kubectl, [
        {
          ...{ apiVersion: "eventing.knative.dev/v1", kind: "Trigger", metadata: { namespace: granted, name: "all" } },
          spec: { broker: "default", subscriber: { ref: { apiVersion: "v1", kind: "Service", name: "sink" } } },
        },
      ]);
    },
    /** Sends events until one more has arrived. */
    async arrives() {
      const { knative } = cluster.facts;
      const before = sink.received.length;
      let sent = before;
      await until("an event", async () => {
        if (knative === undefined) throw new Error("there is no Knative");
        sent += 1;
        const event = { id: `${before}-${sent}`, type: "order.created", source: "/shop", data: {} };
        await sendToChannel(knative, { namespace: integration, name: application }, event);
        return sink.received.length > before;
      });
    },
    /** A Broker with a Trigger is kept, and looked at again only after a while. */
    async withoutTrigger() {
      await kubectl(["delete", "trigger", "all", "-n", granted]);
    },
    async brokerGoes() {
      const brokers = () => kubectl(["get", "brokers", "-n", granted, "-o", "name"]);
      await until("the Broker to go", async () => (await brokers()) === "");
    },
  };
}

interface CatalogService {
  readonly id: string;
  readonly plans: readonly { readonly id: string; readonly name: string }[];
}

/** One instance in a namespace, asked for at any broker of the lab. */
export function instanceIn(namespace: string, application: string, credential = "granted:g") {
  const at = `/${namespace}/v2/service_instances/one`;
  let ids = { service_id: "", plan_id: "" };
  return {
    /** Waits for the application to be offered. */
    async offered(url: string) {
      await until("the application in the catalog", async () => {
        const { body } = await ask(url, "GET", `/${namespace}/v2/catalog`, { credential });
        const services = body.services as readonly CatalogService[];
        const service = services.find((each) => JSON.stringify(each).includes(application));
        ids = { service_id: service?.id ?? "", plan_id: service?.plans[0]?.id ?? "" };
        return service !== undefined;
      });
    },
    async provision(url: string) {
      const body = { ...ids, organization_guid: "o", space_guid: "s" };
      return (await ask(url, "PUT", `${at}?accepts_incomplete=true`, { credential, body })).status;
    },
    async deprovision(url: string) {
      const query = new URLSearchParams({ ...ids, accepts_incomplete: "true" });
      return (await ask(url, "DELETE", `${at}?${query}`, { credential })).status;
    },
    async settles(url: string) {
      await until("the end of the operation", async () => {
        const { status, body } = await ask(url, "GET", `${at}/last_operation`, { credential });
        if (body.state === "failed") throw new Error(String(body.description));
        return status === 410 || body.state === "succeeded";
      });
    },
    async isHealthy(url: string) {
      await until("the instance to be healthy", async () => {
        const { body } = await ask(url, "GET", at, { credential });
        return JSON.stringify(body.metadata).includes('"health":"Healthy"');
      });
    },
  };
}
