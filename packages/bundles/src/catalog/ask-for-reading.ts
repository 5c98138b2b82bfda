import type { Attribution, Journal } from "@osbert/journal";
import { followKind, sourceResource } from "./source-resource.js";

/**
 * There is an operation that follows the source, and it looks now, in whichever process it runs. Answers the id of the reading that sees what
 * there is at this moment (F5-73): the next one, or the one after a reading that is at work.
 */
export async function askForReading(journal: Journal, key: string, by: Attribution): Promise<string> {
  const decide = sourceResource.decide((resource) => {
    const open = resource?.open.filter(({ kind }) => kind === followKind) ?? [];
    const [first] = open;
    if (first === undefined) return { result: null, change: { accept: [{ kind: followKind }] } };
    const next = first.attempts + (first.state === "running" ? 2 : 1);
    return { result: readingId(first.id, next), change: { hurry: open.map(({ id }) => id) } };
  });
  const { result, accepted } = await journal.transact(key, decide, { by });
  return result ?? readingId(accepted[0]?.id ?? "", 1);
}

/** A reading is an attempt at the operation that follows its source. */
export function readingId(operation: string, attempt: number): string {
  return `${operation}.${attempt}`;
}

/** `undefined`: no reading has such an id. */
function parseReadingId(id: string): { readonly operation: string; readonly attempt: number } | undefined {
  const [, operation, attempt] = /^([\w-]{1,100})\.([1-9][0-9]{0,8})$/.exec(id) ?? [];
  return operation === undefined ? undefined : { operation, attempt: Number(attempt) };
}

/**
 * What has become of a reading that was asked for. What it has changed is among the runs, if it has changed anything. `undefined`: there was
 * none of this id, or it is so long ago that nothing is kept of it.
 */
export async function readingState(
  journal: Journal,
  key: string,
  id: string,
): Promise<"waiting" | "running" | "ended" | undefined> {
  const asked = parseReadingId(id);
  const follows = asked && (await journal.operation(key, asked.operation));
  if (asked === undefined || follows === undefined) return undefined;
  if (follows.open === null) return (await stateInNext(journal, key, asked.operation)) ?? "ended";
  if (follows.open.attempts >= asked.attempt) return "ended";
  return follows.open.attempts + 1 === asked.attempt && follows.open.state === "running" ? "running" : "waiting";
}

/** Of what an operation has left to the one that goes on for it: the first reading of that. `undefined`: none of those that are open does. */
async function stateInNext(
  journal: Journal,
  key: string,
  ended: string,
): Promise<"waiting" | "running" | "ended" | undefined> {
  for (const { kind, input, attempts, state } of (await journal.operations(key)).items) {
    const left = kind === followKind ? sourceResource.input(followKind, input) : null;
    if (left === null || parseReadingId(left.reading)?.operation !== ended) continue;
    if (attempts > 0) return "ended";
    return state === "running" ? "running" : "waiting";
  }
  return undefined;
}
