import type { CatalogBlock } from "./catalog-blocks.js";
import type { LayeredMap } from "./layered-map.js";
import type { OfferedService } from "./offered-service.js";

/** The services of a catalog by their ids, in the order in which they stand in it. */
export class OfferedServices implements ReadonlyMap<string, OfferedService> {
  readonly #blocks: readonly CatalogBlock[];
  readonly #byId: LayeredMap<string, OfferedService>;

  constructor(blocks: readonly CatalogBlock[], byId: LayeredMap<string, OfferedService>) {
    this.#blocks = blocks;
    this.#byId = byId;
  }

  get size(): number {
    return this.#byId.size;
  }

  get(id: string): OfferedService | undefined {
    return this.#byId.get(id);
  }

  has(id: string): boolean {
    return this.#byId.has(id);
  }

  /** Those of an earlier catalog that this one lacks, at the cost of what is different. */
  leftOutOf(earlier: OfferedServices): readonly (readonly [string, OfferedService])[] {
    return this.#byId.differsFrom(earlier.#byId).flatMap((id) => {
      const was = this.has(id) ? undefined : earlier.get(id);
      return was === undefined ? [] : [[id, was] as const];
    });
  }

  *entries(): MapIterator<[string, OfferedService]> {
    for (const { built } of this.#blocks) for (const { ids, offered } of built) yield [ids.id, offered];
  }

  *keys(): MapIterator<string> {
    for (const [id] of this.entries()) yield id;
  }

  *values(): MapIterator<OfferedService> {
    for (const [, offered] of this.entries()) yield offered;
  }

  [Symbol.iterator](): MapIterator<[string, OfferedService]> {
    return this.entries();
  }

  forEach(act: (offered: OfferedService, id: string, map: ReadonlyMap<string, OfferedService>) => void): void {
    for (const [id, offered] of this) act(offered, id, this);
  }
}
