import { readFileSync } from "node:fs";
import { join } from "node:path";
import { listens } from "./answers.js";
import { writeKubeconfig } from "./control-plane.js";
import { apply, applyArgs, kubectlOf, untilEstablished } from "./kubectl.js";
import type { ClusterFacts, KnativeFacts } from "./options.js";
import { makePart, type Part } from "./part.js";
import { takePort } from "./ports.js";

export interface Knative {
  readonly facts: KnativeFacts;
  readonly parts: readonly Part[];
}

/** Applies Knative Eventing's resources, and what stands for a cluster with DNS and proxies: its processes run beside the cluster. */
export async function prepareKnative(cluster: ClusterFacts, folder: string): Promise<Knative> {
  const [webhook, channel, ingress, filter, profiling] = await Promise.all([
    takePort(),
    takePort(),
    takePort(),
    takePort(),
    takePort(),
  ]);
  const kubectl = kubectlOf(cluster);
  const config = (path: string) => ["-f", join(folder, "config", path)];
  await kubectl([...applyArgs, ...config("core/100-namespace.yaml")]);
  await Promise.all([
    kubectl([...applyArgs, ...config("core/resources"), ...config("channels/in-memory-channel/resources")]),
    kubectl([...applyArgs, ...config("core/configmaps"), ...config("channels/in-memory-channel/configmaps")]),
    apply(kubectl, standIns({ webhook, channel, ingress, filter })),
  ]);
  await Promise.all([
    kubectl([...applyArgs, "-f", "-"], quietLogging(folder)),
    untilEstablished(kubectl),
    kubectl(["wait", "--for=condition=Available", ...inNamespace, "deployment/imc-dispatcher", "--timeout=60s"]),
  ]);
  // Its own webhook refuses changes of anybody else.
  const token = await kubectl(["create", "token", ...inNamespace, account, "--duration=240h"]);
  const authority = readFileSync(join(cluster.directory, "pki", "ca.crt"));
  const kubeconfig = join(cluster.directory, "knative.kubeconfig");
  writeKubeconfig(kubeconfig, cluster.url, authority, account, token.trim());

  const env = {
    KUBECONFIG: kubeconfig,
    SYSTEM_NAMESPACE: namespace,
    CONFIG_LOGGING_NAME: "config-logging",
    CONFIG_OBSERVABILITY_NAME: "config-observability",
    METRICS_DOMAIN: "knative.dev/eventing",
    POD_NAME: "local",
    CONTAINER_NAME: "local",
    DISPATCHER_IMAGE: "none",
    MAX_IDLE_CONNS: "1000",
    MAX_IDLE_CONNS_PER_HOST: "1000",
    PROFILING_PORT: String(profiling),
    WEBHOOK_PORT: String(webhook),
    CHANNEL_PORT: String(channel),
    INGRESS_PORT: String(ingress),
    FILTER_PORT: String(filter),
    // Nobody comes there: any port that is free.
    CHANNEL_TLS_PORT: "0",
    INGRESS_TLS_PORT: "0",
    FILTER_TLS_PORT: "0",
  };
  const part = (name: "control" | "data", isReady: () => Promise<boolean>) =>
    makePart(`knative-${name}`, {
      command: [join(folder, "knative"), name],
      env,
      log: join(cluster.directory, `knative-${name}.log`),
      isReady,
    });
  // It works once the webhook fills in what a channel leaves open.
  const probe = {
    apiVersion: "messaging.knative.dev/v1",
    kind: "Channel",
    metadata: { name: "probe", namespace: "default" },
  };
  const dryRun = ["create", "--dry-run=server", "-o", "jsonpath={.spec.channelTemplate.kind}", "-f", "-"];
  const control = part("control", async () => (await kubectl(dryRun, JSON.stringify(probe))) === "InMemoryChannel");
  const data = part("data", async () => (await Promise.all([channel, ingress, filter].map(listens))).every(Boolean));
  return { facts: { channelPort: channel, brokerPort: ingress }, parts: [control, data] };
}

const namespace = "knative-eventing";
const inNamespace = ["-n", namespace] as const;
const account = "eventing-controller";

type Ports = Readonly<Record<"webhook" | "channel" | "ingress" | "filter", number>>;

/** What Knative looks for in a cluster that runs it. */
function standIns({ webhook, channel, ingress, filter }: Ports): readonly object[] {
  const named = (name: string, more: object = {}) => ({ name, namespace, ...more });
  return [
    { apiVersion: "v1", kind: "ServiceAccount", metadata: named(account) },
    {
      apiVersion: "rbac.authorization.k8s.io/v1",
      kind: "ClusterRoleBinding",
      metadata: { name: "eventing-controller-test" },
      roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "cluster-admin" },
      subjects: [{ kind: "ServiceAccount", name: account, namespace }],
    },
    { apiVersion: "v1", kind: "Secret", metadata: named("eventing-webhook-certs") },
    {
      apiVersion: "v1",
      kind: "Service",
      metadata: named("eventing-webhook"),
      spec: { type: "ExternalName", externalName: "localhost" },
    },
    // The in-memory channel asks whether its dispatcher is available: with none wanted, it is.
    {
      apiVersion: "apps/v1",
      kind: "Deployment",
      metadata: named("imc-dispatcher"),
      spec: {
        replicas: 0,
        selector: { matchLabels: { app: "imc-dispatcher" } },
        template: {
          metadata: { labels: { app: "imc-dispatcher" } },
          spec: { containers: [{ name: "none", image: "none" }] },
        },
      },
    },
    ...Object.entries({ "imc-dispatcher": channel, "broker-ingress": ingress, "broker-filter": filter }).flatMap(
      ([name, port]) => [
        // Without a selector, so that nobody writes other endpoints. Their address is never called, the annotation is.
        {
          apiVersion: "v1",
          kind: "Service",
          metadata: named(name, { annotations: { "test/forward": `127.0.0.1:${port}` } }),
          spec: { ports: [{ name: "http", port: 80, targetPort: port }] },
        },
        {
          apiVersion: "v1",
          kind: "Endpoints",
          metadata: named(name),
          subsets: [{ addresses: [{ ip: "192.0.2.1" }], ports: [{ name: "http", port }] }],
        },
      ],
    ),
    ...Object.entries({ MutatingWebhookConfiguration: "", ValidatingWebhookConfiguration: "validation." }).map(
      ([kind, prefix]) => ({
        apiVersion: "admissionregistration.k8s.io/v1",
        kind,
        metadata: { name: `${prefix}webhook.eventing.knative.dev` },
        webhooks: [
          {
            name: `${prefix}webhook.eventing.knative.dev`,
            admissionReviewVersions: ["v1"],
            clientConfig: { service: { name: "eventing-webhook", namespace, port: webhook } },
            sideEffects: "None",
            failurePolicy: "Fail",
            timeoutSeconds: 10,
          },
        ],
      }),
    ),
  ];
}

/** At its own level, the webhook tells of every request. */
function quietLogging(folder: string): string {
  const text = readFileSync(join(folder, "config", "core", "configmaps", "logging.yaml"), "utf8");
  return text.replaceAll('"level": "info"', '"level": "warn"').replaceAll(/^ {2}loglevel\..*\n/gm, "");
}
