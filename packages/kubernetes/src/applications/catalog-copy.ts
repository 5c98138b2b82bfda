import { setTimeout as sleep } from "node:timers/promises";
import type { Followed, Journal, Json } from "@osbert/journal";
import {
  type ApplicationRecord,
  applicationPrefix,
  type CatalogData,
  catalogKey,
  catalogResource,
  emptyCatalog,
  type GrantRecord,
  grantPrefix,
  type StoredCatalog,
} from "./catalog-records.js";

const partsAtOnce = 200;
/** After a change that could not be taken in. */
const againMs = 1_000;

/** What is kept of applications and grants, in memory, as new as the last change that any process has committed. */
export class CatalogCopy {
  readonly #journal: Journal;
  readonly #changed: (before: StoredCatalog) => void;
  readonly #closing = new AbortController();
  #followed: Followed<Json> | undefined;
  #stored: StoredCatalog = { data: emptyCatalog, applications: new Map(), grants: new Map() };
  #reading: Promise<void> = Promise.resolve();

  /** `changed` is told of every change, after it was taken in. It must not throw. */
  constructor(journal: Journal, changed: (before: StoredCatalog) => void) {
    this.#journal = journal;
    this.#changed = changed;
  }

  get stored(): StoredCatalog {
    return this.#stored;
  }

  /** When this resolves, the copy has what was stored when it was asked for. */
  async open(): Promise<void> {
    this.#followed = await this.#journal.followed(catalogKey, (data: Json): Json => data);
    this.#followed.onChange(() => void this.#takeIn());
    await this.refresh();
  }

  /** At least as new as the moment of this call. */
  async refresh(): Promise<StoredCatalog> {
    const reading = this.#reading.catch(() => undefined).then(() => this.#read());
    this.#reading = reading;
    await reading;
    return this.#stored;
  }

  close(): void {
    this.#closing.abort();
    this.#followed?.close();
  }

  async #takeIn(): Promise<void> {
    const { signal } = this.#closing;
    while (!signal.aborted) {
      try {
        await this.refresh();
        return;
      } catch {
        await sleep(againMs, undefined, { signal, ref: false }).catch(() => undefined);
      }
    }
  }

  async #read(): Promise<void> {
    const resource = catalogResource.resource(await this.#journal.read(catalogKey));
    const data = resource?.data ?? emptyCatalog;
    const before = this.#stored;
    if (data.snapshot === before.data.snapshot || this.#closing.signal.aborted) return;
    const changed = partsSince(data, before.data.snapshot);
    const applications = new Map(changed === undefined ? [] : before.applications);
    const grants = new Map(changed === undefined ? [] : before.grants);
    if (changed === undefined) {
      for await (const [id, value] of this.#all(applicationPrefix))
        applications.set(id.slice(applicationPrefix.length), value as ApplicationRecord);
      for await (const [id, value] of this.#all(grantPrefix)) grants.set(id, value as GrantRecord);
    } else {
      for (let from = 0; from < changed.length; from += partsAtOnce)
        await this.#some(changed.slice(from, from + partsAtOnce), applications, grants);
    }
    // What was written while parts were read is read once more next time: a record says all of its part.
    this.#stored = { data, applications, grants };
    this.#changed(before);
  }

  async *#all(prefix: typeof applicationPrefix | typeof grantPrefix) {
    for (let after: string | undefined; ; ) {
      const range = { limit: partsAtOnce, ...(after !== undefined && { after }) };
      const { items, next } = await this.#journal.parts(catalogKey, prefix, range);
      for (const { id, value } of items) yield [id, value as unknown] as const;
      if (next === null) return;
      after = next;
    }
  }

  async #some(ids: readonly string[], applications: Map<string, ApplicationRecord>, grants: Map<string, GrantRecord>) {
    const parts = (await this.#journal.read(catalogKey, ids))?.parts ?? new Map<string, unknown>();
    for (const id of ids) {
      const value: unknown = parts.get(id);
      if (id.startsWith(applicationPrefix)) {
        const name = id.slice(applicationPrefix.length);
        if (value === undefined) applications.delete(name);
        else applications.set(name, value as ApplicationRecord);
      } else if (value === undefined) grants.delete(id);
      else grants.set(id, value as GrantRecord);
    }
  }
}

/** `undefined`: it is so long ago that nobody knows. */
function partsSince({ snapshot, recent }: CatalogData, since: number): readonly string[] | undefined {
  if (since === 0) return undefined;
  const later = recent.filter((commit) => commit.snapshot > since);
  if (later.length !== snapshot - since) return undefined;
  return [...new Set(later.flatMap(({ parts }) => parts))];
}

const mostRecent = 50;
const mostRecentParts = 2_000;

/** The data after a commit that changes these parts. */
export function nextData(before: CatalogData, parts: readonly string[], more: Partial<CatalogData>): CatalogData {
  const snapshot = before.snapshot + 1;
  const recent = [...before.recent, { snapshot, parts }].slice(-mostRecent);
  let count = recent.reduce((sum, commit) => sum + commit.parts.length, 0);
  while (count > mostRecentParts && recent.length > 0) count -= recent.shift()?.parts.length ?? 0;
  return { ...before, ...more, snapshot, recent };
}
