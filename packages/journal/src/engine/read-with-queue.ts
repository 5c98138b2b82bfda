import { aboutPartPrefix, queuedOperation, queuePartIds, queuePrefix } from "../decisions/queue.js";
import type { OpenOperation } from "../operation.js";
import { emptyState, stateOf } from "../state.js";
import type { Store, StoredPart, StoredResource } from "../store.js";

/** Which of the operations that wait behind the record are wanted: those about some parts, or all. */
export type Behind = readonly string[] | "all";

export interface ReadWithQueue {
  readonly found: StoredResource | undefined;
  /** Texts of the wanted operations that wait in parts, by the ids of those, in their order. */
  readonly waiting: ReadonlyMap<string, string>;
}

const nothingWaits: ReadonlyMap<string, string> = new Map();
/** Parts that are read in one go. */
const pageSize = 500;
/** Of one part, no more waiting operations than this are looked for. */
const mostAbout = 100;
/** How often it is read anew because others changed it meanwhile. After that the older record counts: a change made on it is refused. */
const mostTries = 5;

/**
 * A resource, and of the operations that wait behind its record those that are wanted, all of one moment. It costs one read, unless some
 * do wait. While they are read others may move them into the record, where they would be missed: so the record is looked at again.
 */
export async function readWithQueue(
  store: Store,
  key: string,
  parts: readonly string[],
  behind: Behind,
): Promise<ReadWithQueue> {
  let found = await store.read(key, parts);
  for (let tries = 1; ; tries++) {
    if (found === undefined || behind.length === 0 || stateOf(found.record).queued === 0)
      return { found, waiting: nothingWaits };
    const queue = behind === "all" ? await allParts(store, key, queuePrefix) : [];
    const ids = behind === "all" ? [] : await queuedAbout(store, key, behind);
    const again: StoredResource | undefined = await store.read(key, [...parts, ...ids]);
    const own = new Set(ids);
    const texts = again === undefined ? [] : [...again.parts];
    const waiting = new Map(queue.map(({ id, body }) => [id, body]));
    for (const [id, body] of texts) if (own.has(id) && isAbout(body, behind)) waiting.set(id, body);
    const isSame = again?.record.seq === found.record.seq && again.record.epoch === found.record.epoch;
    const inOrder = new Map([...waiting].sort(byNumber));
    // With the newer record the listing would be taken for one of the same moment, and operations end twice or never.
    if (!isSame && tries === mostTries) return { found, waiting: inOrder };
    found = again && { record: again.record, parts: new Map(texts.filter(([id]) => !own.has(id))) };
    if (isSame) return { found, waiting: inOrder };
  }
}

export function operationsIn({ found, waiting }: ReadWithQueue): readonly OpenOperation[] {
  if (waiting.size === 0) return [];
  const state = found === undefined ? emptyState : stateOf(found.record);
  return Array.from(waiting.values(), (body) => queuedOperation(body, state));
}

function isAbout(body: string, parts: Behind): boolean {
  return parts.includes((JSON.parse(body) as OpenOperation).part ?? "");
}

async function queuedAbout(store: Store, key: string, parts: readonly string[]): Promise<readonly string[]> {
  const pages = await Promise.all(
    parts.map((part) => store.parts(key, { prefix: aboutPartPrefix(part), after: null, limit: mostAbout })),
  );
  return pages.flat().flatMap(({ body }) => queuePartIds(JSON.parse(body) as string));
}

async function allParts(store: Store, key: string, prefix: string): Promise<readonly StoredPart[]> {
  const all: StoredPart[] = [];
  for (;;) {
    const page = await store.parts(key, { prefix, after: all.at(-1)?.id ?? null, limit: pageSize });
    all.push(...page);
    if (page.length < pageSize) return all;
  }
}

/** By the number at the end of the id: held ones are among the others. */
function byNumber([one]: [string, string], [other]: [string, string]): number {
  return Number(one.slice(-16)) - Number(other.slice(-16));
}
