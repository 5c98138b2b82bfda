import { defaultFlowSettings } from "@osbert/kubernetes/settings";
import { formatDurationMs } from "../duration.js";
import type { Fields, TextForm } from "./shape.js";

const given = defaultFlowSettings;
const dayMs = 86_400_000;

/** What Kubernetes calls a namespace. */
export const namespacePattern = "^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$";

const namespace = {
  kind: "text",
  pattern: namespacePattern,
  mustBe: "the name of a namespace: lower-case letters, digits and dashes",
} as const;

const commas = (mustBe: string): TextForm => ({
  mustBe,
  parse: (text) => text.split(",").map((item) => item.trim()),
});

/** How the API server is reached. */
export const clusterFields = {
  kubeconfig: {
    shape: { kind: "path" },
    meaning:
      "The file that says where the cluster is, and who this is to it. It is read again when it may have changed.",
    otherwise: "what `KUBECONFIG` names; else, in a pod, its service account; else `~/.kube/config`",
    example: "/etc/osbert/kubeconfig",
  },
  context: {
    shape: { kind: "text", longest: 253 },
    meaning: "Which context of it.",
    otherwise: "its current one",
    example: "production",
  },
} as const satisfies Fields;

/** What is offered of applications, and how their events flow. */
export const eventFields = {
  enabled: {
    shape: { kind: "flag" },
    meaning:
      "Offers what the applications of the cluster offer, in place of `module` and `bundles`. `osbert events serve` does so in any case.",
    default: false,
  },
  kinds: {
    shape: {
      kind: "list",
      of: { kind: "choice", of: ["kyma", "osbert"] },
      fromText: commas("kyma, osbert or both with a comma"),
    },
    meaning:
      "Which resources describe applications and who may have them: Kyma's (`Application`, `ApplicationMapping`), Osbert's own (`Application`, `ApplicationGrant` of `events.osbert.io`), or both. Kinds that the cluster does not know do no harm.",
    default: ["kyma", "osbert"],
  },
  mapping: {
    shape: { kind: "choice", of: ["services", "applications"] },
    meaning:
      "How Kyma's applications become services. `services`: each service of an application is one, with one plan. `applications`: each application is one, with a plan for each of its services. Instances go on with that by which they were made.",
    default: "services",
  },
  integrationNamespace: {
    shape: namespace,
    meaning: "Where the channels of applications are. Their Subscriptions are made there.",
    default: given.integrationNamespace,
  },
  secretNamespace: {
    shape: namespace,
    meaning: "Where the Secrets are that applications name for their APIs.",
    otherwise: "`events.integrationNamespace`",
    example: "kyma-integration",
  },
  channelLabel: {
    shape: { kind: "text", longest: 317 },
    meaning: "The label of a channel that names its application.",
    default: given.channelLabel,
  },
  channelKind: {
    shape: {
      kind: "group",
      fields: {
        group: {
          shape: { kind: "text", longest: 253 },
          meaning: "Its API group.",
          default: given.channelKind.group,
        },
        version: { shape: { kind: "text", longest: 63 }, meaning: "Its version.", default: given.channelKind.version },
        kind: { shape: { kind: "text", longest: 63 }, meaning: "Its name.", default: given.channelKind.kind },
        plural: {
          shape: { kind: "text", longest: 63 },
          meaning: "Its name in paths.",
          default: given.channelKind.plural,
        },
      },
    },
    meaning: "The kind of the channels: any that Knative's Subscriptions take.",
  },
  brokerName: {
    shape: { kind: "text", pattern: namespacePattern, mustBe: "lower-case letters, digits and dashes" },
    meaning: "The name of the Broker that every namespace with events gets.",
    default: given.brokerName,
  },
  brokerClass: {
    shape: { kind: "text", longest: 253 },
    meaning: "The class that Brokers are made with. Those that are there keep theirs.",
    default: given.brokerClass,
  },
  brokerSpec: {
    shape: { kind: "json" },
    meaning: "What Brokers are made with: `config` and `delivery`, as Knative has them.",
    otherwise: "as Knative is set up",
    example: { delivery: { retry: 5, backoffPolicy: "exponential", backoffDelay: "PT0.5S" } },
  },
  deleteBroker: {
    shape: { kind: "choice", of: ["never", "whenUnused", "always"] },
    meaning:
      "What becomes of a Broker that was made here when the last flow is gone. `whenUnused`: it is deleted, unless Triggers are on it, which hold others' events. One that was there before stays in any case.",
    default: given.deleteBroker,
  },
  linger: duration("How long a Broker without flows stays, for a flow that comes back.", given.lingerMs, dayMs),
  policies: {
    shape: { kind: "choice", of: ["none", "optional", "required"] },
    meaning:
      "Istio's policies that let events into Brokers. `required`: instances fail where Istio's resources are not there; `optional`: goes without them then.",
    default: given.policies,
  },
  deliverers: {
    shape: {
      kind: "list",
      of: { kind: "text", longest: 500 },
      fromText: commas("principals with commas between them"),
    },
    meaning: "Who delivers into Brokers: principals for these policies.",
    default: given.deliverers,
  },
  systemNamespace: {
    shape: namespace,
    meaning:
      "Where Knative runs what all namespaces share. Policies are made there, unless the class of the Brokers has its own pods in each namespace.",
    default: given.systemNamespace,
  },
  mirror: {
    shape: { kind: "flag" },
    meaning: "Shows each flow as an `EventFlow` in its namespace, where the cluster knows that kind.",
    default: given.mirror,
  },
  readiness: {
    shape: { kind: "choice", of: ["eventual", "required"] },
    meaning:
      "When an instance is there. `eventual`: as soon as the cluster has taken all that it needs; it may be degraded then, and heals. `required`: only when its events flow; else it fails.",
    default: given.readiness,
  },
  softDeadline: duration("By then an instance is there, degraded, or has failed.", given.softDeadlineMs, dayMs),
  debounce: duration("What breaks for less than this is not told.", given.debounceMs, dayMs),
  hysteresis: duration("What has changed does not change back sooner.", given.hysteresisMs, dayMs),
  resync: duration("How often a namespace is looked at without news of it.", given.resyncMs, dayMs),
  retired: duration("How long an application that is gone and has no instances is remembered.", dayMs, 365 * dayMs),
} as const satisfies Fields;

function duration(meaning: string, defaultMs: number, to: number) {
  return { shape: { kind: "duration", to }, meaning, default: formatDurationMs(defaultMs) } as const;
}
