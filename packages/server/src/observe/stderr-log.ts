import type { Clock } from "@osbert/journal";
import type { News, Observe } from "./event.js";
import { gatherRefusals, type Line, type LineOf, lightClock, loudAfter, sameness } from "./log.js";
import { isWorthTelling, Repeats } from "./repeats.js";

/** What is written to standard error: all warnings and errors; only what looks like a mistake in an author's code; nothing. */
export type StderrLevel = "warnings" | "bugs" | "nothing";

/** How much is told, and where to. */
export interface StderrLogOptions<Event> {
  readonly lineOf: LineOf<Event>;
  /** Of which events `lineOf` may make a warning or an error. Default: of all. */
  readonly needs?: (news: News) => boolean;
  /** What looks like a bug in an author's code, in words for them; `undefined`: it does not. Told beside the line, once it has come often enough. */
  readonly bugOf?: (event: Event, count: number) => string | undefined;
  /** Fields that differ from time to time of what is the same: what fails for one request as for another. */
  readonly varies: ReadonlySet<string>;
  readonly level: Exclude<StderrLevel, "nothing">;
  readonly write: (text: string) => void;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** By which refused requests are gathered. */
  readonly clock?: Clock;
}

/** Where nothing else is told, what looks like a bug is told at once. */
const bugAfter = { warnings: loudAfter, bugs: 1 };
/** Whatever happens, no more than so many lines a minute: messages may all be different. */
const mostLinesAMinute = 60;
/** Of which strangers, who may guess from many networks, leave some to everything else. */
const mostBeforeRefusals = 30;
const longestText = 500;

/**
 * Lines for whoever started a program in a terminal and set up nothing else: a step that fails must not do so in silence. The same
 * is told the first time, the tenth, the hundredth… No line has anything in it that a log would not have, nor passwords in URLs or
 * characters that steer a terminal.
 */
export function stderrLog<Event extends { readonly kind: string }>(options: StderrLogOptions<Event>): Observe<Event> {
  const { level, write, now, lineOf, needs, bugOf, varies, clock = lightClock } = options;
  const repeats = new Repeats();
  let minute = 0;
  let lines = 0;
  let leftOut = 0;
  const tell = (text: string, most = mostLinesAMinute): void => {
    const at = now();
    if (Math.floor(at / 60_000) !== minute) {
      minute = Math.floor(at / 60_000);
      lines = 0;
      if (leftOut > 0) write(`${timeOf(at)} WARN ${leftOut} more lines were left out\n`);
      leftOut = 0;
    }
    if (lines >= most) {
      leftOut += 1;
      return;
    }
    lines += 1;
    write(`${timeOf(at)} ${text}\n`);
  };
  const gather =
    level === "warnings" ? gatherRefusals(clock, (line) => tell(textOf(line, 1), mostBeforeRefusals)) : undefined;
  const log = (event: Event) => {
    gather?.(event);
    const line = lineOf(event);
    if (line === undefined || (line.level !== "warn" && line.level !== "error")) return;
    const count = repeats.count(sameness(line, varies), now());
    if (level === "warnings" && isWorthTelling(count)) tell(textOf(line, count));
    const bug = count === bugAfter[level] ? bugOf?.(event, count) : undefined;
    if (bug !== undefined) tell(bug);
  };
  return Object.assign(log, needs && { needs });
}

function textOf({ level, message, fields }: Line, count: number): string {
  const { error, why, description, ...others } = fields as Readonly<Record<string, unknown>> & {
    readonly error?: { readonly type: string; readonly message: string };
  };
  const reason = error === undefined ? (why ?? description) : `${error.type}: ${error.message}`;
  const facts = Object.entries(others).map(([name, value]) => `${name}=${terminalText(asText(value))}`);
  const said = `${level.toUpperCase()} ${terminalText(message)}${reason == null ? "" : `: ${terminalText(asText(reason))}`}`;
  return `${said}${facts.length > 0 ? ` (${facts.join(" ")})` : ""}${count > 1 ? `, ${count} times so far` : ""}`;
}

/** A text from anywhere, as it may stand in a line of a terminal. */
export function terminalText(text: string): string {
  const safe = text
    .slice(0, 4 * longestText)
    // Before the @ of a URL is where drivers and people put passwords.
    .replaceAll(/\/\/\S*@/g, "//…@")
    // JSON.parse quotes what it could not read.
    .replaceAll(/"[\s\S]*"(?:\.\.\.)? is not valid JSON/g, "… is not valid JSON")
    .replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, escaped);
  return safe.length > longestText ? `${safe.slice(0, longestText - 1)}…` : safe;
}

function escaped(character: string): string {
  return `\\u{${character.codePointAt(0)?.toString(16)}}`;
}

function asText(value: unknown): string {
  return typeof value === "string" ? value : (JSON.stringify(value) ?? "");
}

function timeOf(ms: number): string {
  return new Date(ms).toISOString();
}
