import { createHash } from "node:crypto";
import type { Service } from "../service/service.js";
import type { BuiltService } from "./built-service.js";

/** Some services that follow each other in a catalog. Of one that is the same as before, nothing is looked at again. */
export interface CatalogBlock {
  readonly services: readonly Service[];
  readonly built: readonly BuiltService[];
  /** All their parts of the answer, each with a comma before it. */
  readonly bytes: Uint8Array<ArrayBuffer>;
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
  for (const { part } of built) hash.update(part.bytes);
  return {
    services: own,
    built,
    bytes: takeIn(built),
    hash: hash.digest("base64url"),
    hasFindings: built.some(({ findings }) => findings.length > 0),
  };
}

/** The parts of some services as one piece. They are parts of that from now on, and not in memory twice. */
function takeIn(built: readonly BuiltService[]): Uint8Array<ArrayBuffer> {
  const piece = new Uint8Array(built.reduce((sum, { part }) => sum + 1 + part.bytes.length, 0));
  let at = 0;
  for (const { part } of built) {
    piece[at] = comma;
    piece.set(part.bytes, at + 1);
    const end = at + 1 + part.bytes.length;
    part.bytes = piece.subarray(at + 1, end);
    at = end;
  }
  return piece;
}

const comma = ",".charCodeAt(0);

/** One service in so many begins a block: a change costs as many services as are in its block, and one look at each block. */
const blockLength = 64;

function beginsBlock({ id }: Service): boolean {
  let hash = 0x811c9dc5;
  // What is no text is refused later, in its own words.
  for (const character of Buffer.from(String(id))) hash = Math.imul(hash ^ character, 0x01000193);
  // The lowest bits of such a hash depend on those of the last characters alone.
  return ((hash >>> 0) >> 8) % blockLength === 0;
}
