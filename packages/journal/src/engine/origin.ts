import type { Draft } from "../decisions/draft.js";
import { JournalError } from "../errors.js";
import type { Json } from "../json.js";
import { type Attribution, acceptedSeq, type OpenOperation } from "../operation.js";
import type { StoredEntry } from "../store.js";

/** What an attempt begins with: the words of the request, and what earlier attempts have recorded. */
export interface Origin {
  readonly input: Json;
  readonly attribution: Attribution;
  readonly results: ReadonlyMap<string, Json>;
}

/** The numbers of the entries that tell an operation's origin: however long the journal is, only they are read. */
export function originSeqs(operation: OpenOperation): readonly number[] {
  return [acceptedSeq(operation.id) ?? 0, ...operation.steps.map(([, seq]) => seq)];
}

export function originFrom(entries: readonly StoredEntry[], operation: OpenOperation): Origin {
  const accepted = acceptedSeq(operation.id);
  const words = entries.find(({ seq }) => seq === accepted)?.body;
  if (words === undefined) {
    throw new JournalError("unreadable", `the entry that accepted operation ${operation.id} is missing`);
  }
  const { payload, ...attribution } = JSON.parse(words) as { payload: { input: Json } } & Attribution;
  const results = resultsFrom(entries, operation.steps);
  for (const [name] of operation.steps) {
    if (results.has(name)) continue;
    const step = JSON.stringify(name);
    throw new JournalError("unreadable", `the result of step ${step} of operation ${operation.id} is missing`);
  }
  return { input: payload.input, attribution, results };
}

/** The results of recorded steps, by name; an entry that is not there any more leaves its name out. */
export function resultsFrom(entries: readonly StoredEntry[], steps: OpenOperation["steps"]): ReadonlyMap<string, Json> {
  const bodies = new Map(entries.map((entry) => [entry.seq, entry.body]));
  const results = new Map<string, Json>();
  for (const [name, seq] of steps) {
    const body = bodies.get(seq);
    if (body !== undefined) results.set(name, (JSON.parse(body) as { payload: { result: Json } }).payload.result);
  }
  return results;
}

/** Nothing is recorded yet. */
export const noResults: ReadonlyMap<string, Json> = new Map();

/** What was just accepted need not be read: its words are at hand, as JSON has them. */
export function originsOf(draft: Draft, attribution: Attribution): ReadonlyMap<string, Origin> {
  const origins = new Map<string, Origin>();
  for (const { operation, kind, body } of draft.entries) {
    if (kind !== "accepted" || operation === null) continue;
    const { payload } = JSON.parse(body) as { payload: { input: Json } };
    origins.set(operation, { input: payload.input, attribution, results: noResults });
  }
  return origins;
}
