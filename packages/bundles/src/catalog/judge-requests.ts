import type { Judgement, Refusal, ServiceJudge } from "@osbert/broker";
import { RetryLater } from "@osbert/journal";
import { keepsRevision } from "../reconcile/keeps-revision.js";
import type { CatalogEntry } from "../reconcile/merge-sources.js";
import {
  type CatalogView,
  type Provisionable,
  planChangeProblem,
  provisionable,
  whenMissing,
} from "../reconcile/provisionable.js";
import type { ServiceRecord, StoredSource, TombstoneRecord } from "../reconcile/records.js";
import type { Digest, Source } from "../sources/source.js";
import { SourceError } from "../sources/source-error.js";
import type { SourceCopy } from "./source-copy.js";

export interface JudgePorts {
  /** Whether a service is one in code: nothing is said of these. */
  readonly isInCode: (serviceId: string) => boolean;
  /** What the catalog has that is offered now. */
  readonly entry: (serviceId: string) => CatalogEntry | undefined;
  readonly copies: () => readonly Pick<SourceCopy, "stored" | "refresh">[];
  /** Names of sources that have not been read to their end yet. */
  readonly unread: () => readonly string[];
  /** Has copies also of sources that other processes have added since this one was configured. Answers whether there were any. */
  readonly followOthers: () => Promise<boolean>;
  /** By its first name. `undefined`: this process is not configured with it. */
  readonly source: (identityName: string) => Source | undefined;
  /** As in the rules of collection. */
  readonly retiredMs: number;
}

/** A platform waits for the answer. */
const askMs = 10_000;
/** Another process may know the service, or this one soon. */
const elsewhereMs = 5_000;

/** What the sources of bundles say of requests (F5-45 to 50). */
export function judgeRequests(ports: JudgePorts): ServiceJudge {
  return {
    provision(serviceId, planId) {
      if (ports.isInCode(serviceId)) return { kind: "allowed" };
      const judged = provisionable(viewOf(ports, serviceId), planId);
      if (judged.kind !== "ask the source") return toJudgement(judged);
      const { source, repository, digest, name } = judged;
      const ask = async () => toJudgement(whenMissing(await isThere(ports.source(source), repository, digest), name));
      return { kind: "ask first", ask };
    },

    planChange(serviceId, from, to) {
      if (ports.isInCode(serviceId) || from === to) return null;
      const why = planChangeProblem(viewOf(ports, serviceId), from, to);
      return why === null ? null : { kind: "refused", code: "service-retired", why };
    },

    /**
     * What is stored is read anew, after the instance was committed: a collection that has not seen the instance has begun before, and
     * that is not before `retiredMs` after what this reads. Only a record says no: while sources are rolled out, this process may lack the
     * one that another has made the instance of.
     */
    async accepted(serviceId, revision, acceptedAt) {
      if (ports.isInCode(serviceId)) return null;
      const ask = () => askCopies(ports, serviceId, revision as Digest, acceptedAt);
      const said = await ask();
      if (said === "kept") return null;
      // What says no may be the record of another source with the same id (F5-58).
      const saidByAll = (await ports.followOthers()) ? await ask() : said;
      if (saidByAll === "kept") return null;
      if (saidByAll === "not kept") return notKept;
      throw new RetryLater("no source that this process knows has the service", { afterMs: elsewhereMs });
    },
  };
}

async function askCopies(
  { copies, retiredMs }: JudgePorts,
  serviceId: string,
  revision: Digest,
  acceptedAt: number,
): Promise<"kept" | "not kept" | "not known"> {
  let isKnown = false;
  for (const copy of copies()) {
    const stored = await copy.refresh();
    for (const record of recordsOf(stored, serviceId)) {
      if (keepsRevision(record, revision, acceptedAt, retiredMs)) return "kept";
      isKnown = true;
    }
  }
  return isKnown ? "not kept" : "not known";
}

const notKept: Refusal = {
  kind: "refused",
  code: "service-retired",
  why: "what was offered when this was asked for is not kept any more; read the catalog again",
};

function viewOf({ entry, copies, unread }: JudgePorts, serviceId: string): CatalogView {
  const offered = entry(serviceId);
  const known: ServiceRecord[] = [];
  for (const { stored } of copies()) {
    const record = offered?.source === stored?.data.identityName ? stored?.specs.get(offered?.spec ?? "") : undefined;
    if (offered !== undefined && record?.kind === "service") return { entry: offered, record, unread: [] };
    if (offered === undefined)
      for (const each of recordsOf(stored, serviceId)) if (each.kind === "service") known.push(each);
  }
  // Of several that are not offered, what a person has withdrawn says most.
  const retired = known.filter(({ state }) => state.kind === "retired");
  const withdrawn = retired.find(({ state }) => state.kind === "retired" && state.reason === "withdrawn");
  return { entry: undefined, record: withdrawn ?? retired[0] ?? known[0], unread: unread() };
}

function* recordsOf(
  stored: StoredSource | undefined,
  serviceId: string,
): Generator<ServiceRecord | TombstoneRecord, void> {
  for (const record of stored?.specs.values() ?? [])
    if (record.kind !== "candidate" && record.serviceId === serviceId) yield record;
}

function toJudgement(judged: Exclude<Provisionable, { readonly kind: "ask the source" }>): Judgement {
  switch (judged.kind) {
    case "yes":
      return { kind: "allowed" };
    case "not known yet":
      return judged;
    case "refused":
      return { kind: "refused", code: judged.error === null ? "bad-request" : "service-retired", why: judged.why };
  }
}

async function isThere(
  source: Source | undefined,
  repository: string,
  digest: Digest,
): Promise<"there" | "gone" | "unreadable"> {
  if (source === undefined) return "unreadable";
  const signal = AbortSignal.timeout(askMs);
  try {
    if (source.has !== undefined) return (await source.has(repository, digest, signal)) ? "there" : "gone";
    await source.read(repository, digest, signal);
    return "there";
  } catch (error) {
    return error instanceof SourceError && error.failure === "not found" ? "gone" : "unreadable";
  }
}
