import type { Clock } from "@osbert/journal";
import { errorDetails, errorFacts } from "./error-facts.js";
import type { News, Observe, RequestAnswered } from "./event.js";
import { RefusalGatherer, type RefusedCallers } from "./refused-callers.js";
import { Repeats } from "./repeats.js";

/** What is called on a logger; pino's fits, and so do many others. */
export interface Logger {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
  /** Whether lines of this level are written at all: those that are not need not be made. Default: they are. */
  isLevelEnabled?(level: string): boolean;
}

export interface LogOptions {
  /** By which refused requests are gathered. */
  readonly clock?: Clock;
}

/** What a room adds to how its lines are logged. */
export interface LogLinesOptions<Event> extends LogOptions {
  /** Tells of what looks like a bug in an author's code once more, when it has come often enough. */
  readonly bugs?: LoudBugs<Event>;
  /** Whether the line of such an event may be a warning or an error. Default: of all. A log of those alone makes nothing of the others. */
  readonly mayBeLoud?: (news: News) => boolean;
}

export interface LoudBugs<Event> {
  /** The louder line; `undefined`: it does not look like a bug. */
  readonly lineOf: (event: Event, line: Line, times: number) => Line | undefined;
  /** Fields that differ from time to time of what is the same: what fails for one request as for another. */
  readonly varies: ReadonlySet<string>;
}

/** So often an error that looks like a bug has to come before it is told louder. */
export const loudAfter = 3;

export type LineLevel = "debug" | "info" | "warn" | "error";

/** What is to be said of an event. */
export interface Line {
  readonly level: LineLevel;
  readonly message: string;
  readonly fields: object;
  readonly error?: unknown;
}

/** A room's words for its events. `undefined`: nothing is said of it. */
export type LineOf<Event> = (event: Event) => Line | undefined;

/**
 * One line for each thing that happens, in the room's words. Requests that are not let in (401, 429) are gathered, as one line for each
 * network and minute.
 */
export function logLines<Event extends { readonly kind: string }>(
  logger: Logger,
  lineOf: LineOf<Event>,
  { clock = lightClock, bugs, mayBeLoud = () => true }: LogLinesOptions<Event> = {},
): Observe<Event> & { readonly logs: true } {
  const write = ({ level, fields, message }: Line) => logger[level](fields, message);
  const gather = gatherRefusals(clock, write);
  const repeats = new Repeats();
  // Asked each time: the level may be changed while the server runs.
  const needs = (news: News) => logger.isLevelEnabled?.("info") !== false || mayBeLoud(news);
  const log = (event: Event) => {
    // Others may need what this log does not: a line that is thrown away costs as much as one that is written.
    if (!needs(event)) return;
    gather(event);
    // Most requests are polls, which only `debug` tells of: a line costs as much as the rest of the answer.
    if (isRequest(event) && levelOf(event) === "debug" && logger.isLevelEnabled?.("debug") === false) return;
    const line = lineOf(event);
    if (line === undefined) return;
    write(line);
    if (line.error !== undefined) logger.debug({ ...line.fields, ...errorDetails(line.error) }, "where it was thrown");
    if (bugs === undefined || (line.level !== "warn" && line.level !== "error")) return;
    const times = repeats.count(sameness(line, bugs.varies), clock.monotonicMs());
    const bug = times === loudAfter ? bugs.lineOf(event, line, times) : undefined;
    if (bug !== undefined) write(bug);
  };
  return Object.assign(log, { logs: true, needs } as const);
}

/** The same text for lines that tell the same. */
export function sameness({ message, fields }: Line, varies: ReadonlySet<string>): string {
  return JSON.stringify([message, Object.entries(fields).filter(([name]) => !varies.has(name))]);
}

/** Tells of requests that were not let in as one line for each network and minute. */
export function gatherRefusals(clock: Clock, tell: (line: Line) => void): Observe<{ readonly kind: string }> {
  const refusals = new RefusalGatherer(clock, (callers) =>
    tell({ level: "warn", message: refusedMessage, fields: refusedFields(callers) }),
  );
  return (event) => {
    if (isRequest(event) && event.refused !== null) refusals.add(event.refused, event.status === 429 ? 429 : 401);
  };
}

function isRequest(event: { readonly kind: string }): event is RequestAnswered {
  return event.kind === "request answered";
}

/** What is said of a request, with the ids by which the lines of its story are found. */
export function requestLine(event: RequestAnswered, ids: object): Line {
  const { method, route, platform, credential, status, errorCode, description, cause, tookMs } = event;
  const fields = {
    ...ids,
    method,
    route,
    status,
    tookMs: Math.round(tookMs * 1_000) / 1_000,
    ...(platform !== null && platform !== "" && { platform }),
    ...(credential !== null && { credential }),
    ...(errorCode !== null && { errorCode, description }),
    ...(cause !== undefined && { error: errorFacts(cause) }),
  };
  return { level: levelOf(event), message: `${route ?? "request"} answered with ${status}`, fields, error: cause };
}

function levelOf({ method, status, credential }: RequestAnswered): LineLevel {
  if (status >= 500) return "error";
  const changes = method !== "GET" && method !== "HEAD";
  // A stranger must not be able to write the log: guesses are gathered, and what nobody could read is counted by the metrics alone.
  return credential !== null && (status >= 400 || changes) ? "info" : "debug";
}

/** Whose timers do not keep a process from ending that has nothing else to do. */
export const lightClock: Clock = {
  monotonicMs: () => performance.now(),
  after(ms, wake) {
    const timer = setTimeout(wake, ms).unref();
    return () => clearTimeout(timer);
  },
};

const refusedMessage = "requests were refused: they had no valid credential";

/** Without the counts that are 0. */
function refusedFields({ network, names, ...counts }: RefusedCallers): object {
  const counted = Object.fromEntries(Object.entries(counts).filter(([, count]) => count > 0));
  return { network, ...counted, ...(names.length > 0 && { names }) };
}
