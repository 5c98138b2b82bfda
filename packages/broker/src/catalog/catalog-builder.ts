import { createHash } from "node:crypto";
import { checkUnique, type Finding } from "@osbert/protocol";
import { Pieces } from "@osbert/server";
import type { Service } from "../service/service.js";
import { type BuildOptions, type BuiltService, buildService } from "./built-service.js";
import { type BrokerCatalog, BuiltCatalog, CatalogError } from "./catalog.js";
import { type CatalogBlock, inBlocks } from "./catalog-blocks.js";
import { LayeredMap } from "./layered-map.js";
import type { OfferedService } from "./offered-service.js";
import { OfferedServices } from "./offered-services.js";

/**
 * Checks the services against every rule of the specification; throws a CatalogError with all faults and their paths. What cannot be said
 * in the draft that the catalog speaks is a warning. A service that was in a catalog before, the very same object, is not compiled again.
 */
export function buildCatalog(services: readonly Service[], options: BuildOptions = {}): BrokerCatalog {
  return new CatalogBuilder(options).build(services);
}

/**
 * `buildCatalog` for whoever makes one catalog after the other: the same catalogs, always, at the cost of what is different from the one that was
 * made last. They share all else.
 */
export class CatalogBuilder {
  readonly #options: BuildOptions;
  #last: Built = nothingBuilt();

  constructor(options: BuildOptions) {
    this.#options = options;
  }

  build(services: readonly Service[]): BrokerCatalog {
    const before = this.#last;
    // What is kept of it is changed on the way: where something is refused, the next one is made of nothing.
    this.#last = nothingBuilt();
    const blocks = inBlocks(services, before.blocks, (service) => buildService(service, this.#options));
    const taken = takeIn(before, blocks);
    const findings = [
      ...(taken === undefined ? checkUnique(builtOf(blocks).map(({ ids }) => ids)) : []),
      ...findingsOf(blocks),
    ];
    const errors = findings.filter(({ level }) => level === "error");
    if (errors.length > 0) throw new CatalogError(errors);
    this.#last = taken ?? nothingBuilt();
    const byId = taken?.byId ?? LayeredMap.of(new Map(builtOf(blocks).map(({ ids, offered }) => [ids.id, offered])));
    return new BuiltCatalog({
      services: new OfferedServices(blocks, byId),
      retired: new Map(),
      etag: etagOf(blocks),
      changedAt: null,
      warnings: findings.filter(({ level }) => level === "warning"),
      pieces: answerOf(blocks),
    });
  }
}

/** A catalog, and what no two of its services may have in common. */
interface Built {
  readonly blocks: readonly CatalogBlock[];
  readonly byId: LayeredMap<string, OfferedService>;
  /** Of services and of plans. */
  readonly ids: Set<string>;
  readonly names: Set<string>;
}

function nothingBuilt(): Built {
  return { blocks: [], byId: LayeredMap.of(), ids: new Set(), names: new Set() };
}

/** What was built before becomes what is built now. `undefined`: two services have something in common. */
function takeIn({ blocks: before, byId, ids, names }: Built, blocks: readonly CatalogBlock[]): Built | undefined {
  const [old, present] = [new Set(before), new Set(blocks)];
  const changes = new Map<string, OfferedService | undefined>();
  for (const block of before)
    if (!present.has(block))
      for (const { ids: own } of block.built) {
        names.delete(own.name);
        for (const id of [own.id, ...own.planIds]) ids.delete(id);
        changes.set(own.id, undefined);
      }
  for (const block of blocks)
    if (!old.has(block))
      for (const { ids: own, offered } of block.built) {
        if (names.has(own.name)) return undefined;
        names.add(own.name);
        for (const id of [own.id, ...own.planIds]) {
          if (ids.has(id)) return undefined;
          ids.add(id);
        }
        changes.set(own.id, offered);
      }
  return { blocks, byId: byId.with(changes), ids, names };
}

function findingsOf(blocks: readonly CatalogBlock[]): readonly Finding[] {
  const findings: Finding[] = [];
  let from = 0;
  for (const { built, hasFindings } of blocks) {
    if (hasFindings)
      for (const [index, { findings: found }] of built.entries())
        for (const { path, ...rest } of found) findings.push({ ...rest, path: `services[${from + index}]${path}` });
    from += built.length;
  }
  return findings;
}

function builtOf(blocks: readonly CatalogBlock[]): readonly BuiltService[] {
  return blocks.flatMap(({ built }) => built);
}

function etagOf(blocks: readonly CatalogBlock[]): string {
  const hash = createHash("sha256");
  for (const block of blocks) hash.update(block.hash);
  return `"${hash.digest("base64url").slice(0, 27)}"`;
}

/** The bytes of blocks as they are: thousands of services are in memory once, whatever catalogs they are in. */
function answerOf(blocks: readonly CatalogBlock[]): Pieces {
  const [head, tail] = ['{"services":[', "]}"].map((text) => new TextEncoder().encode(text)) as [Piece, Piece];
  // Each begins with the comma that stands before it; the first has none.
  return new Pieces([head, ...blocks.map(({ bytes }, index) => (index === 0 ? bytes.subarray(1) : bytes)), tail]);
}

type Piece = Uint8Array<ArrayBuffer>;
