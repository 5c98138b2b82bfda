import { BrokerError, type Finding } from "@osbert/protocol";
import { Pieces } from "@osbert/server";
import type { OfferedService } from "./offered-service.js";
import { OfferedServices } from "./offered-services.js";

/** What the broker offers, checked and compiled. Immutable: a change is another one. */
export interface BrokerCatalog {
  /** By their ids. */
  readonly services: ReadonlyMap<string, OfferedService>;
  /** Services that were offered before: their instances are still deleted by their functions. */
  readonly retired: ReadonlyMap<string, OfferedService>;
  /** The answer to GET /v2/catalog, as it goes out. Made when it is asked for. */
  readonly body: string;
  /** The same, encoded. Made each time that it is asked for: what goes out are the pieces. */
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** The same, in pieces, which it shares with the catalogs before and after it where they are the same. Put together once. */
  readonly pieces: Pieces;
  /** Changes with the body. */
  readonly etag: string;
  /** When it was last changed, for all processes that offer it; `null`: that is not known. */
  readonly changedAt: number | null;
  /** What the specification advises against, but allows. */
  readonly warnings: readonly Finding[];
}

/** Thrown where services break the specification. The message names every fault and its path. */
export class CatalogError extends Error {
  override readonly name = "CatalogError";
  /** Every fault, with its path. */
  readonly findings: readonly Finding[];

  constructor(findings: readonly Finding[]) {
    super(
      `the catalog breaks ${findings.length} rule${findings.length === 1 ? "" : "s"} of the specification:\n${findings.map(line).join("\n")}`,
    );
    this.findings = findings;
  }
}

/**
 * A catalog with an answer. A class, and no object with functions of its own that get something: V8 keeps such functions, with all that they refer to, in
 * the object's shape, which stays until the whole heap is looked through.
 */
export class BuiltCatalog implements BrokerCatalog {
  readonly services: BrokerCatalog["services"];
  readonly retired: BrokerCatalog["retired"];
  readonly etag: string;
  readonly changedAt: number | null;
  readonly warnings: readonly Finding[];
  readonly pieces: Pieces;

  constructor(members: Omit<BrokerCatalog, "body" | "bytes">) {
    this.services = members.services;
    this.retired = members.retired;
    this.etag = members.etag;
    this.changedAt = members.changedAt;
    this.warnings = members.warnings;
    this.pieces = members.pieces;
  }

  get body(): string {
    return Buffer.from(this.bytes).toString();
  }

  get bytes(): Uint8Array<ArrayBuffer> {
    return this.pieces.whole();
  }

  with(changes: CatalogChanges): BuiltCatalog {
    const { services, retired, etag, changedAt, warnings, pieces } = this;
    return new BuiltCatalog({ services, retired, etag, changedAt, warnings, pieces, ...changes });
  }
}

type CatalogChanges = Partial<Pick<BrokerCatalog, "services" | "retired" | "changedAt">>;

/** The same catalog but for this. Its answer, which may be large, is not made for that. */
export function catalogWith(catalog: BrokerCatalog, changes: CatalogChanges): BrokerCatalog {
  return catalog instanceof BuiltCatalog ? catalog.with(changes) : { ...catalog, ...changes };
}

/** What is offered before a source has said so. */
export const unknownCatalog: BrokerCatalog = {
  services: new Map(),
  retired: new Map(),
  body: "",
  bytes: new Uint8Array(),
  pieces: new Pieces([]),
  etag: "",
  changedAt: null,
  warnings: [],
};

/** Throws a 503 while nobody knows what is offered: an empty catalog would be taken for the truth. */
export function knownCatalog(catalog: BrokerCatalog): BrokerCatalog {
  if (catalog !== unknownCatalog) return catalog;
  throw new BrokerError("unavailable", "what this broker offers is not known yet; ask again later", {
    retryAfterSeconds: 5,
  });
}

function leftOut(present: Services, next: Services): Iterable<readonly [string, OfferedService]> {
  if (present instanceof OfferedServices && next instanceof OfferedServices) return next.leftOutOf(present);
  return [...present].filter(([id]) => !next.has(id));
}

type Services = BrokerCatalog["services"];

/** A source may drop services for as long as the process lives. */
const mostRetired = 1_000;

/** The next catalog, which knows the services that only the present one has. Pure. */
export function retiring(present: BrokerCatalog, next: BrokerCatalog): BrokerCatalog {
  const gone: (readonly [string, OfferedService])[] = [];
  for (const [id, offered] of present.retired) if (!next.services.has(id)) gone.push([id, offered]);
  for (const [id, offered] of leftOut(present.services, next.services)) gone.push([id, offered]);
  return catalogWith(next, { retired: new Map(gone.slice(-mostRetired)) });
}

function line({ path, message }: Finding): string {
  return `  ${path === "" ? "the catalog" : path} ${message}`;
}
