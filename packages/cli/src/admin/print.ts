import type { JsonObject } from "@osbert/protocol";
import { plainJson, plainText } from "../client/plain-text.js";
import { shellQuote } from "../client/shell-quote.js";
import { table } from "../client/table.js";
import type { PageChoice } from "./admin-command-options.js";
import type { AdminSession, AskOptions } from "./admin-session.js";
import { listAt, textAt } from "./answer-fields.js";

/** A page may be empty and still have one behind it, where only few of many are wanted. */
const mostRequests = 50;

/** Prints a list as a table, or as it came. Asks on as long as the broker says that there are more and too few were found. */
export async function printList(
  session: AdminSession,
  path: string,
  { limit, after }: PageChoice,
  query: NonNullable<AskOptions["query"]>,
  headings: readonly string[],
  row: (item: JsonObject) => readonly string[],
  none: string,
): Promise<void> {
  const items: JsonObject[] = [];
  let next: string | undefined = after;
  for (let requests = 0; requests < mostRequests; requests++) {
    const left = String(limit - items.length);
    const page = await session.ask("GET", path, { query: { ...query, limit: left, after: next } });
    items.push(...listAt(page, "items"));
    next = textAt(page, "next") || undefined;
    if (next === undefined || items.length >= limit) break;
  }
  const { stdout, stderr } = session.surroundings;
  if (session.json) {
    stdout.write(`${plainJson({ items, next: next ?? null })}\n`);
    return;
  }
  if (items.length === 0) stdout.write(`${none}\n`);
  else stdout.write(`${table(headings, items.map(row), stdout.isTTY ? stdout.columns : undefined)}\n`);
  if (next !== undefined) stderr.write(`there are more; go on with --after ${plainText(shellQuote(next), 5_000)}\n`);
}

/** Names and values, one a line; what is empty is left out. */
export function facts(all: Readonly<Record<string, string>>): string {
  const shown = Object.entries(all).filter(([, value]) => value !== "");
  const width = Math.max(0, ...shown.map(([name]) => name.length));
  return shown.map(([name, value]) => `${name.padEnd(width)}  ${plainText(value)}\n`).join("");
}

/** The same as a line for people; with --json the answer as it came. */
export function say(session: AdminSession, answer: JsonObject, line: string): void {
  const { stdout } = session.surroundings;
  stdout.write(session.json ? `${plainJson(answer)}\n` : `${plainText(line)}\n`);
}

/** An instance, binding, operation or service as a part of a path. */
export function segment(text: string): string {
  return encodeURIComponent(text);
}
