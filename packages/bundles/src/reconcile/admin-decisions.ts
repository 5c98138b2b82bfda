import type { Digest } from "../sources/source.js";
import {
  isWithdrawn,
  newSource,
  type RetiredReason,
  type ServiceRecord,
  type SourceData,
  type StoredSource,
} from "./records.js";
import { draftOf, type SourceChange } from "./source-change.js";

/** What a person decides about a source or a spec: what it changes, or why it cannot be. */
export type AdminDecision =
  | { readonly kind: "changed"; readonly change: SourceChange }
  | { readonly kind: "refused"; readonly why: string };

/** Who decides, why, and when by the store's clock. */
export interface Decider {
  readonly by: string;
  readonly why: string;
  readonly now: number;
}

/** Nothing of the spec changes by itself any more, neither its state nor its revision, until it is released. */
export function hold(stored: StoredSource, spec: string, { by, why, now }: Decider): AdminDecision {
  return onService(stored, spec, (record) => {
    if (record.held !== null) return `${spec} is held already, by ${record.held.by}: ${record.held.why}`;
    return { record: { ...record, held: { since: now, by, why } }, code: "spec.held", why: `by ${by}: ${why}` };
  });
}

/** The next reading decides about it again. */
export function release(stored: StoredSource, spec: string, { by, why }: Decider): AdminDecision {
  return onService(stored, spec, (record) => {
    if (record.held === null) return `${spec} is not held`;
    return { record: { ...record, held: null }, code: "spec.released", why: `by ${by}: ${why}` };
  });
}

/** Takes a spec out of the catalog at once, whatever the guard says (F5-18). No reading brings it back, only `restore`. Instances go on. */
export function withdraw(stored: StoredSource, spec: string, { by, why, now }: Decider): AdminDecision {
  return onService(stored, spec, (record) => {
    if (isWithdrawn(record))
      return `${spec} is withdrawn already: ${record.state.kind === "retired" ? record.state.why : ""}`;
    const state = { kind: "retired", since: now, reason: "withdrawn", why } as const;
    return { record: { ...record, state, stale: null }, code: "spec.withdrawn", why: `by ${by}: ${why}` };
  });
}

/** Puts what has retired, or was withdrawn, back into the catalog at once. Readings decide about it from now on, and begin to count anew. */
export function restore(stored: StoredSource, spec: string, { by, why, now }: Decider): AdminDecision {
  return onService(stored, spec, (record) => {
    if (record.state.kind !== "retired")
      return `${spec} is ${record.state.kind}; only what has retired can be restored`;
    if (stored.data.mode === "draining")
      return `the source ${stored.data.name} is draining; ${stored.data.drainedBy === null ? "put it back into the configuration" : "enable it"} first`;
    return {
      record: { ...record, state: { kind: "active", since: now } },
      code: "spec.restored",
      why: `by ${by}: ${why}`,
    };
  });
}

/** Lets a held removal go (F5-17a): the next reading that says the same does it. The observation has to be named, so that nobody confirms what has changed meanwhile. */
export function confirmRemoval(stored: StoredSource, observation: string, { by, why, now }: Decider): AdminDecision {
  const { guard, name } = stored.data;
  if (guard === null) return refused(`no removal is held in ${name}`);
  if (guard.observation !== observation)
    return refused(`what is held in ${name} was seen by ${guard.observation}, not by ${observation}; look at it again`);
  if (guard.confirmed !== null) return refused(`this removal was confirmed already, by ${guard.confirmed.by}`);
  const draft = draftOf(stored);
  draft.tell("guard.confirmed", `${guard.count} of ${guard.of}, by ${by}: ${why}`);
  return changed(draft.finish({ ...stored.data, guard: { ...guard, confirmed: { by, at: now } } }));
}

/** Lets content in that lacks plans which have instances (F5-19): with the next reading. The instances stay on their revisions. */
export function confirmContent(
  stored: StoredSource,
  spec: string,
  digest: Digest,
  { by, why }: Decider,
): AdminDecision {
  return onService(stored, spec, (record) => {
    const { refused: content } = record;
    if (content === null) return `nothing of ${spec} waits to be confirmed`;
    if (content.digest !== digest) return `what waits in ${spec} is ${content.digest}, not ${digest}; look at it again`;
    if (content.code !== "plans in use")
      return `${digest} of ${spec} cannot be offered, and no word changes that: ${content.problems[0]?.message ?? content.code}`;
    return { record: { ...record, confirmed: digest }, code: "spec.confirmed", why: `${digest}, by ${by}: ${why}` };
  });
}

/**
 * A source that the configuration has, for the first time or again: with the name and the settings that it has now. What it knows stays.
 * The specs of a source that was draining come back with the next reading that finds them. What a person has drained stays so until its
 * settings are others, or a person enables it: else every start would undo it.
 */
export function configure(
  stored: StoredSource | undefined,
  wanted: Pick<SourceData, "name" | "identityName" | "generation" | "listing" | "rank">,
  { by }: Pick<Decider, "by">,
): AdminDecision {
  const { name, identityName, generation, listing } = wanted;
  const rank = wanted.rank === undefined ? {} : { rank: wanted.rank };
  if (stored === undefined) {
    const data = { ...newSource(name, generation, { listing }), identityName, ...rank };
    return changed(draftOf({ data, specs: new Map() }).finish(data));
  }
  const { data } = stored;
  const draft = draftOf(stored);
  if (data.name !== name) draft.tell("source.renamed", `from ${data.name} to ${name}, by ${by}`);
  if (data.generation !== generation) draft.tell("source.changed", `by ${by}`);
  const isBack = data.mode === "draining" && (data.drainedBy === null || data.generation !== generation);
  if (isBack) draft.tell("source.enabled", `the configuration has it again, by ${by}`);
  const back = isBack ? { mode: "active" as const, drainedBy: null } : {};
  // Clocks and held removals were about another configuration.
  const other = data.generation === generation ? {} : { generation, guard: null };
  return changed(draft.finish({ ...data, name, listing, ...rank, ...back, ...other }));
}

/**
 * It is not read any more, and its specs retire (F5-23). `by`: a person has decided it, so that the guard holds nothing; `null`: the
 * configuration lacks it, which may be a slip.
 */
export function drain(
  stored: StoredSource,
  { by, why }: { readonly by: string | null; readonly why: string },
): AdminDecision {
  const { data } = stored;
  if (data.mode === "draining" && (data.drainedBy !== null || by === null))
    return refused(`the source ${data.name} is draining already`);
  const draft = draftOf(stored);
  draft.tell("source.draining", by === null ? why : `by ${by}: ${why}`);
  return changed(draft.finish({ ...data, mode: "draining", drainedBy: by, readableAt: null }));
}

/** It is not read until it is enabled; its specs stay, and are stale (F5-28). */
export function disable(stored: StoredSource, { by, why }: Decider): AdminDecision {
  const { data } = stored;
  if (data.mode !== "active") return refused(`the source ${data.name} is ${data.mode} already`);
  const draft = draftOf(stored);
  draft.tell("source.disabled", `by ${by}: ${why}`);
  return changed(draft.finish({ ...data, mode: "disabled", readableAt: null }));
}

/** Also what a person has drained. */
export function enable(stored: StoredSource, { by, why }: Decider): AdminDecision {
  const { data } = stored;
  if (data.mode === "active") return refused(`the source ${data.name} is active already`);
  if (data.mode === "draining" && data.drainedBy === null)
    return refused(`the source ${data.name} is draining; put it back into the configuration`);
  const draft = draftOf(stored);
  draft.tell("source.enabled", `by ${by}: ${why}`);
  return changed(draft.finish({ ...data, mode: "active", drainedBy: null }));
}

/**
 * Takes pushed specs back, all or some (F5-64, 65). They retire: what has instances is never deleted, and without `force` it is not even
 * retired.
 */
export function removePushed(
  stored: StoredSource,
  specs: readonly string[] | "all",
  { by, why, now }: Decider,
  { servicesInUse, force }: { readonly servicesInUse: ReadonlySet<string>; readonly force: boolean },
): AdminDecision {
  if (stored.data.listing)
    return refused(`${stored.data.name} is read from a registry: remove it there, or withdraw it`);
  const wanted = specs === "all" ? [...stored.specs.keys()] : specs;
  const unknown = wanted.find((spec) => stored.specs.get(spec) === undefined);
  if (unknown !== undefined) return refused(`there is no spec ${unknown} in ${stored.data.name}`);
  const services = wanted.flatMap((spec) => {
    const record = stored.specs.get(spec);
    return record?.kind === "service" && record.state.kind !== "retired" ? [[spec, record] as const] : [];
  });
  const used = services.filter(([, { serviceId }]) => servicesInUse.has(serviceId)).map(([spec]) => spec);
  if (used.length > 0 && !force)
    return refused(
      `there are instances of ${used.join(", ")}; with --force ${used.length === 1 ? "it leaves the catalog, and its" : "they leave the catalog, and their"} instances stay`,
    );
  const draft = draftOf(stored);
  for (const [spec, record] of services) {
    draft.put(spec, retired(record, "removed", why, now));
    draft.tell("spec.retired", `by ${by}: ${why}`, spec);
  }
  for (const spec of wanted) if (stored.specs.get(spec)?.kind === "candidate") draft.put(spec, null);
  return changed(draft.finish(stored.data));
}

function retired(record: ServiceRecord, reason: RetiredReason, why: string, now: number): ServiceRecord {
  return { ...record, stale: null, state: { kind: "retired", since: now, reason, why } };
}

type Act = {
  readonly record: ServiceRecord;
  readonly code: "spec.held" | "spec.released" | "spec.withdrawn" | "spec.restored" | "spec.confirmed";
  readonly why: string;
};

function onService(stored: StoredSource, spec: string, decide: (record: ServiceRecord) => Act | string): AdminDecision {
  const record = stored.specs.get(spec);
  if (record === undefined) return refused(`there is no spec ${spec} in ${stored.data.name}`);
  if (record.kind === "candidate")
    return refused(`${spec} has never been offered; there is nothing to decide about it`);
  if (record.kind === "deleted")
    return refused(`${spec} was deleted; it comes back by itself, with its ids, when a reading finds it`);
  const act = decide(record);
  if (typeof act === "string") return refused(act);
  const draft = draftOf(stored);
  draft.put(spec, act.record);
  draft.tell(act.code, act.why, spec);
  return changed(draft.finish(stored.data));
}

function changed(change: SourceChange): AdminDecision {
  return { kind: "changed", change };
}

function refused(why: string): AdminDecision {
  return { kind: "refused", why };
}
