import type { Journal } from "@osbert/journal";
import type { PreviewView } from "../admin/views.js";
import { type AdminDecision, configure, disable, drain, enable } from "../reconcile/admin-decisions.js";
import { identifySources } from "../reconcile/identify-sources.js";
import { drainedObservation, reconcile } from "../reconcile/next-state.js";
import type { ReconcileEvent } from "../reconcile/reconcile-event.js";
import { newSource, type StoredSource, sourceKey } from "../reconcile/records.js";
import { defaultRules } from "../reconcile/rules.js";
import { useToAsk } from "../reconcile/use-to-ask.js";
import type { BundleSource } from "./bundle-source.js";
import { rankOf } from "./configured-sources.js";
import { inUse } from "./in-use.js";

/** For all sources together: whoever asks waits for it. */
const previewMs = 50_000;
const mostEvents = 500;
/** No run has it. */
const previewId = "preview";

/**
 * What would become of each source with another configuration (F5-21, 85): each is read now, and what the first reading would change is
 * told, without a word to the store. What would go is told as missing: it stays in the catalog until it has been missing for long enough.
 */
export async function previewSources(
  journal: Journal,
  kept: ReadonlyMap<string, StoredSource>,
  sources: readonly BundleSource[],
): Promise<readonly PreviewView[]> {
  const signal = AbortSignal.timeout(previewMs);
  const known = [...kept.values()].map(({ data: { identityName, name } }) => ({ identityName, name }));
  const named = sources.map(({ name, previousNames = [] }) => ({ name, previousNames }));
  const { identities, left } = identifySources(named, known);
  const configured = sources.map((source) => {
    const stored = kept.get(sourceKey(identities.get(source.name) ?? source.name));
    return previewSource(journal, source, stored, signal);
  });
  const drained = left.flatMap((identity) => {
    const stored = kept.get(sourceKey(identity));
    return stored === undefined ? [] : [previewDrained(stored, journal.now())];
  });
  return [...(await Promise.all(configured)), ...drained];
}

async function previewSource(
  journal: Journal,
  source: BundleSource,
  before: StoredSource | undefined,
  signal: AbortSignal,
): Promise<PreviewView> {
  const { name, generation, listing, rules, enabled = true } = source;
  const now = journal.now();
  const decider = { by: "the configuration", why: "its settings say so", now };
  const events: ReconcileEvent[] = [];
  const after = (stored: StoredSource, decision: AdminDecision): StoredSource => {
    if (decision.kind === "refused") return stored;
    events.push(...decision.change.events);
    return { ...stored, data: decision.change.data };
  };
  const fresh = { data: newSource(name, generation, { listing }), specs: new Map() };
  const wanted = { name, identityName: before?.data.identityName ?? name, generation, listing, rank: rankOf(source) };
  let stored = before === undefined ? fresh : after(before, configure(before, wanted, decider));
  const isOther = before?.data.generation !== generation;
  if (!enabled) stored = after(stored, disable(stored, decider));
  else if (isOther) stored = after(stored, enable(stored, decider));
  const settings = before === undefined ? "new" : isOther ? "changed" : "the same";
  const facts = { source: name, settings } as const;
  if (stored.data.mode !== "active") return view(facts, null, "it is not read", events, stored);
  try {
    const request = { id: previewId, signal, onProgress: () => undefined };
    const observation = await source.observe(stored, request);
    const use = await inUse(journal, useToAsk(stored, observation, rules));
    const next = reconcile(stored, observation, { rules, now, inUse: use });
    return view(facts, observation.completeness, observation.error, [...events, ...next.events], next);
  } catch (error) {
    if (!signal.aborted) throw error;
    return view(facts, "failed", `it could not be read in ${previewMs / 1_000} seconds`, events, stored);
  }
}

/** The configuration lacks it. */
function previewDrained(before: StoredSource, now: number): PreviewView {
  const facts = { source: before.data.name, settings: "gone" } as const;
  const decided = drain(before, { by: null, why: "the configuration lacks it" });
  if (decided.kind === "refused") return view(facts, null, decided.why, [], before);
  const stored = { ...before, data: decided.change.data };
  const rules = defaultRules;
  const nobody = { services: new Set<string>(), plans: new Set<string>() };
  const next = reconcile(stored, drainedObservation(stored.data, previewId), { rules, now, inUse: nobody });
  return view(facts, null, null, [...decided.change.events, ...next.events], next);
}

function view(
  facts: Pick<PreviewView, "source" | "settings">,
  completeness: PreviewView["completeness"],
  error: string | null,
  events: readonly ReconcileEvent[],
  { data: { guard } }: Pick<StoredSource, "data">,
): PreviewView {
  const held =
    guard === null || guard.confirmed !== null ? null : { count: guard.count, of: guard.of, specs: guard.specs };
  return { ...facts, completeness, error, event_count: events.length, events: events.slice(0, mostEvents), held };
}
