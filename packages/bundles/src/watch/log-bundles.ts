import type { Line, Logger } from "@osbert/server/observe";
import type { Collection } from "../reconcile/collect.js";
import { type ChannelRef, type Observation, type RefSeen, specId } from "../reconcile/observation.js";
import type { EventCode, ReconcileEvent } from "../reconcile/reconcile-event.js";
import type { BundleEvent, BundleObserver, SourceRead } from "./bundle-event.js";

/**
 * One line for each thing that happens to sources, in the process that did it: what a reading came to, where that is news, each event with
 * its code, how far a long reading is, what was collected. Jobs are `debug`: what becomes of their operations is told by the broker's log.
 * What others wrote is in the fields, which are bounded and written as JSON: a line break of theirs makes no line of ours.
 */
export function logBundles(logger: Logger): BundleObserver {
  const news = new ReadingNews();
  return (event) => {
    for (const { level, fields, message } of linesOf(event, news)) logger[level](fields, message);
  };
}

function linesOf(event: BundleEvent, news: ReadingNews): readonly Line[] {
  switch (event.kind) {
    case "source reading": {
      const { source, done, of } = event;
      const message = of === null ? "source of bundles is being listed" : "source of bundles is being read";
      return [{ level: "info", message, fields: { source, done, ...(of !== null && { of }) } }];
    }
    case "source read":
      return news.of(event);
    case "source changed":
      news.told(event.source, event.events);
      return eventLines(event.source, event.by, event.events);
    case "bundle left out": {
      const { source, spec, serviceId, digest } = event;
      const message = "bundle is not offered: the store has lost its description; it is read again with its source";
      return [{ level: "error", message, fields: { source, spec, service: serviceId, digest } }];
    }
    case "source not taken in": {
      const message =
        "a change of a source of bundles cannot be taken in; what is offered stays, and it is tried again";
      return [{ level: "warn", message, fields: { source: event.source, why: event.why.slice(0, longestWhy) } }];
    }
    case "source collected":
      return collectionLines(event.source, event.collection, event.dryRun);
    case "job ended": {
      const { job, operation, service, action, end, cause } = event;
      const fields = { job, operation, service, action, end, cause };
      return [{ level: "debug", message: "action of a bundle has ended", fields }];
    }
    case "sources known":
    case "job watched":
    case "job left":
      return [];
  }
}

/** Those that ask for a person, or say that something is not as it should be. The others are `info`. */
const warnings: ReadonlySet<EventCode> = new Set<EventCode>([
  "source.failing",
  "source.hidden",
  "guard.tripped",
  "spec.pending",
  "spec.rejected",
  "spec.degraded",
  "spec.stale",
  "spec.missing",
  "version.unchanged",
  "version.downgraded",
]);

/** Of one commit: the first reading of a large registry is thousands of them, and all are in the source's journal. */
const mostEvents = 50;
const longestWhy = 500;

function eventLines(source: string, by: string, events: readonly ReconcileEvent[]): readonly Line[] {
  const lines = events.slice(0, mostEvents).map(({ code, spec, serviceId, why }): Line => {
    const about = { ...(spec !== null && { spec }), ...(serviceId !== null && { service: serviceId }) };
    const fields = { source, code, ...about, by, why: why.slice(0, longestWhy) };
    return { level: warnings.has(code) ? "warn" : "info", message: `bundles: ${code}`, fields };
  });
  const left = events.length - lines.length;
  if (left === 0) return lines;
  const message = "bundles: more has happened than is logged; osbert bundles events shows it";
  return [...lines, { level: "info", message, fields: { source, by, events: left } }];
}

function collectionLines(source: string, collection: Collection, dryRun: boolean): readonly Line[] {
  const { deleted, revisions, forgotten } = collection;
  const counts = { deleted: deleted.length, revisions: revisions.length, forgotten: forgotten.length };
  // What is old enough and stays is no news: it is found by each pass.
  if (counts.deleted + counts.revisions + counts.forgotten === 0) return [];
  const message = dryRun ? "bundles would be collected, if this were no dry run" : "bundles were collected";
  return [{ level: "info", message, fields: { source, ...counts } }];
}

const mostRefs = 20;
const mostProblems = 5;

/**
 * What readings of sources have found. A source that is as it was at the last reading is not worth a line: it is read every few minutes. A
 * bundle that cannot be used is told once by its event; by the reading only if there was none, as after a start.
 */
class ReadingNews {
  readonly #last = new Map<string, string>();
  readonly #told = new Map<string, Set<string>>();

  told(source: string, events: readonly ReconcileEvent[]): void {
    const told = this.#told.get(source) ?? new Set();
    for (const { spec } of events) if (spec !== null) told.add(spec);
    this.#told.set(source, told);
  }

  of({ source, observation, refused }: SourceRead): readonly Line[] {
    const told = this.#told.get(source) ?? new Set();
    this.#told.delete(source);
    const { whole, unusable } = readingLines(source, observation, refused);
    const said = JSON.stringify([whole, unusable.map(({ line }) => line)]);
    if (this.#last.get(source) === said) return [];
    this.#last.set(source, said);
    const untold = unusable.filter(({ spec }) => !told.has(spec)).map(({ line }) => line);
    const left = untold.length - mostRefs;
    const message = "more bundles cannot be offered or read";
    return [
      whole,
      ...untold.slice(0, mostRefs),
      ...(left > 0 ? [{ level: "warn", message, fields: { source, bundles: left } } as const] : []),
    ];
  }
}

/** What a reading comes to, for a person: one line of the whole, and one of each bundle that cannot be used. */
function readingLines(
  source: string,
  { completeness, refs, error }: Observation,
  refused: SourceRead["refused"],
): { readonly whole: Line; readonly unusable: readonly { readonly spec: string; readonly line: Line }[] } {
  const problemsOf = ({ ref, seen: found }: { readonly ref: ChannelRef; readonly seen: RefSeen }) => {
    if (found.kind === "invalid") return found.problems;
    if (found.kind === "unsupported") return [{ path: "", message: found.why, line: null, advice: false }];
    const known = found.kind === "same" && refused.size > 0 ? refused.get(specId(ref)) : undefined;
    return found.kind === "same" && known?.digest === found.digest ? known.problems : null;
  };
  const isBundle = ({ kind }: RefSeen) => kind === "same" || kind === "read";
  let bundles = 0;
  const others: { readonly ref: ChannelRef; readonly seen: RefSeen }[] = [];
  refs.forEach((each) => {
    if (isBundle(each.seen) && problemsOf(each) === null) bundles += 1;
    else others.push(each);
  });
  const whole: Line =
    completeness === "complete"
      ? { level: "info", message: "source of bundles was read", fields: { source, bundles } }
      : completeness === "partial"
        ? {
            level: "warn",
            message: "source of bundles was read in part; nothing goes for that",
            fields: { source, bundles, error },
          }
        : {
            level: "warn",
            message: "source of bundles could not be read; what is known of it stays",
            fields: { source, error },
          };
  const unusable = others.flatMap((each) => {
    const { ref, seen: found } = each;
    const about = { source, bundle: `${ref.repository}:${ref.tag}` };
    const line = (message: string, facts: object) => [
      { spec: specId(ref), line: { level: "warn", message, fields: { ...about, ...facts } } as const },
    ];
    const problems = problemsOf(each);
    if (problems !== null) return line("bundle cannot be offered", { problems: problems.slice(0, mostProblems) });
    return found.kind === "unreadable" ? line("bundle could not be read", { error: found.why }) : [];
  });
  return { whole, unusable };
}
