import type { Journal, Page } from "@osbert/journal";
import { PlatformError } from "../errors.js";
import type { Asking, Orphans, OrphanView } from "../platform.js";
import { brokerLane, keys } from "../records/keys.js";
import { type OrphanData, orphanLabels, orphanRecords } from "../records/orphan-record.js";

/** The ledger of what may be left at brokers. */
export class JournalOrphans implements Orphans {
  readonly #journal: Journal;

  constructor(journal: Journal) {
    this.#journal = journal;
  }

  async list({ broker, space, state, after, limit }: Parameters<Orphans["list"]>[0]): Promise<Page<OrphanView>> {
    const page = await this.#journal.find({
      prefix: broker === undefined ? keys.orphans : keys.orphansOf(broker),
      ...(after !== undefined && { after }),
      ...(limit !== undefined && { limit }),
    });
    const items = page.items.flatMap((resource) => {
      const { key, data } = orphanRecords.resource(resource);
      const isMeant = (space === undefined || data.space === space) && (state === undefined || data.state === state);
      return isMeant ? [{ ...data, key }] : [];
    });
    return { items, next: page.next };
  }

  /** One that waits for someone begins; one that is under way looks again now. */
  async mitigate(key: string, asking: Asking): Promise<OrphanView> {
    return this.#change(key, asking, (resource) => {
      const { data, open } = resource;
      if (data.state === "mitigated" || data.state === "dismissed")
        throw new PlatformError("too-late", `it is ${data.state} already`);
      const opened: OrphanData = { ...data, state: "open" };
      const [begun] = open;
      const next =
        begun === undefined
          ? { accept: [{ kind: "mitigate" as const, lane: brokerLane(data.broker) }] }
          : begun.held
            ? { release: [begun.id] }
            : { hurry: [begun.id] };
      return { change: { data: opened, labels: orphanLabels(opened), ...next }, data: opened };
    });
  }

  async dismiss(key: string, reason: string, asking: Asking): Promise<OrphanView> {
    if (reason.trim() === "" || reason.length > 500)
      throw new PlatformError("invalid", "to dismiss an orphan a reason of at most 500 characters is needed");
    return this.#change(key, asking, ({ data }, now) => {
      if (data.state === "mitigated") throw new PlatformError("too-late", "it is mitigated already");
      if (data.state === "dismissed") return { data };
      const by = asking.by.actor.subject;
      const dismissed: OrphanData = { ...data, state: "dismissed", endedAt: now, endedBy: by, endReason: reason };
      return {
        change: {
          data: dismissed,
          labels: orphanLabels(dismissed),
          entries: [{ kind: "dismissed", payload: { reason } }],
          cancel: { others: true, reason: `dismissed by ${by}` },
          gone: true,
        },
        data: dismissed,
      };
    });
  }

  async #change(
    key: string,
    { by }: Asking,
    decide: (resource: OrphanResource, now: number) => { readonly change?: OrphanChange; readonly data: OrphanData },
  ): Promise<OrphanView> {
    if (!key.startsWith(keys.orphans)) throw new PlatformError("not-found", "there is no such orphan");
    const change = orphanRecords.decide<OrphanView>((resource, now) => {
      if (resource === undefined) throw new PlatformError("not-found", "there is no such orphan");
      const decided = decide(resource, now);
      return {
        result: { ...decided.data, key },
        ...(decided.change !== undefined && { change: decided.change }),
      };
    });
    return (await this.#journal.transact(key, change, { by, open: "all" })).result;
  }
}

type OrphanResource = ReturnType<typeof orphanRecords.resource> & object;
type OrphanChange = Parameters<typeof orphanRecords.change>[0];
