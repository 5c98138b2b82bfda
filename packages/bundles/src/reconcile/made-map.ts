/**
 * A map whose values are made anew each time that one is asked for, of what is kept of them. For thousands of values of which few are looked at, at a
 * time, and most of which is in memory anyway.
 */
export class MadeMap<Key, Kept, Value> implements ReadonlyMap<Key, Value> {
  readonly #kept = new Map<Key, Kept>();
  readonly #make: (kept: Kept) => Value;

  constructor(make: (kept: Kept) => Value) {
    this.#make = make;
  }

  get size(): number {
    return this.#kept.size;
  }

  keep(key: Key, kept: Kept): void {
    this.#kept.set(key, kept);
  }

  get(key: Key): Value | undefined {
    const kept = this.#kept.get(key);
    return kept === undefined ? undefined : this.#make(kept);
  }

  has(key: Key): boolean {
    return this.#kept.has(key);
  }

  *entries(): MapIterator<[Key, Value]> {
    for (const [key, kept] of this.#kept) yield [key, this.#make(kept)];
  }

  keys(): MapIterator<Key> {
    return this.#kept.keys();
  }

  *values(): MapIterator<Value> {
    for (const kept of this.#kept.values()) yield this.#make(kept);
  }

  [Symbol.iterator](): MapIterator<[Key, Value]> {
    return this.entries();
  }

  forEach(act: (value: Value, key: Key, map: ReadonlyMap<Key, Value>) => void): void {
    for (const [key, value] of this) act(value, key, this);
  }
}
