import type { Json, JsonObject } from "@osbert/protocol";

/**
 * A state that grows line by line, up to a size. To merge a line takes the work of that line, however large the state is by then: the size of
 * each key is kept, and the whole is made once, when it is asked for.
 */
export class GrowingState {
  readonly #before: JsonObject;
  readonly #maxCharacters: number;
  /** Made by the first line that adds something. A map, because `__proto__` is a key like any other here. */
  #entries: Map<string, Entry> | null = null;
  /** Of the entries, as `sizeOf` counts them. */
  #size = 0;

  constructor(before: JsonObject, maxCharacters: number) {
    this.#before = before;
    this.#maxCharacters = maxCharacters;
  }

  get value(): JsonObject {
    if (this.#entries === null) return this.#before;
    return Object.fromEntries(Array.from(this.#entries, ([key, { value }]) => [key, value]));
  }

  /** Key by key, later ones over earlier ones. False: it would become too large, and nothing of this is merged. */
  merge(more: JsonObject): boolean {
    const added = entriesOf(more);
    if (added.length === 0) return true;
    this.#entries ??= this.#open();
    let size = this.#size;
    for (const [key, entry] of added) size += entry.size - (this.#entries.get(key)?.size ?? 0);
    // Two braces, and no comma after the last one.
    if (size + 1 > this.#maxCharacters) return false;
    for (const [key, entry] of added) this.#entries.set(key, entry);
    this.#size = size;
    return true;
  }

  #open(): Map<string, Entry> {
    const entries = new Map(entriesOf(this.#before));
    for (const { size } of entries.values()) this.#size += size;
    return entries;
  }
}

interface Entry {
  readonly value: Json;
  readonly size: number;
}

function entriesOf(object: JsonObject): readonly (readonly [string, Entry])[] {
  return Object.entries(object).map(([key, value]) => [key, { value, size: sizeOf(key, value) }] as const);
}

/** Characters of JSON, with the colon and a comma. */
function sizeOf(key: string, value: Json): number {
  return JSON.stringify(key).length + JSON.stringify(value).length + 2;
}
