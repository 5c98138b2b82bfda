import type { Attribution, Journal } from "@osbert/journal";
import { type AdminDecision, configure, disable, drain, enable } from "../reconcile/admin-decisions.js";
import { identifySources } from "../reconcile/identify-sources.js";
import { isSameRank, type SourceRank, type StoredSource, sourceKey } from "../reconcile/records.js";
import type { Source } from "../sources/source.js";
import type { BundleSource } from "./bundle-source.js";
import { keptSources } from "./kept-sources.js";
import { byItself, sourceResource } from "./source-resource.js";

export interface ConfiguredSourcesPorts {
  readonly journal: () => Journal;
  /** What is stored of a source, as far as this process knows. */
  readonly stored: (key: string) => StoredSource | undefined;
  /** Writes what a decision comes to, and has the source looked at. */
  readonly decide: (
    key: string,
    decision: (stored: StoredSource) => AdminDecision,
    by: Attribution,
  ) => Promise<unknown>;
}

/** How long a source that this process lacks is left to whoever has it, until it is asked again whether anybody does. */
const disclaimEveryMs = 10 * 60_000;

/** The sources that this process is configured with, by the keys of their resources. They may be others while it runs. */
export class ConfiguredSources {
  readonly #ports: ConfiguredSourcesPorts;
  #sources: ReadonlyMap<string, BundleSource> = new Map();
  /** When this process has last drained a source that it lacks. */
  readonly #disclaimed = new Map<string, number>();

  constructor(ports: ConfiguredSourcesPorts) {
    this.#ports = ports;
  }

  get(key: string): BundleSource | undefined {
    return this.#sources.get(key);
  }

  get size(): number {
    return this.#sources.size;
  }

  /** Where a source is read, by its first name. `undefined`: this process is not configured with it. */
  sourceOf(identityName: string): Source | undefined {
    return this.get(sourceKey(identityName))?.source;
  }

  /** What a source is called now, or was when it was last configured. */
  nameOf(key: string): string {
    return this.get(key)?.name ?? this.#ports.stored(key)?.data.name ?? key;
  }

  /** Names of those that are to be read and have never been, to the end of their list. */
  unread(): readonly string[] {
    return [...this.#sources].flatMap(([key, { name }]) => {
      const data = this.#ports.stored(key)?.data;
      const isRead = data !== undefined && (data.firstComplete !== null || data.health.lastCompleteAt !== null);
      return isRead || data?.mode === "disabled" ? [] : [name];
    });
  }

  /** Keys of those that are stored as they are configured here, and that no reading has been tried of. */
  neverRead(): readonly string[] {
    return [...this.#sources].flatMap(([key, { generation }]) => {
      const data = this.#ports.stored(key)?.data;
      const isWanted = data?.mode === "active" && data.generation === generation && data.health.lastRunAt === null;
      return isWanted ? [key] : [];
    });
  }

  /** The first one that is so. */
  find(is: (source: BundleSource) => boolean): readonly [key: string, source: BundleSource] | undefined {
    return [...this.#sources].find(([, source]) => is(source));
  }

  /**
   * From now on it is these. Answers the keys of all sources that there are to follow, those among them that left. What is not another one
   * than before costs nothing. From its commit on, a source's readings under other settings do not count (F5-27); if one cannot be written,
   * those before hold, in the journal, too, as far as that can still be reached.
   */
  async configure(sources: readonly BundleSource[]): Promise<readonly string[]> {
    checkNames(sources);
    const named = sources.map(({ name, previousNames = [] }) => ({ name, previousNames }));
    const { identities, left } = identifySources(named, await keptSources(this.#ports.journal()));
    const before = this.#sources;
    const after = new Map(sources.map((source) => [sourceKey(identities.get(source.name) ?? source.name), source]));
    const changed = [...after].filter(([key, source]) => !isSame(before.get(key), source));
    this.#sources = after;
    try {
      for (const [key, source] of changed) await this.#write(key, source);
      for (const key of after.keys()) this.#disclaimed.delete(key);
      for (const identity of left) await this.disclaim(sourceKey(identity));
    } catch (error) {
      this.#sources = before;
      for (const [key] of changed) {
        const source = before.get(key);
        if (source !== undefined) await this.#write(key, source).catch(() => undefined);
      }
      throw error;
    }
    return [...after.keys(), ...left.map(sourceKey)];
  }

  /**
   * Replicas may have different sources for a while, in a roll-out or out of one. Who lacks a source drains it, and who has it claims it
   * at once: so it goes when nobody has it any more. That is asked anew now and then, because the last one to have it may end after
   * the others have started.
   */
  async claim(key: string): Promise<void> {
    const source = this.#sources.get(key);
    const data = this.#ports.stored(key)?.data;
    if (source !== undefined && data?.mode === "draining" && data.drainedBy === null) await this.#write(key, source);
  }

  async disclaim(key: string): Promise<void> {
    const now = this.#ports.journal().now();
    if (now - (this.#disclaimed.get(key) ?? Number.NEGATIVE_INFINITY) < disclaimEveryMs) return;
    this.#disclaimed.set(key, now);
    const decision = (stored: StoredSource) => drain(stored, { by: null, why: "the configuration lacks it" });
    await this.#ports.decide(key, decision, byItself);
  }

  /** The broker stops. */
  close(): void {
    this.#disclaimed.clear();
  }

  async #write(key: string, source: BundleSource): Promise<void> {
    const { name, generation, listing } = source;
    const rank = rankOf(source);
    const wanted = { name, identityName: key.slice(sourceKey("").length), generation, listing, rank };
    const { journal, decide } = this.#ports;
    const begin = sourceResource.decide((resource) => {
      const first = configure(undefined, wanted, { by: "the configuration" });
      return resource !== undefined || first.kind === "refused"
        ? { result: null }
        : { result: null, change: { data: first.change.data } };
    });
    await journal().transact(key, begin, { by: byItself });
    const decider = { by: "the configuration", why: "its settings say so", now: journal().now() };
    let isOther = false;
    const settle = (stored: StoredSource) => {
      isOther = stored.data.generation !== generation;
      return configure(stored, wanted, decider);
    };
    await decide(key, settle, byItself);
    // What a person has disabled stays so, until the settings say something else.
    if (source.enabled === false) await decide(key, (stored) => disable(stored, decider), byItself);
    else if (isOther) await decide(key, (stored) => enable(stored, decider), byItself);
  }
}

/** As the settings have it. Without any: a source of an earlier version that left them. */
export function rankOf({
  priority = 0,
  failover = false,
}: Pick<BundleSource, "priority" | "failover"> = {}): SourceRank {
  return { priority, failover };
}

function isSame(one: BundleSource | undefined, other: BundleSource): boolean {
  return (
    one !== undefined &&
    one.name === other.name &&
    one.generation === other.generation &&
    isSameRank(rankOf(one), rankOf(other))
  );
}

/** F5-25 */
export function checkNames(sources: readonly BundleSource[]): void {
  if (new Set(sources.map(({ name }) => name)).size < sources.length)
    throw new Error("two sources of bundles have the same name");
}
