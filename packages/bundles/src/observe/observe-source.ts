import type { KnownRefs } from "../reconcile/known-digests.js";
import {
  type ChannelRef,
  type Observation,
  type ReadingProgress,
  type RefSeen,
  specId,
} from "../reconcile/observation.js";
import type { CompiledChannel, CompiledSelection } from "../selection/compile-selection.js";
import type { Digest, Source } from "../sources/source.js";
import { SourceError } from "../sources/source-error.js";
import { type BundleJudge, judgeBundle } from "./judge-bundle.js";
import { TextRevision } from "./text-revision.js";
import { TextShelf } from "./text-shelf.js";

export interface ObserveRequest extends BundleJudge {
  /** Of the run: the observation's id. */
  readonly id: string;
  readonly generation: string;
  readonly source: Source;
  readonly selection: CompiledSelection;
  readonly known: KnownRefs;
  readonly limits?: Partial<ObserveLimits>;
  /** Nobody wants the observation any more: it is not made up from what is there, it rejects. */
  readonly signal: AbortSignal;
  /** Told after each page of the list, and of each repository: for those who wait for a first reading. */
  readonly onProgress?: (progress: ReadingProgress) => void;
}

export interface ObserveLimits {
  /** Repositories that are looked at side by side. */
  readonly concurrency: number;
  /** Of the whole reading. What was not reached by then is unreadable. */
  readonly sourceMs: number;
  /** Of one ref. */
  readonly refMs: number;
  /** A source that asks to come again so soon is waited for. */
  readonly longestPauseMs: number;
  readonly pauses: number;
  readonly repositories: number;
  /** Characters of descriptions that are held in memory until they are committed; the next reading goes on. */
  readonly readLength: number;
}

export const defaultObserveLimits: ObserveLimits = {
  concurrency: 8,
  sourceMs: 10 * 60_000,
  refMs: 60_000,
  longestPauseMs: 10_000,
  pauses: 5,
  repositories: 100_000,
  readLength: 64 * 1_048_576,
};

/**
 * Reads a source once. It asks for the digest of each ref, and reads only what has one that is not known. Whatever goes wrong is part of
 * the observation, and none of it says that something is gone: one ref that cannot be read makes it partial, a list that cannot be read to
 * its end makes it failed, with what was listed until then (F5-7, 11). All of it is bounded in time, in requests and in memory.
 */
export async function observeSource(request: ObserveRequest): Promise<Observation> {
  const { signal } = request;
  const limits = { ...defaultObserveLimits, ...request.limits };
  const time = timeFor(limits.sourceMs, signal);
  const deadline = new Deadline(time.signal);
  try {
    return await observeUntil(deadline, request, limits);
  } finally {
    deadline.end();
    time.end();
  }
}

async function observeUntil(deadline: Deadline, request: ObserveRequest, limits: ObserveLimits): Promise<Observation> {
  const { source, selection, known, parserVersion, signal, onProgress = () => undefined } = request;
  const listing = await listRepositories(source, limits, deadline.signal, (done) => onProgress({ done, of: null }));
  signal.throwIfAborted();
  const reading = new Reading(request, limits, deadline);
  const wanted = [...listing.repositories].filter((repository) => selection.refusal(repository) === null);
  let done = 0;
  onProgress({ done, of: wanted.length });
  await inParallel(wanted, limits.concurrency, async (repository) => {
    await reading.repository(repository, selection.channels(repository));
    done += 1;
    onProgress({ done, of: wanted.length });
  });
  signal.throwIfAborted();
  // What is known and not wanted any more: the configuration says so, whatever the list says (F5-21, 68).
  for (const [spec, { ref }] of known) {
    const why = notWanted(selection, ref);
    if (why !== null) reading.seen(ref, spec, { kind: "filtered", why });
  }
  await reading.judgeDenied();
  signal.throwIfAborted();
  const refs = reading.refs;
  let partial = false;
  for (const { seen } of refs.values()) partial ||= seen.kind === "unreadable";
  return {
    id: request.id,
    generation: request.generation,
    completeness: listing.error !== null ? "failed" : partial ? "partial" : "complete",
    refs,
    error: listing.error ?? reading.firstError,
    retryAfterMs: reading.retryAfterMs ?? listing.retryAfterMs,
    parserVersion,
  };
}

interface Listing {
  readonly repositories: ReadonlySet<string>;
  /** `null`: it was read to its end. */
  readonly error: string | null;
  readonly retryAfterMs: number | null;
}

async function listRepositories(
  source: Source,
  limits: ObserveLimits,
  deadline: AbortSignal,
  listed: (count: number) => void,
): Promise<Listing> {
  const repositories = new Set<string>();
  try {
    const pages = source.repositories(deadline)[Symbol.asyncIterator]();
    for (;;) {
      const page = await within(pages.next(), deadline);
      if (page.done) break;
      for (const repository of page.value) repositories.add(repository);
      listed(repositories.size);
      if (repositories.size > limits.repositories)
        throw new SourceError("endless pages", "the list of repositories", `more than ${limits.repositories}`);
    }
    return { repositories, error: null, retryAfterMs: null };
  } catch (error) {
    return { repositories, error: sentenceOf(error), retryAfterMs: retryAfterOf(error) };
  }
}

/** Why a ref that is known is not wanted; `null`: it is. */
function notWanted(selection: CompiledSelection, { repository, channel }: ChannelRef): string | null {
  const refusal = selection.refusal(repository);
  if (refusal !== null) return refusal;
  const wanted = selection.channels(repository).some((each) => each.channel === channel);
  return wanted ? null : `${channel === "" ? "the default tag" : channel} is not configured any more`;
}

/** One reading: what was seen so far, and how the source behaves. */
class Reading {
  readonly refs = new Map<string, { readonly ref: ChannelRef; readonly seen: RefSeen }>();
  retryAfterMs: number | null = null;
  firstError: string | null = null;
  readonly #request: ObserveRequest;
  readonly #limits: ObserveLimits;
  readonly #deadline: Deadline;
  /** Refs that the source says it does not have, or does not show: see `judgeDenied`. */
  readonly #denied: {
    readonly ref: ChannelRef;
    readonly spec: string;
    readonly why: string;
    readonly hidden: boolean;
  }[] = [];
  /** The source asks to be left alone for longer than anybody waits. */
  #closed: string | null = null;
  #pause: Promise<void> | null = null;
  #pauses = 0;
  #resolved = 0;
  #readLength = 0;
  readonly #shelf = new TextShelf();

  constructor(request: ObserveRequest, limits: ObserveLimits, deadline: Deadline) {
    this.#request = request;
    this.#limits = limits;
    this.#deadline = deadline;
  }

  seen(ref: ChannelRef, spec: string, seen: RefSeen): void {
    if (seen.kind === "unreadable") this.firstError ??= `${spec}: ${seen.why}`;
    this.refs.set(spec, { ref, seen });
  }

  /** Tags are asked for once, and only if a channel is a range. */
  async repository(repository: string, channels: readonly CompiledChannel[]): Promise<void> {
    let tags: Promise<readonly string[] | null> | null = null;
    const tagsOf = (signal: AbortSignal) => {
      tags ??= this.#request.source.tags(repository, signal);
      return tags;
    };
    for (const channel of channels) {
      const known = this.#request.known.get(specId({ repository, channel: channel.channel }));
      const ref = { repository, channel: channel.channel, tag: channel.kind === "tag" ? channel.tag : "" };
      // Where no tag is found, the one that it had says more than none.
      await this.#look({ ...ref, tag: ref.tag || (known?.ref.tag ?? "") }, (signal) => {
        if (channel.kind === "tag") return channel.tag;
        return tagsOf(signal).then((listed) => (listed === null ? null : channel.pick(listed)));
      });
    }
  }

  async #look(ref: ChannelRef, tagOf: (signal: AbortSignal) => Promise<string | null> | string): Promise<void> {
    const spec = specId(ref);
    for (;;) {
      await this.#pause;
      if (this.#closed !== null) return this.seen(ref, spec, { kind: "unreadable", why: this.#closed });
      if (this.#deadline.signal.aborted) return this.seen(ref, spec, { kind: "unreadable", why: outOfTime });
      const time = this.#deadline.timeFor(this.#limits.refMs);
      const { signal } = time;
      try {
        const found = tagOf(signal);
        const tag = typeof found === "string" ? found : await within(found, signal);
        if (tag === null) return this.#deny(ref, spec, "the source has no such tag", false);
        return await within(this.#lookAt({ ...ref, tag }, spec, signal), signal);
      } catch (error) {
        if (error instanceof SourceError && deniedFailures.has(error.failure))
          return this.#deny(ref, spec, error.message, true);
        if (error instanceof SourceError && error.failure === "rate limited" && this.#waits(error)) continue;
        const why = signal.aborted && !this.#deadline.signal.aborted ? "it took too long to read" : sentenceOf(error);
        return this.seen(ref, spec, { kind: "unreadable", why });
      } finally {
        time.end();
      }
    }
  }

  async #lookAt(ref: ChannelRef, spec: string, signal: AbortSignal): Promise<void> {
    const { source, known } = this.#request;
    const digest = await source.resolve({ repository: ref.repository, tag: ref.tag }, signal);
    // One that took too long has been told as unreadable, and stays so.
    if (signal.aborted) return;
    if (digest === null) return this.#deny(ref, spec, "the source has no such tag", false);
    this.#resolved += 1;
    // Before all else: a key that was taken out of the settings counts for what is known, too.
    const unsigned = await this.#unsigned(ref.repository, digest, signal);
    if (signal.aborted) return;
    if (unsigned !== null) return this.seen(ref, spec, unsigned);
    if (known.get(spec)?.digests.includes(digest)) return this.seen(ref, spec, { kind: "same", digest });
    if (this.#readLength > this.#limits.readLength)
      return this.seen(ref, spec, {
        kind: "unreadable",
        why: "there is more than one reading takes in; the next goes on",
      });
    const read = await source.read(ref.repository, digest, signal);
    if (signal.aborted) return;
    if (read.kind === "bundle") this.#readLength += read.text.length;
    const found = judgeBundle(read, digest, this.#request);
    if (found.kind !== "read") this.seen(ref, spec, found);
    else this.seen(ref, spec, { kind: "read", revision: new TextRevision(found.revision, this.#shelf) });
  }

  /** F5-38. A registry that does not show signatures has still shown the ref: that is not gone. */
  async #unsigned(repository: string, digest: Digest, signal: AbortSignal): Promise<RefSeen | null> {
    try {
      const why = (await this.#request.source.signatureProblem?.(repository, digest, signal)) ?? null;
      return why === null ? null : { kind: "unsigned", digest, why };
    } catch (error) {
      if (!(error instanceof SourceError && deniedFailures.has(error.failure))) throw error;
      return { kind: "unreadable", why: error.message };
    }
  }

  #deny(ref: ChannelRef, spec: string, why: string, hidden: boolean): void {
    this.#denied.push({ ref, spec, why, hidden });
  }

  /**
   * F5-15: many registries say "not there" where they mean "not for you". A ref that was there before is believed to be gone only if the
   * source answers at all and shows something else; of a source with one bundle, "not there" has to do. What was never there is told as it
   * is: nothing hangs on it.
   */
  async judgeDenied(): Promise<void> {
    if (this.#denied.length === 0) return;
    const alive = await this.#probed();
    // It is counted when it is asked for, and there may be as many that are denied.
    const isOnlyOne = this.#request.known.size === 1;
    for (const { ref, spec, why, hidden } of this.#denied) {
      const wasThere = this.#request.known.get(spec) !== undefined;
      const only = !hidden && isOnlyOne;
      if (!wasThere && !hidden) this.seen(ref, spec, { kind: "absent" });
      else if (wasThere && alive === null && (this.#resolved > 0 || only)) this.seen(ref, spec, { kind: "absent" });
      else this.seen(ref, spec, { kind: "unreadable", why: alive ?? why });
    }
  }

  /** Why the source does not answer; `null`: it does. */
  async #probed(): Promise<string | null> {
    if (this.#closed !== null) return this.#closed;
    const time = this.#deadline.timeFor(this.#limits.refMs);
    try {
      await within(this.#request.source.probe(time.signal), time.signal);
      return null;
    } catch (error) {
      return sentenceOf(error);
    } finally {
      time.end();
    }
  }

  /** Whether it is tried again after the pause that the source asks for. All wait together. */
  #waits(error: SourceError): boolean {
    const afterMs = error.retryAfterMs ?? this.#limits.longestPauseMs;
    if (this.#pause !== null) return true;
    if (afterMs > this.#limits.longestPauseMs || this.#pauses >= this.#limits.pauses) {
      this.retryAfterMs = Math.max(this.retryAfterMs ?? 0, afterMs);
      this.#closed = error.message;
      return false;
    }
    this.#pauses += 1;
    this.#pause = elapsed(afterMs, this.#deadline.signal).then(() => {
      this.#pause = null;
    });
    return true;
  }
}

const outOfTime = "the time for reading the source was over";

/** With these a registry may say that a ref is gone, or that it is not shown. */
const deniedFailures: ReadonlySet<string> = new Set(["unauthorized", "forbidden", "not found"]);

/** Only a SourceError is known to hold no credentials. */
function sentenceOf(error: unknown): string {
  if (error instanceof SourceError) return error.message;
  if (error instanceof Error && (error.name === "TimeoutError" || error.name === "AbortError")) return outOfTime;
  return `the source could not be read (${error instanceof Error ? error.name : "unknown"})`;
}

function retryAfterOf(error: unknown): number | null {
  return error instanceof SourceError ? error.retryAfterMs : null;
}

/** Also where a source does not heed its signal: nobody waits for it longer. */
function within<Value>(promise: Promise<Value>, signal: AbortSignal): Promise<Value> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason instanceof Error ? signal.reason : new Error("it was stopped"));
    if (signal.aborted) abort();
    signal.addEventListener("abort", abort, { once: true });
    void promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
  });
}

/** Whoever has it ends it, so that 15,000 refs leave no timers and no listeners behind. */
interface Time {
  readonly signal: AbortSignal;
  end(): void;
}

/**
 * The time of a whole reading, and those of its refs, which end with it. They are in places that are used again, and do not listen to its signal each: a
 * listener that was taken away still refers to its neighbours, so that as soon as one is old, all that follow stay, with their requests and answers, until
 * the whole heap is looked through.
 */
class Deadline {
  readonly signal: AbortSignal;
  readonly #places: (AbortController | null)[] = [];
  readonly #abort = () => {
    for (const controller of this.#places) controller?.abort(this.signal.reason);
  };

  constructor(signal: AbortSignal) {
    this.signal = signal;
    signal.addEventListener("abort", this.#abort, { once: true });
  }

  end(): void {
    this.signal.removeEventListener("abort", this.#abort);
  }

  timeFor(ms: number): Time {
    const controller = new AbortController();
    const timer = setTimeout(() => controller.abort(tookTooLong()), ms);
    const free = this.#places.indexOf(null);
    const place = free === -1 ? this.#places.length : free;
    this.#places[place] = controller;
    if (this.signal.aborted) controller.abort(this.signal.reason);
    const end = () => {
      clearTimeout(timer);
      if (this.#places[place] === controller) this.#places[place] = null;
    };
    return { signal: controller.signal, end };
  }
}

function tookTooLong(): DOMException {
  return new DOMException("it took too long", "TimeoutError");
}

/** A signal that ends with another, or after its time. */
function timeFor(ms: number, outer: AbortSignal): Time {
  const controller = new AbortController();
  const abort = () => controller.abort(outer.reason);
  const timer = setTimeout(() => controller.abort(tookTooLong()), ms);
  outer.addEventListener("abort", abort, { once: true });
  if (outer.aborted) abort();
  const end = () => {
    clearTimeout(timer);
    outer.removeEventListener("abort", abort);
  };
  return { signal: controller.signal, end };
}

function elapsed(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal.addEventListener("abort", end, { once: true });
    if (signal.aborted) end();
  });
}

async function inParallel<Item>(
  items: readonly Item[],
  concurrency: number,
  act: (item: Item) => Promise<void>,
): Promise<void> {
  let next = 0;
  const worker = async () => {
    while (next < items.length) {
      const item = items[next] as Item;
      next += 1;
      await act(item);
    }
  };
  await Promise.all(Array.from({ length: Math.min(concurrency, items.length) }, worker));
}
