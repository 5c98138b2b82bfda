import type { Entry, Journal, Page } from "@osbert/journal";
import type { Paging } from "@osbert/server";
import { type EventView, iso, type RunView } from "../admin/views.js";
import { changedEntry } from "./source-copy.js";
import { changedKind } from "./source-resource.js";

const entriesAtOnce = 200;
/** For one request. */
const mostPages = 10;
const mostEventsInList = 10;
const defaultLimit = 100;

/** What has changed a source, newest first: readings, decisions of people, and collection. Readings that changed nothing leave no trace. */
export async function sourceRuns(
  journal: Journal,
  key: string,
  { after, limit = defaultLimit }: Paging,
): Promise<Page<RunView>> {
  const items: RunView[] = [];
  let before = after === undefined ? Number.MAX_SAFE_INTEGER : Number(after);
  if (!Number.isSafeInteger(before) || before < 0) before = 0;
  for (let pages = 0; pages < mostPages; pages++) {
    const entries = await journal.entries(key, { before, limit: entriesAtOnce });
    for (const entry of entries) {
      before = entry.seq;
      if (entry.kind !== changedKind) continue;
      const run = runView(entry);
      items.push({ ...run, events: run.events.slice(0, mostEventsInList) });
      if (items.length >= limit) return { items, next: String(before) };
    }
    if (entries.length < entriesAtOnce) return { items, next: null };
  }
  return { items, next: String(before) };
}

export async function sourceRun(journal: Journal, key: string, seq: number): Promise<RunView | undefined> {
  const [entry] = await journal.entries(key, { after: seq - 1, limit: 1 });
  return entry?.seq === seq && entry.kind === changedKind ? runView(entry) : undefined;
}

/**
 * The events of all runs, newest first; of one spec, if one is named. Where a page goes on is told by the run and by how many of its events
 * were looked at: a run may have more than a page takes.
 */
export async function sourceEvents(
  journal: Journal,
  key: string,
  spec: string | null,
  { after = "", limit = defaultLimit }: Paging,
): Promise<Page<EventView>> {
  const [, run, passed = "0"] = /^([0-9]{1,15})(?:\.([0-9]{1,6}))?$/.exec(after) ?? [];
  const items: EventView[] = [];
  let before = run === undefined ? Number.MAX_SAFE_INTEGER : Number(run) + 1;
  let from = Number(passed);
  for (let pages = 0; pages < mostPages; pages++) {
    const entries = await journal.entries(key, { before, limit: entriesAtOnce });
    for (const entry of entries) {
      before = entry.seq;
      if (entry.kind !== changedKind) continue;
      const { run: number, at, by, events } = runView(entry);
      for (const [index, event] of events.entries()) {
        if (index < from || (spec !== null && event.spec !== spec)) continue;
        if (items.length >= limit) return { items, next: `${number}.${index}` };
        items.push({ run: number, at, by, ...event });
      }
      from = 0;
    }
    if (entries.length < entriesAtOnce) return { items, next: null };
  }
  return { items, next: String(before - 1) };
}

function runView({ seq, at, actor, payload }: Entry): RunView {
  const { snapshot, specs, events, eventCount } = changedEntry(payload);
  return {
    ...{ run: seq, at: iso(at), by: actor.subject, snapshot, specs: specs.length },
    ...{ event_count: eventCount, events },
  };
}
