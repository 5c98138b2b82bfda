import type {
  Cluster,
  PatchOperation,
  Preconditions,
  Watch,
  WatchOptions,
  WatchState,
} from "../src/cluster/cluster.js";
import { ClusterError } from "../src/cluster/cluster-error.js";
import {
  apiVersionOf,
  type ClusterObject,
  type ObjectKind,
  type ObjectPlace,
  placeOf,
} from "../src/cluster/cluster-object.js";

type Verb = "read" | "list" | "apply" | "remove";

/** A cluster with Knative, in memory: whatever is applied is ready at once. For what is about journal and operations; the real one has tests of its own. */
export class MemoryKnative {
  /** Calls that fail, and with what. */
  fails: (verb: Verb, kind: ObjectKind) => ClusterError | undefined = () => undefined;
  /** How watches of a kind are. */
  state: (kind: ObjectKind) => WatchState = () => "current";
  readonly calls: string[] = [];
  readonly #objects = new Map<string, ClusterObject>();
  readonly #watches = new Set<{
    readonly kind: ObjectKind;
    readonly told: (key: string, before?: ClusterObject) => void;
  }>();
  #version = 1;

  get cluster(): Cluster {
    return this as unknown as Cluster;
  }

  put(kind: ObjectKind, metadata: ClusterObject["metadata"], rest: object = {}): ClusterObject {
    const key = keyOf(kind, placeOf({ metadata } as ClusterObject));
    const before = this.#objects.get(key);
    this.#version += 1;
    const own = { uid: before?.metadata.uid ?? `uid-${this.#version}`, resourceVersion: String(this.#version) };
    const object = { apiVersion: apiVersionOf(kind), kind: kind.kind, ...rest, metadata: { ...metadata, ...own } };
    this.#objects.set(key, object);
    this.#tell(kind, key, before);
    return object;
  }

  get(kind: ObjectKind, place: ObjectPlace): ClusterObject | undefined {
    return this.#objects.get(keyOf(kind, place));
  }

  all(kind: ObjectKind): readonly ClusterObject[] {
    return [...this.#objects].filter(([key]) => key.startsWith(prefixOf(kind))).map(([, object]) => object);
  }

  delete(kind: ObjectKind, place: ObjectPlace): void {
    const key = keyOf(kind, place);
    const before = this.#objects.get(key);
    this.#objects.delete(key);
    this.#tell(kind, key, before);
  }

  async read(kind: ObjectKind, place: ObjectPlace): Promise<ClusterObject | undefined> {
    this.#call("read", kind);
    return this.get(kind, place);
  }

  async *list(kind: ObjectKind, { namespace }: { readonly namespace?: string } = {}): AsyncGenerator<ClusterObject> {
    this.#call("list", kind);
    for (const object of this.all(kind))
      if (namespace === undefined || object.metadata.namespace === namespace) yield object;
  }

  async apply(kind: ObjectKind, object: ClusterObject): Promise<ClusterObject> {
    this.#call("apply", kind);
    const { resourceVersion, uid, ...metadata } = object.metadata;
    const before = this.get(kind, placeOf(object));
    const isOther =
      (resourceVersion !== undefined && before !== undefined) || (uid ?? before?.metadata.uid) !== before?.metadata.uid;
    if (isOther) throw new ClusterError("conflict");
    const status = { conditions: [{ type: "Ready", status: "True" }], address: { url: "http://broker.example" } };
    return this.put(kind, metadata, { spec: object.spec ?? { config: {} }, status });
  }

  async applyStatus(kind: ObjectKind, object: ClusterObject): Promise<ClusterObject> {
    this.#call("apply", kind);
    const before = this.get(kind, placeOf(object));
    if (before === undefined) throw new ClusterError("not found");
    return this.put(kind, before.metadata, { spec: before.spec, status: object.status });
  }

  /** Takes fields away; tests hold. */
  async patch(
    kind: ObjectKind,
    place: ObjectPlace,
    operations: readonly PatchOperation[],
  ): Promise<ClusterObject | undefined> {
    this.#call("apply", kind);
    const before = this.get(kind, place);
    if (before === undefined) return undefined;
    const after = structuredClone(before) as ClusterObject & Record<string, never>;
    for (const { op, path } of operations) {
      const names = path.split("/").slice(1);
      const parent = names.slice(0, -1).reduce<Record<string, never>>((at, name) => at[name] ?? {}, after);
      if (op === "remove") delete parent[names.at(-1) ?? ""];
    }
    return this.put(kind, before.metadata, after);
  }

  async remove(kind: ObjectKind, place: ObjectPlace, seen: Preconditions): Promise<"removed" | "gone" | "changed"> {
    this.#call("remove", kind);
    const { metadata } = this.get(kind, place) ?? {};
    if (metadata === undefined) return "gone";
    if (metadata.uid !== seen.uid || metadata.resourceVersion !== seen.resourceVersion) return "changed";
    this.delete(kind, place);
    return "removed";
  }

  watch<Kept>(kind: ObjectKind, options: WatchOptions<Kept>): Watch<Kept> {
    const isMeant = ({ metadata }: ClusterObject) =>
      (options.namespace === undefined || metadata.namespace === options.namespace) &&
      (options.fields === undefined || options.fields === `metadata.name=${metadata.name}`);
    const keep = (object: ClusterObject | undefined) =>
      object === undefined || !isMeant(object) ? undefined : options.keep(object);
    const watch = {
      kind,
      told: (key: string, before?: ClusterObject) => {
        const after = this.#objects.get(key);
        const place = placeOf((after ?? before) as ClusterObject);
        options.changed?.({ place, before: keep(before), after: keep(after) });
      },
    };
    this.#watches.add(watch);
    for (const object of this.all(kind)) watch.told(keyOf(kind, placeOf(object)));
    const values = (namespace?: string) =>
      this.all(kind).flatMap((object) => {
        const kept = namespace === undefined || object.metadata.namespace === namespace ? keep(object) : undefined;
        return kept === undefined ? [] : [kept];
      });
    const state = () => this.state(kind);
    return {
      get state() {
        return state();
      },
      ...{ why: null, started: Promise.resolve() },
      get: (place) => keep(this.get(kind, place)),
      values,
      get size() {
        return values().length;
      },
      close: () => void this.#watches.delete(watch),
    };
  }

  close(): void {
    this.#watches.clear();
  }

  #call(verb: Verb, kind: ObjectKind): void {
    this.calls.push(`${verb} ${kind.plural}`);
    const failure = this.fails(verb, kind);
    if (failure !== undefined) throw failure;
  }

  #tell(kind: ObjectKind, key: string, before: ClusterObject | undefined): void {
    for (const watch of [...this.#watches]) if (prefixOf(watch.kind) === prefixOf(kind)) watch.told(key, before);
  }
}

function prefixOf({ group, plural }: ObjectKind): string {
  return `${group}/${plural}/`;
}

function keyOf(kind: ObjectKind, { namespace, name }: ObjectPlace): string {
  return `${prefixOf(kind)}${namespace}/${name}`;
}
