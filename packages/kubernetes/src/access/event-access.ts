import type { ApplicationKind } from "../applications/application.js";
import { applicationKinds } from "../applications/application-kinds.js";
import type { ObjectKind } from "../cluster/cluster-object.js";
import { isNamespacedClass } from "../flows/desired-objects.js";
import { type FlowSettings, kinds } from "../flows/flow-settings.js";

/** A rule of Kubernetes' RBAC. */
export interface AccessRule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
}

/** All that a broker for events asks of a cluster: a test compares it with what is sent. */
export interface EventAccess {
  /** For a ClusterRole. */
  readonly cluster: readonly AccessRule[];
  /** For a Role in each of these namespaces. */
  readonly namespaces: readonly { readonly namespace: string; readonly rules: readonly AccessRule[] }[];
}

export interface EventAccessOptions {
  readonly settings: Pick<
    FlowSettings,
    "integrationNamespace" | "channelKind" | "policies" | "brokerClass" | "systemNamespace" | "mirror" | "deleteBroker"
  >;
  /** Kinds of resources that describe applications. Default: Kyma's and Osbert's own. */
  readonly kinds?: readonly ApplicationKind[];
  /** Where the Secrets of applications are. Default: where their channels are. */
  readonly secretNamespace?: string;
}

const watch = ["list", "watch"] as const;
/** Server-side apply is a patch, and needs `create` where the object is not there yet. */
const apply = ["create", "patch"] as const;

/**
 * What a service account needs for event flow with these settings, and nothing more. Which kinds there are, anyone may ask
 * (`system:discovery`).
 */
export function eventAccess({ settings, kinds: of = ["kyma", "osbert"], ...options }: EventAccessOptions): EventAccess {
  const { integrationNamespace, channelKind, policies, brokerClass, systemNamespace } = settings;
  const { secretNamespace = integrationNamespace } = options;
  // Before a Broker is deleted it is asked for once more.
  const removes = settings.deleteBroker === "never" ? [] : ["get", "delete"];
  const inUserNamespaces = isNamespacedClass(brokerClass);
  // Where none are wanted, those that were made before are removed.
  const policyVerbs = policies === "none" ? ["delete"] : [...apply, "delete"];
  const places = new Map<string, AccessRule[]>();
  const inNamespace = (namespace: string, ...rules: AccessRule[]) =>
    places.set(namespace, [...(places.get(namespace) ?? []), ...rules]);
  inNamespace(integrationNamespace, rule(channelKind, watch), rule(kinds.subscription, [...watch, ...apply, "delete"]));
  inNamespace(secretNamespace, rule(secretKind, ["get"]));
  if (!inUserNamespaces) inNamespace(systemNamespace, rule(kinds.authorizationPolicy, policyVerbs));
  return {
    cluster: [
      rule(kinds.namespace, watch),
      ...of.flatMap((kind) => {
        const { applications, grants } = applicationKinds[kind];
        return [rule(applications, ["get", ...watch]), rule(grants, ["get", ...watch])];
      }),
      rule(kinds.broker, [...watch, ...apply, ...removes]),
      ...(settings.deleteBroker === "whenUnused" ? [rule(kinds.trigger, ["list"])] : []),
      ...(settings.mirror
        ? [rule(kinds.eventFlow, [...watch, ...apply, "delete"]), rule(kinds.eventFlow, ["patch"], "/status")]
        : []),
      ...policyAccess(inUserNamespaces ? policyVerbs : []),
    ],
    namespaces: [...places].map(([namespace, rules]) => ({ namespace, rules })),
  };
}

const secretKind: ObjectKind = { group: "", version: "v1", kind: "Secret", plural: "secrets", namespaced: true };

/** They are looked for everywhere: where they belong may have been another place before. */
function policyAccess(writes: readonly string[]): readonly AccessRule[] {
  return [
    rule(kinds.authorizationPolicy, [...watch, ...writes]),
    rule(kinds.peerAuthentication, [...watch, ...writes]),
  ];
}

function rule({ group, plural }: ObjectKind, verbs: readonly string[], part = ""): AccessRule {
  return { apiGroups: [group], resources: [`${plural}${part}`], verbs };
}
