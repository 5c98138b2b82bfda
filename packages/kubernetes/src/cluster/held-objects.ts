import type { WatchChange } from "./cluster.js";
import type { ObjectPlace } from "./cluster-object.js";

/** What is held of an object. The version says cheaply that nothing has changed. */
export interface Held<Kept> {
  readonly place: ObjectPlace;
  readonly version: string;
  readonly kept: Kept;
}

/** What is held of the objects of a kind, by namespace and name. */
export class HeldObjects<Kept> {
  readonly #namespaces = new Map<string, Map<string, Held<Kept>>>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get({ namespace, name }: ObjectPlace): Held<Kept> | undefined {
    return this.#namespaces.get(namespace)?.get(name);
  }

  set(held: Held<Kept>): void {
    const { namespace, name } = held.place;
    const objects = this.#namespaces.get(namespace) ?? new Map<string, Held<Kept>>();
    this.#namespaces.set(namespace, objects);
    if (!objects.has(name)) this.#size += 1;
    objects.set(name, held);
  }

  delete({ namespace, name }: ObjectPlace): void {
    const objects = this.#namespaces.get(namespace);
    if (objects?.delete(name) !== true) return;
    this.#size -= 1;
    if (objects.size === 0) this.#namespaces.delete(namespace);
  }

  *all(namespace?: string): Generator<Held<Kept>, void> {
    if (namespace !== undefined) yield* this.#namespaces.get(namespace)?.values() ?? [];
    else for (const objects of this.#namespaces.values()) yield* objects.values();
  }
}

/** From one complete copy to the next: what went first, then what came and changed. */
export function* differences<Kept>(
  before: HeldObjects<Kept>,
  after: HeldObjects<Kept>,
): Generator<WatchChange<Kept>, void> {
  for (const { place, kept } of before.all()) {
    if (after.get(place) === undefined) yield { place, before: kept, after: undefined };
  }
  for (const held of after.all()) {
    const old = before.get(held.place);
    if (isOther(old, held)) yield { place: held.place, before: old?.kept, after: held.kept };
  }
}

/** Whether somebody who knows the one has to be told of the other. */
export function isOther<Kept>(old: Held<Kept> | undefined, held: Held<Kept>): boolean {
  if (old === undefined) return true;
  if (old.version === held.version && held.version !== "") return false;
  return JSON.stringify(old.kept) !== JSON.stringify(held.kept);
}
