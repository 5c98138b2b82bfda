import type { Actor } from "@osbert/journal";
import type { StoredEntry } from "@osbert/journal/store";
import { acceptedSeq, journalActor, stateOf } from "@osbert/journal/testing";
import type { DumpedResource } from "../dump.js";
import { isKeeper } from "../scenario.js";
import type { Run } from "./evidence.js";
import type { Violation } from "./violation.js";

/** J9, and what retention leaves: entries without gaps where nothing may go, whole stories elsewhere, all of them attributed. */
export function journalViolations(run: Run): readonly Violation[] {
  return run.dump.flatMap((resource) => [
    ...stillOpen(resource),
    ...gaps(resource, run.keepsAll || isKeeper(resource.record.key)),
    ...wholeStories(resource),
    ...resource.entries.flatMap((entry) => attributed(resource, entry)),
  ]);
}

function stillOpen({ record, parts }: DumpedResource): readonly Violation[] {
  const { open, queued } = stateOf(record);
  const waiting = parts.filter(({ id }) => id.startsWith("osbert.queue/"));
  if (open.length + queued + waiting.length === 0) return [];
  const story = `${record.key}: ${open.map(({ id }) => id).join(", ")} and ${queued} queued, ${waiting.length} in parts`;
  return [{ kind: "never ended", story }];
}

function gaps({ record, entries }: DumpedResource, keepsAll: boolean): readonly Violation[] {
  const found: Violation[] = [];
  const missing = (story: string) => found.push({ kind: "entry missing", story: `${record.key}: ${story}` });
  for (const [index, { seq }] of entries.entries()) {
    const before = entries[index - 1]?.seq ?? 0;
    if (seq <= before || seq > record.seq)
      missing(`entry ${seq} stands after ${before}, the record is at ${record.seq}`);
    else if (keepsAll && seq !== before + 1) missing(`${before + 1} to ${seq - 1}`);
  }
  const last = entries.at(-1)?.seq ?? 0;
  if (keepsAll && last !== record.seq) missing(`${last + 1} to ${record.seq}`);
  return found;
}

/** An operation's entries go together: if one is there, all are. */
function wholeStories({ record, entries }: DumpedResource): readonly Violation[] {
  const operations = new Map<string, StoredEntry[]>();
  for (const entry of entries) {
    if (entry.operation !== null) operations.set(entry.operation, [...(operations.get(entry.operation) ?? []), entry]);
  }
  return [...operations].flatMap(([id, story]) => {
    const found: Violation[] = [];
    const of = (kind: string) => story.filter((entry) => entry.kind === kind);
    const name = `${record.key}, operation ${id}`;
    if (of("accepted").length !== 1 || of("accepted")[0]?.seq !== acceptedSeq(id))
      found.push({ kind: "entry missing", story: `${name}: its acceptance` });
    if (of("settled").length === 0) found.push({ kind: "entry missing", story: `${name}: its end` });
    if (of("settled").length > 1) found.push({ kind: "ended twice", story: name });
    const steps = of("step").map((entry) => (bodyOf(entry).payload as { step: string }).step);
    if (new Set(steps).size !== steps.length)
      found.push({ kind: "two results of a step", story: `${name}: ${steps.join(", ")}` });
    const settled = of("settled")[0]?.seq ?? Number.POSITIVE_INFINITY;
    const late = story.filter(({ seq }) => seq > settled);
    if (late.length > 0)
      found.push({ kind: "ran after the end", story: `${name}: ${late.map(({ kind }) => kind).join(", ")} recorded` });
    return found;
  });
}

interface Body {
  readonly actor?: Actor;
  readonly cause?: number | string;
  readonly requestId?: string;
  readonly payload: unknown;
}

function bodyOf({ body }: StoredEntry): Body {
  return JSON.parse(body) as Body;
}

function attributed({ record, entries }: DumpedResource, entry: StoredEntry): readonly Violation[] {
  const { actor, cause, requestId } = bodyOf(entry);
  const unclear = (what: string): readonly Violation[] => [
    { kind: "entry not attributed", story: `${record.key}, entry ${entry.seq} (${entry.kind}): ${what}` },
  ];
  if (!(entry.at > 0)) return unclear("no time");
  if (actor === undefined || actor.subject === "") return unclear("no actor");
  if (entry.operation === null) return [];
  if (cause === undefined) {
    // The journal's own words: a deadline, a runner that never came back. They say why by what they are.
    return actor.subject === journalActor.subject ? [] : unclear("no cause");
  }
  const accepted = entries.find(({ seq }) => seq === acceptedSeq(entry.operation ?? ""));
  if (accepted === undefined) return [];
  const { n } = (bodyOf(accepted).payload as { input: { n: number } }).input;
  const firstOfRequest = bodyOf(accepted).actor?.subject;
  const names = [firstOfRequest, `canceller-${n}`, journalActor.subject];
  if (!names.includes(actor.subject)) return unclear(`by ${actor.subject}, not by one of ${names.join(", ")}`);
  if (actor.subject !== journalActor.subject && requestId === undefined) return unclear("no request id");
  return [];
}
