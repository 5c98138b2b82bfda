import { plainJson, plainText } from "../client/plain-text.js";
import { shellQuote } from "../client/shell-quote.js";
import { table } from "../client/table.js";
import type { PageChoice } from "./admin-command-options.js";
import type { AdminSession } from "./admin-session.js";

/** A page may be empty and still have one behind it, where only few of many are wanted. */
const mostRequests = 50;

/** A page of a list: so many, from there on. */
export type AskPage<Item> = (page: { readonly limit: string; readonly after: string | undefined }) => Promise<{
  readonly items: readonly Item[];
  readonly next: string | null;
}>;

/** Prints a list as a table, or as it came. Asks on as long as there are said to be more and too few were found. */
export async function printList<Item extends object>(
  session: Pick<AdminSession, "surroundings" | "json">,
  ask: AskPage<Item>,
  { limit, after }: PageChoice,
  headings: readonly string[],
  row: (item: Item) => readonly string[],
  none: string,
): Promise<void> {
  const items: Item[] = [];
  let next: string | undefined = after;
  for (let requests = 0; requests < mostRequests; requests++) {
    const page = await ask({ limit: String(limit - items.length), after: next });
    items.push(...page.items);
    next = page.next ?? undefined;
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
export function say(session: AdminSession, answer: object, line: string): void {
  const { stdout } = session.surroundings;
  stdout.write(session.json ? `${plainJson(answer)}\n` : `${plainText(line)}\n`);
}
