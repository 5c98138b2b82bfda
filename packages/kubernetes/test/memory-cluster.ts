import type { Cluster, Watch, WatchOptions, WatchState } from "../src/cluster/cluster.js";
import { ClusterError } from "../src/cluster/cluster-error.js";
import { type ClusterObject, type ObjectKind, type ObjectPlace, placeOf } from "../src/cluster/cluster-object.js";

/** Objects in memory that are watched as those of an API server are, and that a test loses, hides and brings back. */
export class MemoryCluster implements Partial<Cluster> {
  readonly #objects = new Map<string, ClusterObject>();
  readonly #watches = new Set<{ readonly kind: ObjectKind; readonly look: () => void }>();
  #state: WatchState = "current";
  /** Lists are empty, as those of a server that was given another database. */
  #isEmptied = false;
  #uids = 0;

  get cluster(): Cluster {
    return this as unknown as Cluster;
  }

  put(kind: ObjectKind, name: string, spec: unknown, namespace = "", more: object = {}): void {
    const key = keyOf(kind, { namespace, name });
    const before = this.#objects.get(key)?.metadata;
    const uid = before?.uid ?? `uid-${++this.#uids}`;
    const metadata = { name, ...(namespace !== "" && { namespace }), uid, generation: (before?.generation ?? 0) + 1 };
    this.#objects.set(key, { apiVersion: "v1", kind: kind.kind, metadata, spec, ...more });
    this.#look();
  }

  delete(kind: ObjectKind, name: string, namespace = ""): void {
    this.#objects.delete(keyOf(kind, { namespace, name }));
    this.#look();
  }

  /** How watches see the server from now on; while they do not, calls fail, too. */
  become(state: WatchState | "emptied"): void {
    this.#isEmptied = state === "emptied";
    this.#state = state === "emptied" ? "current" : state;
    this.#look();
  }

  async read(kind: ObjectKind, place: ObjectPlace): Promise<ClusterObject | undefined> {
    if (this.#state !== "current") throw new ClusterError("unavailable");
    return this.#isEmptied ? undefined : this.#objects.get(keyOf(kind, place));
  }

  watch<Kept>(kind: ObjectKind, options: WatchOptions<Kept>): Watch<Kept> {
    let kept = new Map<string, Kept>();
    const look = () => {
      if (this.#state !== "current") return options.changed?.(undefined);
      const all = this.#isEmptied ? [] : [...this.#objects].filter(([key]) => key.startsWith(prefixOf(kind)));
      kept = new Map(
        all.flatMap(([, object]) => {
          const value = options.keep(object);
          return value === undefined ? [] : [[keyOf(kind, placeOf(object)), value] as const];
        }),
      );
      options.changed?.(undefined);
    };
    const watch = { kind, look };
    this.#watches.add(watch);
    look();
    const state = () => this.#state;
    return {
      get state() {
        return state();
      },
      why: null,
      started: Promise.resolve(),
      get: (place) => kept.get(keyOf(kind, place)),
      values: () => kept.values(),
      get size() {
        return kept.size;
      },
      close: () => void this.#watches.delete(watch),
    };
  }

  close(): void {
    this.#watches.clear();
  }

  #look(): void {
    for (const { look } of this.#watches) look();
  }
}

function prefixOf({ group, plural }: ObjectKind): string {
  return `${group}/${plural}/`;
}

function keyOf(kind: ObjectKind, { namespace, name }: ObjectPlace): string {
  return `${prefixOf(kind)}${namespace}/${name}`;
}
