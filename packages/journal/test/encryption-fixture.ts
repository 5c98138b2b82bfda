import { type KeyRing, newKey, parseKeyRing } from "../src/encryption/index.js";
import type { Store, StoredEntry, StoredPart, StoredRecord } from "../src/store.js";

/** Lines of keys, made once: the same id is the same key in all rings of a test file. */
const lines = new Map<string, string>();

/** A ring of keys with these ids, the first one active. An id with a `'` behind it has other bytes than without. */
export function ringOf(...ids: readonly string[]): KeyRing {
  const line = (name: string) => {
    const made = lines.get(name) ?? newKey(name.replace("'", ""));
    lines.set(name, made);
    return made;
  };
  return parseKeyRing(ids.map(line).join("\n"));
}

/** Everything that a store holds of its resources, as it is stored. */
export interface Contents {
  readonly record: StoredRecord;
  readonly parts: readonly StoredPart[];
  readonly entries: readonly StoredEntry[];
}

/** All resources but the register of keys. */
export async function contentsOf(store: Store): Promise<readonly Contents[]> {
  const records = await store.find({ after: null, limit: 10_000 });
  return Promise.all(
    records
      .filter(({ key }) => key !== "osbert.keys")
      .map(async (record) => ({
        record,
        parts: await store.parts(record.key, { prefix: "", after: null, limit: 10_000 }),
        entries: await store.entries(record.key, { kind: "after", after: 0, limit: 10_000 }),
      })),
  );
}

/** All texts of these resources. */
export function textsOf(contents: readonly Contents[]): readonly string[] {
  return contents.flatMap(({ record, parts, entries }) => [
    record.state,
    ...parts.map(({ body }) => body),
    ...entries.map(({ body }) => body),
  ]);
}

/** How many texts there are under each key; `plain` for those that are not encrypted. */
export function keysUsed(texts: readonly string[]): Readonly<Record<string, number>> {
  const used: Record<string, number> = {};
  for (const text of texts) {
    const id = /^osbert-enc:1:([^:]+):[A-Za-z0-9_-]+$/.exec(text)?.[1] ?? "plain";
    used[id] = (used[id] ?? 0) + 1;
  }
  return used;
}
