import type { Applications } from "../applications/applications.js";
import type { Cluster, Watch, WatchChange, WatchState } from "../cluster/cluster.js";
import { type ClusterObject, type ObjectKind, placeOf } from "../cluster/cluster-object.js";
import { labelValue } from "../cluster/object-name.js";
import type { StoredNamespace } from "../flows/decide-pass.js";
import {
  brokerClassAnnotation,
  epochAnnotation,
  isOwn,
  namespaceLabel,
  ownLabels,
  pausedAnnotation,
} from "../flows/desired-objects.js";
import { type FlowSettings, kinds } from "../flows/flow-settings.js";
import {
  isRecord,
  type Observed,
  readinessOf,
  type SeenApplication,
  type SeenBroker,
  type SeenChannel,
  type SeenMirror,
  type SeenObject,
  type SeenPolicy,
  type SeenSubscription,
  text,
} from "../flows/observed.js";

export interface FlowWatchesPorts {
  readonly cluster: Cluster;
  readonly applications: Applications;
  readonly settings: FlowSettings;
  /** Something has changed that the flows of a namespace may depend on; without one, those of all. `isOurs`: there is an object of ours for it. */
  readonly touched: (namespace: string | undefined, isOurs?: boolean) => void;
  /** Something has changed for all namespaces that have flows of an application. */
  readonly touchedApplication: (application: string) => void;
}

interface KeptSubscription extends SeenSubscription {
  /** Whose events it brings; as the label tells it. */
  readonly for: string | null;
}

interface KeptPolicy extends SeenPolicy {
  /** Which namespace it lets events into; as the label tells it. */
  readonly for: string | null;
}

/** Copies of all objects that flows are made of, and what they come to for one namespace. */
export class FlowWatches {
  readonly #ports: FlowWatchesPorts;
  readonly #namespaces: Watch<{ readonly deleting: boolean }>;
  readonly #brokers: Watch<SeenBroker>;
  readonly #channels: Watch<SeenChannel>;
  readonly #subscriptions: Watch<KeptSubscription>;
  readonly #policies: readonly Watch<KeptPolicy>[];
  readonly #mirrors: Watch<SeenMirror> | undefined;
  /** By what they are for: a namespace looks at its own alone, however many others there are. */
  readonly #channelsOf = new Index<SeenChannel>();
  readonly #subscriptionsOf = new Index<KeptSubscription>();
  readonly #policiesOf = new Index<KeptPolicy>();
  /** For which namespace a Subscription is that a wire names: those of others do not say it themselves. */
  readonly #namedFor = new Map<string, string>();
  readonly #unlisten: () => void;

  constructor(ports: FlowWatchesPorts) {
    this.#ports = ports;
    const { cluster, settings, applications, touched, touchedApplication } = ports;
    const { integrationNamespace, channelLabel, channelKind, brokerName } = settings;
    const ours = Object.entries(ownLabels(settings))
      .map(([name, value]) => `${name}=${value}`)
      .join(",");
    this.#namespaces = cluster.watch(kinds.namespace, {
      keep: ({ metadata }) => ({ deleting: metadata.deletionTimestamp !== undefined }),
      changed: (change) => touched(change?.place.name),
    });
    this.#brokers = cluster.watch(kinds.broker, {
      fields: `metadata.name=${brokerName}`,
      keep: (object) => toBroker(object, settings),
      changed: told((change) => {
        const { after } = change ?? {};
        // One that is to stay in any case tells nothing of flows that are left.
        const isLeft = settings.deleteBroker !== "never" && after !== undefined && after.ours && !after.deleting;
        touched(change?.place.namespace, isLeft);
      }),
    });
    this.#channels = cluster.watch(channelKind, {
      namespace: integrationNamespace,
      labels: channelLabel,
      keep: (object) => toChannel(object, settings),
      changed: (change) => {
        this.#channelsOf.take(change, ({ application }) => application);
        told<SeenChannel>((news) => {
          if (news === undefined) return touched(undefined);
          for (const seen of [news.before, news.after]) if (seen !== undefined) touchedApplication(seen.application);
        })(change);
      },
    });
    this.#subscriptions = cluster.watch(kinds.subscription, {
      namespace: integrationNamespace,
      keep: (object) => toSubscription(object, settings),
      changed: (change) => {
        this.#subscriptionsOf.take(change, (seen) => seen.for);
        toldFor<KeptSubscription>(touched, ({ name }) => this.#namedFor.get(name) ?? null)(change);
        // Whoever still names it says so again at the next look.
        if (change !== undefined && change.after === undefined) this.#namedFor.delete(change.place.name);
      },
    });
    // Also where none are wanted: those that were made before would still let events in.
    this.#policies = [kinds.peerAuthentication, kinds.authorizationPolicy].map((kind) => {
      const watch: Watch<KeptPolicy> = cluster.watch(kind, {
        labels: ours,
        keep: (object) => toPolicy(object, kind, settings),
        changed: (change) => {
          // Then there are none to remove, or it may not be done: nobody has to be asked for it for ever.
          const isNoUse = settings.policies === "none" && change === undefined;
          if (isNoUse && (watch.state === "no such kind" || watch.state === "forbidden")) return watch.close();
          this.#policiesOf.take(change, (seen) => seen.for);
          toldFor<KeptPolicy>(touched)(change);
        },
      });
      return watch;
    });
    this.#mirrors = settings.mirror
      ? cluster.watch(kinds.eventFlow, {
          labels: ours,
          keep: (object) => toMirror(object, settings),
          changed: told((change) => touched(change?.place.namespace)),
        })
      : undefined;
    this.#unlisten = applications.onChange((change) => {
      if (change.kind === "application") touchedApplication(change.application);
      else touched(change.kind === "grants" ? change.namespace : undefined);
    });
  }

  /** Resolves when everything was listed once, or is known not to be there. */
  async started(): Promise<void> {
    await Promise.all(this.#all().map((watch) => watch.started));
  }

  /** What is seen of a namespace now, and of the applications that its flows are of. */
  observe({ data, flows, wires }: StoredNamespace): Observed {
    const { settings } = this.#ports;
    const { namespace } = data;
    const needed: readonly Watch<unknown>[] = [this.#namespaces, this.#brokers, this.#channels, this.#subscriptions];
    const knative = [this.#brokers, this.#channels, this.#subscriptions].some(({ state }) => state === "no such kind");
    // Where no policies are wanted, nothing waits for what is seen of them.
    const policies = settings.policies === "none" ? [] : this.#policies;
    const trouble = [...needed, ...policies].find(({ state }) => state !== "current" && state !== "no such kind");
    const life = this.#namespaces.get({ namespace: "", name: namespace });
    const services = new Map<string, Set<string>>([...wires.keys()].map((name) => [name, new Set()]));
    for (const { application, service } of flows.values())
      services.set(application, (services.get(application) ?? new Set()).add(service));
    const subscriptions = new Map(
      [...this.#subscriptionsOf.get(labelValue(namespace))].filter(({ ours }) => ours).map((seen) => [seen.name, seen]),
    );
    for (const { name } of wires.values()) {
      this.#namedFor.set(name, namespace);
      const seen = this.#subscriptions.get({ namespace: settings.integrationNamespace, name });
      if (seen !== undefined) subscriptions.set(name, seen);
    }
    return {
      behind: trouble === undefined ? null : (trouble.why ?? `the cluster was not heard of (${trouble.state})`),
      namespace: life === undefined ? "gone" : life.deleting ? "deleting" : "active",
      knative: knative ? "missing" : "here",
      broker: this.#brokers.get({ namespace, name: settings.brokerName }),
      applications: new Map([...services].map(([name, of]) => [name, this.#application(namespace, name, of)])),
      subscriptions,
      policies: {
        kinds: this.#policies.some(({ state }) => state === "no such kind") ? "missing" : "here",
        seen: [...this.#policiesOf.get(labelValue(namespace))],
      },
      mirror: {
        kind: mirrorKind(this.#mirrors?.state),
        seen: new Map([...(this.#mirrors?.values(namespace) ?? [])].map((seen) => [seen.name, seen])),
      },
    };
  }

  close(): void {
    this.#unlisten();
    for (const watch of this.#all()) watch.close();
  }

  #application(namespace: string, name: string, services: ReadonlySet<string>): SeenApplication {
    const { applications } = this.#ports;
    const isKnown = applications.state === "current";
    const granted = [...services].filter((service) => applications.isGranted(namespace, name, service));
    return {
      exists: isKnown ? applications.application(name) !== undefined : "unknown",
      granted: isKnown ? new Set(granted) : "unknown",
      channels: [...this.#channelsOf.get(labelValue(name))],
    };
  }

  #all(): readonly Watch<unknown>[] {
    const mirrors = this.#mirrors === undefined ? [] : [this.#mirrors];
    return [this.#namespaces, this.#brokers, this.#channels, this.#subscriptions, ...this.#policies, ...mirrors];
  }
}

function mirrorKind(state: WatchState | undefined): Observed["mirror"]["kind"] {
  if (state === "starting" || state === "behind") return "unknown";
  return state === "current" ? "here" : "missing";
}

/** Objects by what they are for. */
class Index<Kept extends SeenObject> {
  readonly #by = new Map<string, Map<string, Kept>>();

  get(key: string): Iterable<Kept> {
    return this.#by.get(key)?.values() ?? [];
  }

  take(change: WatchChange<Kept> | undefined, keyOf: (kept: Kept) => string | null): void {
    if (change === undefined) return;
    const { before, after } = change;
    const id = ({ namespace, name, uid }: Kept) => `${namespace}/${name}/${uid}`;
    if (before !== undefined) {
      const key = keyOf(before) ?? "";
      const of = this.#by.get(key);
      of?.delete(id(before));
      if (of?.size === 0) this.#by.delete(key);
    }
    if (after !== undefined) {
      const key = keyOf(after) ?? "";
      const of = this.#by.get(key) ?? new Map<string, Kept>();
      this.#by.set(key, of.set(id(after), after));
    }
  }
}

/** What only has another version is no news. */
function told<Kept extends SeenObject>(
  changed: (change: WatchChange<Kept> | undefined) => void,
): (change: WatchChange<Kept> | undefined) => void {
  return (change) => {
    if (change !== undefined && withoutVersion(change.before) === withoutVersion(change.after)) return;
    changed(change);
  };
}

function toldFor<Kept extends SeenObject & { readonly for: string | null }>(
  touched: FlowWatchesPorts["touched"],
  otherwise: (kept: Kept) => string | null = () => null,
): (change: WatchChange<Kept> | undefined) => void {
  return told((change) => {
    if (change === undefined) return touched(undefined);
    const { before, after } = change;
    const [was, is] = [before, after].map((kept) => (kept === undefined ? null : (kept.for ?? otherwise(kept))));
    if (was != null) touched(was);
    if (after !== undefined && is != null) touched(is, after.ours && !after.deleting);
  });
}

function withoutVersion(kept: SeenObject | undefined): string | undefined {
  return kept === undefined ? undefined : JSON.stringify({ ...kept, resourceVersion: "" });
}

function toObject(object: ClusterObject, settings: FlowSettings): SeenObject {
  const { uid = "", resourceVersion = "", deletionTimestamp } = object.metadata;
  return {
    ...placeOf(object),
    uid,
    resourceVersion,
    ours: isOwn(object, settings),
    deleting: deletionTimestamp !== undefined,
  };
}

/** Users write them, up to a quarter of a megabyte; and what they say is told with every flow. */
const longestAnnotation = 200;

function toBroker(object: ClusterObject, settings: FlowSettings): SeenBroker {
  const { metadata, spec, status } = object;
  const address = isRecord(status) && isRecord(status.address) ? text(status.address.url, 2_000) : undefined;
  return {
    ...toObject(object, settings),
    class: text(metadata.annotations?.[brokerClassAnnotation], longestAnnotation) ?? null,
    epoch: text(metadata.annotations?.[epochAnnotation], longestAnnotation) ?? null,
    spec: spec ?? null,
    ready: readinessOf(object),
    address: address ?? null,
  };
}

function toChannel(object: ClusterObject, settings: FlowSettings): SeenChannel {
  const { apiVersion, kind, metadata } = object;
  return {
    ...toObject(object, settings),
    apiVersion,
    kind,
    application: metadata.labels?.[settings.channelLabel] ?? "",
    ready: readinessOf(object),
  };
}

function toSubscription(object: ClusterObject, settings: FlowSettings): KeptSubscription {
  const spec = isRecord(object.spec) ? object.spec : {};
  const { channel, subscriber, delivery } = spec;
  return {
    ...toObject(object, settings),
    spec: { channel, subscriber, ...(delivery !== undefined && { delivery }) },
    ready: readinessOf(object),
    for: object.metadata.labels?.[namespaceLabel] ?? null,
  };
}

function toPolicy(object: ClusterObject, { kind }: ObjectKind, settings: FlowSettings): KeptPolicy {
  const { spec, metadata } = object;
  return { ...toObject(object, settings), kind, spec: spec ?? null, for: metadata.labels?.[namespaceLabel] ?? null };
}

function toMirror(object: ClusterObject, settings: FlowSettings): SeenMirror {
  const { spec, status, metadata } = object;
  const paused = metadata.annotations?.[pausedAnnotation] === "true";
  return { ...toObject(object, settings), spec: spec ?? null, status: status ?? null, paused };
}
