import { LayeredMap } from "@osbert/broker";
import type { Journal, Json } from "@osbert/journal";
import { type SpecRecord, type StoredSource, specPart, specPrefix } from "../reconcile/records.js";
import { sharedTexts } from "../reconcile/shared-texts.js";
import { OneAtATime } from "./one-at-a-time.js";
import { type ChangedEntry, changedKind, sourceResource } from "./source-resource.js";

const partsAtOnce = 500;
const entriesAtOnce = 200;
const newestAtOnce = 10;
/** Behind by more entries than this, all specs are read: that is one walk, and not as many questions. */
const mostEntries = 2_000;

/**
 * What is stored of a source, in memory. It is as it was at an entry; `refresh` brings it up to the newest, and reads of the specs only
 * those that were changed since: a source of 15,000 specs of which one changes costs that one.
 */
export class SourceCopy {
  readonly key: string;
  readonly #journal: Journal;
  #seq = 0;
  #stored: StoredSource | undefined;
  #snapshotAt: number | null = null;
  readonly #reading = new OneAtATime(() => this.#read());

  constructor(journal: Journal, key: string) {
    this.#journal = journal;
    this.key = key;
  }

  /** As it was when it was last refreshed. `undefined`: there was none. */
  get stored(): StoredSource | undefined {
    return this.#stored;
  }

  /** When its snapshot became the present one; `null`: longer ago than was looked for. */
  get snapshotAt(): number | null {
    return this.#snapshotAt;
  }

  /** At least as new as the moment of this call. */
  async refresh(): Promise<StoredSource | undefined> {
    await this.#reading.run();
    return this.#stored;
  }

  async #read(): Promise<void> {
    const resource = sourceResource.resource(await this.#journal.read(this.key));
    if (resource === undefined) {
      this.#stored = undefined;
      this.#seq = 0;
      return;
    }
    const { data, seq } = resource;
    if (this.#stored !== undefined && seq === this.#seq) return;
    const changed = this.#stored === undefined ? undefined : await this.#changedSince(seq);
    const specs = changed === undefined ? await this.#readAll() : await this.#readChanged(changed);
    if (this.#stored?.data.snapshot !== data.snapshot) this.#snapshotAt = await this.#whenChanged(data.snapshot, seq);
    // What was written while specs were read is read once more next time: a record says all of its spec, so that does no harm.
    this.#stored = { data, specs };
    this.#seq = seq;
  }

  /** `undefined`: that cannot be told any more, because retention has taken entries, or because there are too many. */
  async #changedSince(seq: number): Promise<ReadonlySet<string> | undefined> {
    const changed = new Set<string>();
    for (let after = this.#seq; after < seq; ) {
      if (seq - after > mostEntries) return undefined;
      const entries = await this.#journal.entries(this.key, { after, limit: entriesAtOnce });
      if (entries[0]?.seq !== after + 1) return undefined;
      for (const entry of entries) {
        if (entry.seq !== after + 1) return undefined;
        after = entry.seq;
        if (entry.kind !== changedKind) continue;
        for (const spec of changedEntry(entry.payload).specs) changed.add(spec);
      }
    }
    return changed;
  }

  /** By the last entries: the first of those that have told this snapshot. Mostly it is among the newest, and entries may be large: some at a time. */
  async #whenChanged(snapshot: number, seq: number): Promise<number | null> {
    let at: number | null = null;
    for (let before = seq + 1; before > Math.max(1, seq - entriesAtOnce); ) {
      const entries = await this.#journal.entries(this.key, { before, limit: newestAtOnce });
      for (const { kind, payload, at: time } of entries) {
        if (kind !== changedKind) continue;
        if (changedEntry(payload).snapshot !== snapshot) return at ?? time;
        at = time;
      }
      before = entries.at(-1)?.seq ?? 1;
      if (before === 1) return at;
    }
    return null;
  }

  async #readChanged(changed: ReadonlySet<string>): Promise<ReadonlyMap<string, SpecRecord>> {
    const specs = new Map<string, SpecRecord | undefined>();
    const ids = [...changed];
    for (let from = 0; from < ids.length; from += partsAtOnce) {
      const wanted = ids.slice(from, from + partsAtOnce);
      const resource = sourceResource.resource(await this.#journal.read(this.key, wanted.map(specPart)));
      for (const id of wanted) {
        const record = resource?.parts.get(specPart(id));
        specs.set(id, record && sharedTexts(record));
      }
    }
    return LayeredMap.of(this.#stored?.specs).with(specs);
  }

  async #readAll(): Promise<ReadonlyMap<string, SpecRecord>> {
    const specs = new Map<string, SpecRecord>();
    for (let after: string | undefined; ; ) {
      const range = { limit: partsAtOnce, ...(after !== undefined && { after }) };
      const page = sourceResource.partsUnder(specPrefix, await this.#journal.parts(this.key, specPrefix, range));
      for (const { id, value } of page.items) specs.set(id.slice(specPrefix.length), sharedTexts(value));
      if (page.next === null) return LayeredMap.of(specs);
      after = page.next;
    }
  }
}

/** An entry of `changedKind`, as this program writes it. */
export function changedEntry(payload: Json): ChangedEntry {
  return payload as unknown as ChangedEntry;
}
