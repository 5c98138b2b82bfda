import { instanceKey, type PlanDefinition } from "@osbert/broker";
import type { Journal, TypedResource } from "@osbert/journal";
import { flowAdmin } from "../admin/flow-admin.js";
import { namespaceOf } from "../applications/platform-namespace.js";
import type { Wiring, WiringPorts } from "../applications/wiring.js";
import type { Cluster } from "../cluster/cluster.js";
import { followed } from "../flows/claims.js";
import { deliverySchema } from "../flows/delivery.js";
import {
  conditionOf,
  flowId,
  flowPart,
  followKind,
  isHeld,
  type NamespaceShape,
  namespaceKey,
  namespaceKeyPrefix,
  namespaceResource,
  newNamespace,
} from "../flows/flow-record.js";
import { defaultFlowSettings, type FlowSettings } from "../flows/flow-settings.js";
import type { FlowEvent, FlowObserver } from "../watch/flow-event.js";
import { flowAdminPorts } from "./flow-admin-ports.js";
import { type FlowFunctionsPorts, flowFunctions } from "./flow-functions.js";
import { FlowWatches } from "./flow-watches.js";
import { followNamespace } from "./follow-namespace.js";
import { byEventFlow, hurryWaiting } from "./hurry-waiting.js";
import { WakeUps } from "./wake-ups.js";

export interface WiringOptions {
  readonly cluster: Cluster;
  readonly settings?: Partial<FlowSettings>;
  /** Told of what becomes of flows: `logFlows`, `flowMetrics`, or your own. It cannot harm them. */
  readonly observe?: FlowObserver | readonly FlowObserver[];
  readonly random?: () => number;
}

/** Wires applications to namespaces: what instances claim, the followers of their namespaces make, keep and clear away. */
export function createWiring(options: WiringOptions): Wiring & { readonly settings: FlowSettings } {
  const { cluster, random = Math.random } = options;
  const settings: FlowSettings = { ...defaultFlowSettings, ...options.settings };
  const observers = [options.observe ?? []].flat();
  const tell = (event: FlowEvent) => {
    for (const observe of observers) {
      try {
        observe(event);
      } catch {
        // Whoever looks on does not break what he looks at.
      }
    }
  };
  let opened:
    | {
        readonly ports: WiringPorts;
        readonly watches: FlowWatches;
        readonly wakeUps: WakeUps;
        readonly unlisten: () => void;
      }
    | undefined;
  const open = () => {
    if (opened === undefined) throw new Error("the wiring is not open");
    return opened;
  };
  const journal = () => open().ports.journal;
  const follow = followNamespace({ ...{ journal, cluster, settings, tell, random }, watches: () => open().watches });
  const functionPorts: FlowFunctionsPorts = { journal, settings, applications: () => open().ports.applications };
  return {
    kinds: namespaceResource.kinds({ [followKind]: follow }),
    settings,
    async open(ports) {
      const wakeUps = new WakeUps({
        namespace: (namespace, isOurs) => lookAt(ports.journal, namespace, isOurs),
        flowing: (applications) => flowing(ports.journal, applications),
      });
      const watches = new FlowWatches({
        ...{ cluster, settings, applications: ports.applications },
        touched: (namespace, isOurs) =>
          namespace === undefined ? wakeUps.all() : wakeUps.namespace(namespace, isOurs),
        touchedApplication: (application) => wakeUps.application(application),
      });
      const unlisten = ports.applications.onChange((change) => {
        // What fails here is missed: who waits looks by itself, too.
        if (change.kind === "grants") wakeWaiting(ports.journal, change.namespace).catch(() => undefined);
      });
      opened = { ports, watches, wakeUps, unlisten };
    },
    functions: ({ application, service, plan }) =>
      flowFunctions(functionPorts, { application, service, events: plan.events }),
    changesPlans: true,
    plan: ({ events }) => (events ? eventsPlan(settings) : {}),
    admin: flowAdmin(flowAdminPorts(journal, () => open().ports.applications)),
    async instanceMetadata({ platform, instance }) {
      const namespace = namespaceOf(platform);
      if (namespace === undefined) return undefined;
      const flow = flowId(platform, instance);
      const resource = namespaceResource.resource(await journal().read(namespaceKey(namespace), [flowPart(flow)]));
      const record = resource?.parts.get(flowPart(flow));
      const ready = record === undefined ? undefined : conditionOf(record, "Ready");
      if (ready === undefined) return undefined;
      const health = ready.status === "True" ? "Healthy" : ready.status === "False" ? "Degraded" : "Unknown";
      return {
        attributes: { health, "health.reason": ready.reason, "health.since": new Date(ready.since).toISOString() },
      };
    },
    close() {
      opened?.unlisten();
      opened?.wakeUps.close();
      opened?.watches.close();
      opened = undefined;
    },
  };
}

/** What users may say of the events of a plan; and platforms poll beyond the moment by which a provision has ended. */
function eventsPlan({
  softDeadlineMs,
}: FlowSettings): Pick<PlanDefinition, "provision" | "update" | "maximumPollingDuration"> {
  const parameters = { type: "object", properties: { delivery: deliverySchema }, additionalProperties: false } as const;
  return { provision: parameters, update: parameters, maximumPollingDuration: Math.ceil(softDeadlineMs / 900) };
}

/**
 * Whoever follows the namespace looks now. Where all was over and an object of ours is left, somebody begins to again: it was made by a process that came
 * late. Of a namespace that this store has never known nothing is touched: the store may be a wrong one, or an old copy.
 */
async function lookAt(journal: Journal, namespace: string, isOurs: boolean): Promise<void> {
  const key = namespaceKey(namespace);
  if (!isOurs && !isFollowed(namespaceResource.resource(await journal.read(key)))) return;
  await journal.transact(
    key,
    namespaceResource.decide((resource) => {
      if (isFollowed(resource)) return { result: null, change: followed(resource) };
      if (!isOurs || resource === undefined) return { result: null };
      return { result: null, change: { data: resource.data ?? newNamespace(namespace), ...followed(resource) } };
    }),
    { by: byEventFlow },
  );
}

/** Instances of a namespace may wait for its grant, before they have claimed anything. */
async function wakeWaiting(journal: Journal, namespace: string): Promise<void> {
  for (let after: string | undefined; ; ) {
    const query = {
      prefix: instanceKey(namespace, ""),
      limit: namespacesAtOnce,
      ...(after !== undefined && { after }),
    };
    const { items, next } = await journal.find(query);
    const waiting = items.filter(({ open }) => open.some(({ state }) => state === "waiting"));
    for (const { key } of waiting) await hurryWaiting(journal, key);
    if (next === null) return;
    after = next;
  }
}

/** Of one where all is over, the record stays for a while: it is no reason to look. */
function isFollowed(resource: TypedResource<NamespaceShape> | undefined): boolean {
  if (resource === undefined || resource.data === null) return false;
  return resource.open.length > 0 || isHeld(resource.data);
}

const namespacesAtOnce = 100;

async function* flowing(journal: Journal, applications: ReadonlySet<string> | "all"): AsyncGenerator<string, void> {
  for (let after: string | undefined; ; ) {
    const query = { prefix: namespaceKeyPrefix, limit: namespacesAtOnce, ...(after !== undefined && { after }) };
    const { items, next } = await journal.find(query);
    for (const item of items) {
      const resource = namespaceResource.resource(item);
      if (!isFollowed(resource)) continue;
      const { data } = resource;
      if (applications === "all" || data.applications.some((name) => applications.has(name))) yield data.namespace;
    }
    if (next === null) return;
    after = next;
  }
}
