/** A map as another one with one entry of its own, at no cost: that of thousands of services is not copied for a request that is about one. */
export function withOneReplaced<Key, Value>(
  map: ReadonlyMap<Key, Value>,
  key: Key,
  value: Value,
): ReadonlyMap<Key, Value> {
  return new OneReplaced(map, key, value);
}

class OneReplaced<Key, Value> implements ReadonlyMap<Key, Value> {
  readonly #map: ReadonlyMap<Key, Value>;
  readonly #key: Key;
  readonly #value: Value;

  constructor(map: ReadonlyMap<Key, Value>, key: Key, value: Value) {
    this.#map = map;
    this.#key = key;
    this.#value = value;
  }

  get size(): number {
    return this.#map.size + (this.#map.has(this.#key) ? 0 : 1);
  }

  get(key: Key): Value | undefined {
    return key === this.#key ? this.#value : this.#map.get(key);
  }

  has(key: Key): boolean {
    return key === this.#key || this.#map.has(key);
  }

  /** In the order that a copy with the entry set would have. */
  *entries(): MapIterator<[Key, Value]> {
    for (const [key, value] of this.#map) yield [key, key === this.#key ? this.#value : value];
    if (!this.#map.has(this.#key)) yield [this.#key, this.#value];
  }

  *keys(): MapIterator<Key> {
    for (const [key] of this.entries()) yield key;
  }

  *values(): MapIterator<Value> {
    for (const [, value] of this.entries()) yield value;
  }

  [Symbol.iterator](): MapIterator<[Key, Value]> {
    return this.entries();
  }

  forEach(visit: (value: Value, key: Key, map: ReadonlyMap<Key, Value>) => void): void {
    for (const [key, value] of this) visit(value, key, this);
  }
}
