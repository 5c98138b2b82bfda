import type { Store, StoredEntry, StoredPart, StoredRecord } from "@osbert/journal/store";

/** One resource with all that the store keeps of it. */
export interface DumpedResource {
  readonly record: StoredRecord;
  readonly entries: readonly StoredEntry[];
  readonly parts: readonly StoredPart[];
}

const page = 500;

/** Reads everything out of a store, a resource at a time. */
export async function* dumpOf(store: Store): AsyncGenerator<DumpedResource> {
  let after: string | null = null;
  for (;;) {
    const records = await store.find({ after, limit: page });
    for (const record of records) {
      const entries = await allOf<StoredEntry>((last) =>
        store.entries(record.key, { kind: "after", after: last?.seq ?? 0, limit: page }),
      );
      const parts = await allOf<StoredPart>((last) =>
        store.parts(record.key, { prefix: "", after: last?.id ?? null, limit: page }),
      );
      yield { record, entries, parts };
    }
    if (records.length < page) return;
    after = records.at(-1)?.key ?? null;
  }
}

async function allOf<Item>(next: (last: Item | undefined) => Promise<readonly Item[]>): Promise<readonly Item[]> {
  const items: Item[] = [];
  for (;;) {
    const found = await next(items.at(-1));
    items.push(...found);
    if (found.length < page) return items;
  }
}
