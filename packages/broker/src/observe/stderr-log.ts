import { authorFrames, looksLikeABug } from "./bug.js";
import { errorFacts } from "./error-facts.js";
import type { Observer } from "./event.js";
import { failedStep } from "./failed-step.js";
import { type Line, lineOf } from "./log-to.js";
import { isWorthTelling, Repeats } from "./repeats.js";

/** What is written to standard error: all warnings and errors; only what looks like a mistake in a service's code; nothing. */
export type StderrLevel = "warnings" | "bugs" | "nothing";

/** How much is told, and where to. */
export interface StderrLogOptions {
  readonly level: Exclude<StderrLevel, "nothing">;
  readonly write: (text: string) => void;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

/** So often an error that looks like a bug has to come before it is told louder; where nothing else is told, it is told at once. */
const loudAfter = { warnings: 3, bugs: 1 };
/** Whatever happens, no more than so many lines a minute: messages may all be different. */
const mostLinesAMinute = 60;
const longestText = 500;

/**
 * Lines for whoever started the broker in a terminal and set up nothing else: a step that fails must not do so in silence. The same
 * is told the first time, the tenth, the hundredth… No line has anything in it that `logTo` would not log, nor passwords in URLs or
 * characters that steer a terminal.
 */
export function stderrLog({ level, write, now }: StderrLogOptions): Observer {
  const repeats = new Repeats();
  let minute = 0;
  let lines = 0;
  let leftOut = 0;
  const tell = (text: string): void => {
    const at = now();
    if (Math.floor(at / 60_000) !== minute) {
      minute = Math.floor(at / 60_000);
      lines = 0;
      if (leftOut > 0) write(`${timeOf(at)} WARN ${leftOut} more lines were left out\n`);
      leftOut = 0;
    }
    lines += 1;
    if (lines <= mostLinesAMinute) write(`${timeOf(at)} ${text}\n`);
    else leftOut += 1;
  };
  return (event) => {
    const line = lineOf(event);
    if (line === undefined || (line.level !== "warn" && line.level !== "error")) return;
    const count = repeats.count(sameness(line), now());
    if (level === "warnings" && isWorthTelling(count)) tell(textOf(line, count));
    if (event.kind === "retrying" && count === loudAfter[level] && looksLikeABug(event.error)) {
      tell(bugText(event, count));
    }
  };
}

/** What fails for one instance as for another, and later as before, is the same. */
const tellsNothingNew = new Set([
  ...["requestId", "operation", "platform", "instance", "binding"],
  ...["attempt", "until", "tookMs", "running"],
]);

function sameness({ message, fields }: Line): string {
  return JSON.stringify([message, Object.entries(fields).filter(([name]) => !tellsNothingNew.has(name))]);
}

function textOf({ level, message, fields }: Line, count: number): string {
  const { error, why, description, ...others } = fields as Readonly<Record<string, unknown>> & {
    readonly error?: { readonly type: string; readonly message: string };
  };
  const reason = error === undefined ? (why ?? description) : `${error.type}: ${error.message}`;
  const facts = Object.entries(others).map(([name, value]) => `${name}=${shown(asText(value))}`);
  const said = `${level.toUpperCase()} ${shown(message)}${reason == null ? "" : `: ${shown(asText(reason))}`}`;
  return `${said}${facts.length > 0 ? ` (${facts.join(" ")})` : ""}${count > 1 ? `, ${count} times so far` : ""}`;
}

function bugText(
  { operationKind, service, error }: { operationKind: string; service: string | null; error: unknown },
  count: number,
): string {
  const step = failedStep(error);
  const { type, message } = errorFacts(error);
  const where = `${step === null ? "outside of any step" : `in step ${JSON.stringify(step)}`} of ${operationKind}`;
  const often = count === 1 ? "" : `, ${count} times so far`;
  return [
    `ERROR This looks like a bug in the service ${shown(service ?? "unknown")}, ${shown(where)}${often}:`,
    `    ${shown(type)}: ${shown(message)}`,
    ...authorFrames(error).map((frame) => `        ${shown(frame)}`),
    `    It is tried again until its deadline. Mend it and restart the broker: what is recorded is not done again.`,
  ].join("\n");
}

/** A text from anywhere, as it may stand in a line of a terminal. */
function shown(text: string): string {
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
