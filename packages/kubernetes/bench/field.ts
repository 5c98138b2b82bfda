import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { applyArgs, type Kubectl } from "../../../tools/cluster/kubectl.js";
import type { ClusterFacts } from "../../../tools/cluster/options.js";
import { until } from "../../../tools/until.js";
import type { Cluster } from "../src/cluster/cluster.js";
import { apiVersionOf, type ClusterObject, type ObjectKind } from "../src/cluster/cluster-object.js";
import { openCluster } from "../src/cluster/open-cluster.js";
import { managedBy, managedByLabel } from "../src/flows/desired-objects.js";
import { defaultFlowSettings, kinds } from "../src/flows/flow-settings.js";
import { readinessOf } from "../src/flows/observed.js";
import type { FlowOrder } from "./orders.js";

/** How much there is of everything. */
export interface Sizes {
  readonly namespaces: number;
  /** Every namespace has a flow of each. */
  readonly applications: number;
  /** Applications with one flow each, whose channels come and go. */
  readonly probes: number;
  /** Objects that are watched, at least. */
  readonly watched: number;
  readonly steadyMs: number;
}

export const integrationNamespace = "kyma-integration";
const othersNamespace = "bench-others";
const crd = fileURLToPath(new URL("../crds/event-flow.yaml", import.meta.url));
const callsAtOnce = 16;

/** What is in the cluster before the broker comes, and what is changed in it from outside. */
export class Field {
  readonly cluster: Cluster;
  readonly sizes: Sizes;
  /** The cluster knows EventFlows: flows are mirrored. */
  readonly hasMirrors: boolean;
  readonly #kubectl: Kubectl;

  private constructor(cluster: Cluster, kubectl: Kubectl, sizes: Sizes) {
    this.cluster = cluster;
    this.#kubectl = kubectl;
    this.sizes = sizes;
    this.hasMirrors = existsSync(crd);
  }

  static async lay(facts: ClusterFacts, kubectl: Kubectl, sizes: Sizes): Promise<Field> {
    const cluster = await openCluster({
      access: { kind: "kubeconfig", file: facts.kubeconfig },
      fieldManager: "bench",
    });
    const field = new Field(cluster, kubectl, sizes);
    await field.#lay();
    return field;
  }

  get applications(): readonly string[] {
    return [...names("app", this.sizes.applications), ...this.probes];
  }

  get probes(): readonly string[] {
    return names("probe", this.sizes.probes);
  }

  get namespaces(): readonly string[] {
    return names("bench", this.sizes.namespaces);
  }

  get flows(): readonly FlowOrder[] {
    return this.namespaces.flatMap((namespace) =>
      names("app", this.sizes.applications).map((application) => ({ namespace, application })),
    );
  }

  /** One in each of some namespaces. */
  get probeFlows(): readonly FlowOrder[] {
    const { namespaces } = this;
    return this.probes.map((application, at) => ({ namespace: namespaces[at % namespaces.length] ?? "", application }));
  }

  /** From now on the channel of an application is none of its, or is again: Knative does not care, and nobody changes it back. */
  async setChannel(application: string, isThere: boolean): Promise<void> {
    const path = `/metadata/labels/${defaultFlowSettings.channelLabel}`;
    const value = isThere ? application : `not-${application}`;
    await this.cluster.patch(
      ...([defaultFlowSettings.channelKind, { namespace: integrationNamespace, name: application }] as const),
      [{ op: "replace", path, value }],
    );
  }

  /** As many others as it takes: EventFlows of a namespace without flows, which nobody else looks at. */
  async fillUp(): Promise<number> {
    const watched = await this.#watched();
    if (!this.hasMirrors) return watched;
    const missing = Math.max(0, this.sizes.watched - watched);
    await all(names("other", missing), (name) =>
      this.cluster.apply(
        kinds.eventFlow,
        object(kinds.eventFlow, name, othersNamespace, {
          metadata: { labels: { [managedByLabel]: managedBy, "events.osbert.io/integration": integrationNamespace } },
          spec: { source: "app-0", service: "app-0-events", instance: name },
        }),
      ),
    );
    return watched + missing;
  }

  async #lay(): Promise<void> {
    if (this.hasMirrors) {
      await this.#kubectl([...applyArgs, "-f", crd]);
      await this.#kubectl(["wait", "--for=condition=Established", "--timeout=60s", "crd/eventflows.events.osbert.io"]);
    }
    await all([integrationNamespace, othersNamespace, ...this.namespaces], (name) =>
      this.cluster.apply(kinds.namespace, object(kinds.namespace, name)),
    );
    const { channelKind, channelLabel } = defaultFlowSettings;
    await all(this.applications, (name) =>
      this.cluster.apply(
        channelKind,
        object(channelKind, name, integrationNamespace, { metadata: { labels: { [channelLabel]: name } } }),
      ),
    );
    await until("the channels", async () => {
      for await (const channel of this.cluster.list(channelKind, { namespace: integrationNamespace }))
        if (readinessOf(channel).status !== "True") return false;
      return true;
    });
  }

  /** What the watches of the broker hold. */
  async #watched(): Promise<number> {
    const { channelKind, channelLabel, brokerName } = defaultFlowSettings;
    const ours = `${managedByLabel}=${managedBy}`;
    const counts = [
      await this.#count(kinds.namespace),
      await this.#count(kinds.broker, { fields: `metadata.name=${brokerName}` }),
      await this.#count(channelKind, { namespace: integrationNamespace, labels: channelLabel }),
      await this.#count(kinds.subscription, { namespace: integrationNamespace }),
      this.hasMirrors ? await this.#count(kinds.eventFlow, { labels: ours }) : 0,
    ];
    return counts.reduce((sum, many) => sum + many, 0);
  }

  async #count(kind: ObjectKind, options: object = {}): Promise<number> {
    let many = 0;
    for await (const _ of this.cluster.list(kind, options)) many += 1;
    return many;
  }
}

function names(prefix: string, many: number): readonly string[] {
  return Array.from({ length: many }, (_, at) => `${prefix}-${at}`);
}

function object(kind: ObjectKind, name: string, namespace?: string, rest: object = {}): ClusterObject {
  const { metadata = {}, ...more } = rest as { readonly metadata?: object };
  const place = { name, ...(namespace !== undefined && { namespace }) };
  return { apiVersion: apiVersionOf(kind), kind: kind.kind, metadata: { ...place, ...metadata }, ...more };
}

async function all(list: readonly string[], act: (name: string) => Promise<unknown>): Promise<void> {
  const left = list.values();
  const work = async () => {
    for (const name of left) await act(name);
  };
  await Promise.all(Array.from({ length: callsAtOnce }, work));
}
