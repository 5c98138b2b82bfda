import type { RawCondition } from "./conditions.js";
import { hasPolicy, policyObjects } from "./desired-objects.js";
import type {
  ConditionStatus,
  ConditionType,
  FlowRecord,
  NamespaceData,
  OwnReason,
  WireRecord,
} from "./flow-record.js";
import type { FlowSettings } from "./flow-settings.js";
import { hasForeignClass } from "./next-broker.js";
import type { Observed, SeenReadiness } from "./observed.js";

/** What is true of a flow at this moment, in the order in which a person would look. */
export function flowConditions(
  flow: FlowRecord,
  { namespace, broker, policyTrouble = null }: Pick<NamespaceData, "namespace" | "broker" | "policyTrouble">,
  wire: WireRecord | undefined,
  observed: Observed,
  settings: FlowSettings,
): readonly RawCondition[] {
  return [
    granted(flow, observed),
    source(flow, observed),
    sink(broker, observed, settings),
    policy(namespace, policyTrouble, observed, settings),
    subscription(wire, observed),
  ];
}

function granted({ application, service }: FlowRecord, observed: Observed): RawCondition {
  const found = observed.applications.get(application)?.granted ?? "unknown";
  if (observed.behind !== null || found === "unknown") return unknown("Granted", observed);
  if (found.has(service)) return yes("Granted", "Granted", "the namespace may have it");
  return no(
    "Granted",
    "GrantRevoked",
    `the namespace is not granted ${service} of ${application}; its events are stopped`,
  );
}

function source({ application }: FlowRecord, observed: Observed): RawCondition {
  if (observed.behind !== null) return unknown("SourceReady", observed);
  const found = observed.applications.get(application);
  if (found?.exists === false) return no("SourceReady", "Gone", `there is no application ${application} any more`);
  if (observed.knative === "missing") return knativeMissing("SourceReady");
  const [channel, ...more] = found?.channels ?? [];
  if (channel === undefined)
    return no("SourceReady", "ChannelMissing", `there is no channel of the application ${application} yet`);
  if (more.length > 0) {
    const names = [channel, ...more].slice(0, 5).map(({ name }) => name);
    return no(
      "SourceReady",
      "SeveralChannels",
      `the application ${application} has several channels: ${names.join(", ")}`,
    );
  }
  return asSeen("SourceReady", channel.ready, `the channel ${channel.name}`);
}

function sink(broker: NamespaceData["broker"], observed: Observed, settings: FlowSettings): RawCondition {
  if (observed.behind !== null) return unknown("SinkReady", observed);
  if (observed.namespace !== "active")
    return no("SinkReady", "NamespaceGone", "the namespace is being deleted, or gone");
  if (observed.knative === "missing") return knativeMissing("SinkReady");
  const { broker: seen } = observed;
  if (broker.state === "deleting")
    return no(
      "SinkReady",
      "Deleting",
      andTrouble("the Broker before is being deleted; a new one follows", broker.trouble),
    );
  if (seen === undefined) {
    if (broker.refused !== null)
      return no("SinkReady", "Refused", `the cluster refuses the Broker: ${broker.refused.message}`);
    return no("SinkReady", "BrokerMissing", andTrouble("the Broker is being made", broker.trouble));
  }
  if (seen.ours && hasForeignClass(seen, settings)) {
    return no(
      "SinkReady",
      "ForeignChange",
      `the Broker is of the class ${seen.class} now; somebody has to decide what holds`,
    );
  }
  return asSeen("SinkReady", seen.ready, `the Broker ${seen.name}`);
}

function policy(
  namespace: string,
  trouble: string | null,
  { behind, policies }: Observed,
  settings: FlowSettings,
): RawCondition {
  if (settings.policies === "none") return yes("PolicyReady", "NotWanted", "no policies are configured");
  if (behind !== null) return said("PolicyReady", "Unknown", "ClusterSilent", behind);
  if (policies.kinds === "missing") {
    const message = "the cluster does not know policies of a service mesh";
    return settings.policies === "optional"
      ? yes("PolicyReady", "PolicySkipped", message)
      : no("PolicyReady", "MeshMissing", message);
  }
  return policyObjects(namespace, settings).every((desired) => hasPolicy(policies.seen, desired))
    ? yes("PolicyReady", "Applied", "the policies are there")
    : no("PolicyReady", "PolicyMissing", andTrouble("the policies are being made", trouble));
}

function subscription(wire: WireRecord | undefined, observed: Observed): RawCondition {
  if (observed.behind !== null) return unknown("SubscriptionReady", observed);
  if (observed.knative === "missing") return knativeMissing("SubscriptionReady");
  const seen = wire === undefined ? undefined : observed.subscriptions.get(wire.name);
  if (wire?.state === "deleting")
    return no("SubscriptionReady", "Deleting", andTrouble("the Subscription is being removed", wire.trouble));
  if (seen === undefined) {
    const refused = wire?.refused ?? null;
    return refused === null
      ? no("SubscriptionReady", "SubscriptionMissing", andTrouble("there is no Subscription yet", wire?.trouble))
      : no("SubscriptionReady", "Refused", `the cluster refuses the Subscription: ${refused.message}`);
  }
  return asSeen("SubscriptionReady", seen.ready, `the Subscription ${seen.name}`);
}

function asSeen(type: ConditionType, { status, reason, message }: SeenReadiness, what: string): RawCondition {
  if (status === "True") return yes(type, "Ready", `${what} is ready`);
  return { type, status: "False", reason, message: `${what} is not ready${message === "" ? "" : `: ${message}`}` };
}

function andTrouble(what: string, trouble: string | null | undefined): string {
  return trouble === null || trouble === undefined ? what : `${what}: ${trouble}`;
}

function unknown(type: ConditionType, { behind }: Observed): RawCondition {
  const message = behind ?? "what is known of applications is not up to date";
  return said(type, "Unknown", behind === null ? "ApplicationsUnknown" : "ClusterSilent", message);
}

function knativeMissing(type: ConditionType): RawCondition {
  return said(type, "Unknown", "KnativeMissing", "Knative Eventing is not installed in the cluster");
}

function yes(type: ConditionType, reason: OwnReason, message: string): RawCondition {
  return said(type, "True", reason, message);
}

function no(type: ConditionType, reason: OwnReason, message: string): RawCondition {
  return said(type, "False", reason, message);
}

function said(type: ConditionType, status: ConditionStatus, reason: OwnReason, message: string): RawCondition {
  return { type, status, reason, message };
}
