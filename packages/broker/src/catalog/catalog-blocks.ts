import { createHash } from "node:crypto";
import type { Service } from "../service/service.js";
import type { BuiltService } from "./built-service.js";

/** Some services that follow each other in a catalog. Of one that is the same as before, nothing is looked at again. */
export interface CatalogBlock {
  readonly services: readonly Service[];
  readonly built: readonly BuiltService[];
  /** Of all their parts of the answer. */
  readonly hash: string;
  /** Whether there is something to say of one of them. */
  readonly hasFindings: boolean;
}

/**
 * A list of services in blocks. Where a block begins is told by the id of the service that it begins with, and by nothing else: so all
 * processes make the same blocks of the same services, whatever they offered before, and one that comes or goes changes its own block alone.
 * Those of `before` that are in the list are taken as they are.
 */
export function inBlocks(
  services: readonly Service[],
  before: readonly CatalogBlock[],
  build: (service: Service) => BuiltService,
): readonly CatalogBlock[] {
  const byFirst = new Map(before.map((block) => [block.services[0], block]));
  const blocks: CatalogBlock[] = [];
  for (let from = 0; from < services.length; ) {
    const known = byFirst.get(services[from]);
    const block = known !== undefined && isAt(known, services, from) ? known : newBlock(services, from, build);
    blocks.push(block);
    from += block.services.length;
  }
  return blocks;
}

function isAt(block: CatalogBlock, services: readonly Service[], from: number): boolean {
  const next = services[from + block.services.length];
  return (
    block.services.every((service, index) => services[from + index] === service) &&
    (next === undefined || beginsBlock(next))
  );
}

function newBlock(services: readonly Service[], from: number, build: (service: Service) => BuiltService): CatalogBlock {
  let to = from + 1;
  for (let next = services[to]; next !== undefined && !beginsBlock(next); next = services[to]) to += 1;
  const own = services.slice(from, to);
  const built = own.map(build);
  const hash = createHash("sha256");
  // Each is an object in JSON: it is seen where one ends and the next begins.
  for (const { bytes } of built) hash.update(bytes);
  return {
    services: own,
    built,
    hash: hash.digest("base64url"),
    hasFindings: built.some(({ findings }) => findings.length > 0),
  };
}

/** One service in so many begins a block: a change costs as many services as are in its block, and one look at each block. */
const blockLength = 64;

function beginsBlock({ id }: Service): boolean {
  let hash = 0x811c9dc5;
  // What is no text is refused later, in its own words.
  for (const character of Buffer.from(String(id))) hash = Math.imul(hash ^ character, 0x01000193);
  // The lowest bits of such a hash depend on those of the last characters alone.
  return ((hash >>> 0) >> 8) % blockLength === 0;
}
