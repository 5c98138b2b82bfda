import type { HeldRemoval } from "@osbert/bundles";
import { type Attribution, defineResource } from "@osbert/journal";
import type { Finding } from "@osbert/protocol";
import type { Application, ApplicationService } from "./application.js";
import type { Grant } from "./grant.js";

/** The resource of the journal in which is kept what was seen of applications and grants, so that it is offered whatever becomes of the API server. */
export const catalogKey = "events.catalog";
/** The operation that brings it up to date, in one process of all. */
export const catalogKind = "events.catalog";

export interface CatalogShape {
  readonly data: CatalogData;
  readonly parts: {
    readonly [application: ApplicationPart]: ApplicationRecord;
    readonly [grant: GrantPart]: GrantRecord;
  };
  readonly operations: { readonly [catalogKind]: { readonly input: null; readonly result: null } };
}

export const catalogResource = defineResource<CatalogShape>();

/** Who has done what no person asked for. */
export const byItself: Attribution = { actor: { type: "system", subject: "events" } };

export interface CatalogData {
  /** Raised with every commit. */
  readonly snapshot: number;
  /** When what is offered, or who may have it, was last changed. */
  readonly changedAt: number;
  /** All of it was listed once: from then on, what is not here is not there. */
  readonly isKnown: boolean;
  /** Removals that wait for a person. */
  readonly held: { readonly applications: HeldRemoval | null; readonly grants: HeldRemoval | null };
  /** Which parts the last commits have changed: who has a copy reads these anew. */
  readonly recent: readonly { readonly snapshot: number; readonly parts: readonly string[] }[];
}

export const emptyCatalog: CatalogData = {
  snapshot: 0,
  changedAt: 0,
  isKnown: false,
  held: { applications: null, grants: null },
  recent: [],
};

export type ApplicationPart = `application/${string}`;
export type GrantPart = `grant/${string}`;
export const applicationPrefix = "application/";
export const grantPrefix = "grant/";

export function applicationPart(name: string): ApplicationPart {
  return `${applicationPrefix}${name}`;
}

/** No part of it has a slash. */
export function grantPart({ namespace, kind, name }: Pick<Grant, "namespace" | "kind" | "name">): GrantPart {
  return `${grantPrefix}${namespace}/${kind}/${name}`;
}

/** An application, with what it offered before: that is kept for as long as there are instances of it. */
export interface ApplicationRecord {
  readonly application: Omit<Application, "services">;
  /** External ids that it had before, the latest first: instances know them as the ids of their services. Missing: none. */
  readonly formerIds?: readonly string[];
  /** Of the resource. */
  readonly generation: number;
  /** When it was first seen. Of two that want the same, the one that came first has it. */
  readonly since: number;
  /** `null`: it is there. */
  readonly removedAt: number | null;
  readonly services: readonly KeptService[];
  /** What is wrong with the resource. */
  readonly findings: readonly Finding[];
}

export interface KeptService {
  readonly service: ApplicationService;
  readonly since: number;
  /** `null`: the application offers it. */
  readonly removedAt: number | null;
}

export interface GrantRecord {
  readonly grant: Grant;
  readonly generation: number;
  readonly findings: readonly Finding[];
}

/** All that is kept. */
export interface StoredCatalog {
  readonly data: CatalogData;
  /** By name. */
  readonly applications: ReadonlyMap<string, ApplicationRecord>;
  /** By part. */
  readonly grants: ReadonlyMap<string, GrantRecord>;
}

/** What an application offers now. */
export function presentServices({ removedAt, services }: ApplicationRecord): readonly KeptService[] {
  return removedAt === null ? services.filter((kept) => kept.removedAt === null) : [];
}

/** The ids of the services that were ever made of the application as a whole. */
export function wholeIds({ application: { externalId }, formerIds = [] }: ApplicationRecord): readonly string[] {
  return [...(externalId === null ? [] : [externalId]), ...formerIds];
}
