/**
 * A map that is never changed and of which others are made at the cost of what is different: it shares all else with them. For maps of thousands
 * of which one entry changes at a time, where a copy for each change would be most of what is allocated.
 *
 * It is a map, and what is different from that; when that is too much, a new map is made of both. What is put in place of something stands in its
 * place, what is new behind all.
 */
export class LayeredMap<Key, Value extends object> implements ReadonlyMap<Key, Value> {
  /** How many there are. */
  readonly size: number;
  readonly #base: ReadonlyMap<Key, Value>;
  /** `undefined`: it is not there any more. */
  readonly #changed: ReadonlyMap<Key, Value | undefined>;

  private constructor(base: ReadonlyMap<Key, Value>, changed: ReadonlyMap<Key, Value | undefined>, size: number) {
    this.#base = base;
    this.#changed = changed;
    this.size = size;
  }

  /** The map belongs to it from now on: nobody changes that any more. */
  static of<Key, Value extends object>(map: ReadonlyMap<Key, Value> = new Map()): LayeredMap<Key, Value> {
    return map instanceof LayeredMap ? map : new LayeredMap<Key, Value>(map, new Map(), map.size);
  }

  /** Another one, in which these are different; `undefined` takes one out. The very same, if nothing is. */
  with(changes: Iterable<readonly [Key, Value | undefined]>): LayeredMap<Key, Value> {
    const changed = new Map(this.#changed);
    let { size } = this;
    let isSame = true;
    for (const [key, value] of changes) {
      const present = changed.has(key) ? changed.get(key) : this.#base.get(key);
      if (present === value) continue;
      isSame = false;
      size += (value === undefined ? 0 : 1) - (present === undefined ? 0 : 1);
      if (value === this.#base.get(key)) changed.delete(key);
      else changed.set(key, value);
    }
    if (isSame) return this;
    const next = new LayeredMap(this.#base, changed, size);
    return changed.size <= mostChanged(this.#base.size) ? next : LayeredMap.of(new Map(next));
  }

  /** The keys whose values are not the very same in another one: looks at little, if that was made of this one or this of that. */
  differsFrom(other: ReadonlyMap<Key, Value>): readonly Key[] {
    if (other === this) return [];
    const isSibling = other instanceof LayeredMap && other.#base === this.#base;
    const keys = isSibling
      ? new Set([...this.#changed.keys(), ...(other as LayeredMap<Key, Value>).#changed.keys()])
      : [...this.keys(), ...[...other.keys()].filter((key) => !this.has(key))];
    return [...keys].filter((key) => this.get(key) !== other.get(key));
  }

  /** As of any map. */
  get(key: Key): Value | undefined {
    if (this.#changed.size === 0) return this.#base.get(key);
    const changed = this.#changed.get(key);
    return changed !== undefined || this.#changed.has(key) ? changed : this.#base.get(key);
  }

  /** As of any map. */
  has(key: Key): boolean {
    return this.get(key) !== undefined;
  }

  /** In order. */
  *entries(): MapIterator<[Key, Value]> {
    for (const entry of this.#base) {
      if (!this.#changed.has(entry[0])) yield entry;
      else {
        const changed = this.#changed.get(entry[0]);
        if (changed !== undefined) yield [entry[0], changed];
      }
    }
    for (const [key, value] of this.#changed) if (value !== undefined && !this.#base.has(key)) yield [key, value];
  }

  /** In the order of the entries. */
  *keys(): MapIterator<Key> {
    for (const [key] of this.entries()) yield key;
  }

  /** In the order of the entries. */
  *values(): MapIterator<Value> {
    for (const [, value] of this.entries()) yield value;
  }

  /** The entries. */
  [Symbol.iterator](): MapIterator<[Key, Value]> {
    return this.#changed.size === 0 ? (this.#base as Map<Key, Value>).entries() : this.entries();
  }

  /** Without anything made for each, as loops over entries do: for those who look at thousands again and again. */
  forEach(act: (value: Value, key: Key, map: ReadonlyMap<Key, Value>) => void): void {
    this.#base.forEach((value, key) => {
      const present = this.#changed.size > 0 && this.#changed.has(key) ? this.#changed.get(key) : value;
      if (present !== undefined) act(present, key, this);
    });
    this.#changed.forEach((value, key) => {
      if (value !== undefined && !this.#base.has(key)) act(value, key, this);
    });
  }
}

/** So few that they are copied in less time than a look at all takes, and so many that a new map is seldom made. */
function mostChanged(size: number): number {
  return 16 + size / 64;
}
