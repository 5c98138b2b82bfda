import { setTimeout as sleep } from "node:timers/promises";
import { isJsonObject } from "@osbert/protocol";
import type { Watch, WatchChange, WatchOptions, WatchState } from "./cluster.js";
import { ClusterError } from "./cluster-error.js";
import type { ClusterEvent } from "./cluster-event.js";
import { type ClusterObject, type ObjectKind, type ObjectPlace, placeOf } from "./cluster-object.js";
import { followEvents } from "./follow-events.js";
import { differences, type Held, HeldObjects, isOther } from "./held-objects.js";
import { isKindKnown } from "./is-kind-known.js";
import { listPages } from "./list-pages.js";
import { readStatusEvent } from "./read-failure.js";
import { parseAnswer, readObject } from "./read-object.js";
import { LineTooLong } from "./split-lines.js";
import { type Transport, WentQuiet } from "./transport.js";
import { nextDelayMs, type WatchPace } from "./watch-pace.js";

export interface ObjectWatchParts {
  readonly transport: Transport;
  readonly pace: WatchPace;
  readonly random: () => number;
  readonly observe: (event: ClusterEvent) => void;
  /** It is closed. */
  readonly ended: () => void;
}

const defaultMost = 100_000;

/**
 * A copy of objects that follows the server: lists, then watches from the list's version on. What is held changes only by what the server says
 * of single objects, by a complete list, or because the server does not know the kind any more; never because something could not be read.
 */
export class ObjectWatch<Kept> implements Watch<Kept> {
  readonly started: Promise<void>;
  readonly #parts: ObjectWatchParts;
  readonly #kind: ObjectKind;
  readonly #options: WatchOptions<Kept>;
  readonly #closing = new AbortController();
  #markStarted: () => void = () => undefined;
  #isStarted = false;
  #held = new HeldObjects<Kept>();
  #state: WatchState = "starting";
  #why: string | null = null;
  /** From where on it is watched; `undefined`: a list is needed first. */
  #version: string | undefined;
  #failures = 0;
  #heardAtMs = Number.NEGATIVE_INFINITY;
  #behindTimer: NodeJS.Timeout | undefined;

  constructor(parts: ObjectWatchParts, kind: ObjectKind, options: WatchOptions<Kept>) {
    this.#parts = parts;
    this.#kind = kind;
    this.#options = options;
    this.started = new Promise((resolve) => {
      this.#markStarted = resolve;
    });
    void this.#run();
  }

  get state(): WatchState {
    return this.#state;
  }

  get why(): string | null {
    return this.#why;
  }

  get size(): number {
    return this.#held.size;
  }

  get(place: ObjectPlace): Kept | undefined {
    return this.#held.get({ ...place, namespace: this.#kind.namespaced ? place.namespace : "" })?.kept;
  }

  *values(namespace?: string): Generator<Kept, void> {
    for (const { kept } of this.#held.all(namespace)) yield kept;
  }

  close(): void {
    if (this.#closing.signal.aborted) return;
    this.#closing.abort();
    clearTimeout(this.#behindTimer);
    this.#markStarted();
    this.#parts.ended();
  }

  async #run(): Promise<void> {
    // Whoever opened it has it in hand before anything is told.
    await Promise.resolve();
    while (!this.#isClosed()) {
      try {
        if (this.#version === undefined) await this.#list();
        else await this.#follow(this.#version);
      } catch (error) {
        if (this.#isClosed()) return;
        await this.#pause(await this.#afterFailure(error));
      }
    }
  }

  /** Takes in a complete list, and tells what is different now. Until it is complete, what was held stays. */
  async #list(): Promise<void> {
    const { transport, pace } = this.#parts;
    const { namespace, labels, fields } = this.#options;
    const options = {
      ...(namespace === undefined ? {} : { namespace }),
      ...(labels === undefined ? {} : { labels }),
      ...(fields === undefined ? {} : { fields }),
      timeoutMs: pace.timeoutMs,
      signal: this.#closing.signal,
    };
    const fresh = new HeldObjects<Kept>();
    let version: string | undefined;
    for await (const page of listPages(transport, this.#kind, options)) {
      for (const object of page.objects) {
        const held = this.#keep(object);
        if (held !== undefined) fresh.set(held);
        if (fresh.size > this.#most()) throw new TooMany(this.#most());
      }
      version = page.resourceVersion;
    }
    if (this.#isClosed()) return;
    const old = this.#held;
    this.#held = fresh;
    this.#version = version;
    this.#heard();
    this.#begin();
    this.#tellAll(differences(old, fresh));
  }

  /** Takes in what the server tells on one connection. */
  async #follow(version: string): Promise<void> {
    const { transport, pace, random } = this.#parts;
    const { namespace, labels, fields } = this.#options;
    let isHeard = false;
    try {
      await followEvents(transport, pace, {
        kind: this.#kind,
        namespace,
        labels,
        fields,
        resourceVersion: version,
        watchMs: pace.watchMs * (0.8 + random() * 0.4),
        signal: this.#closing.signal,
        heard: () => {
          isHeard = true;
          this.#failures = 0;
          this.#heard();
        },
        event: (line) => {
          if (!this.#isClosed()) this.#takeEvent(line);
        },
      });
    } catch (error) {
      if (error instanceof ClusterError && error.cause instanceof LineTooLong) this.#version = undefined;
      // Until it broke, the connection was one.
      if (isHeard && !(error instanceof WentQuiet)) this.#heardAtMs = performance.now();
      throw error;
    }
    if (!isHeard) throw new ClusterError("unavailable", "the server ended the watch as it began");
    this.#heardAtMs = performance.now();
  }

  /** After an event that could not be taken in, what came is lost, and a list tells what is there now. */
  #takeEvent(line: string): void {
    const version = this.#version;
    this.#version = undefined;
    const { type, object } = parseAnswer(line);
    switch (String(type)) {
      case "ADDED":
      case "MODIFIED":
        this.#takeObject(readObject(this.#kind, object));
        break;
      case "DELETED":
        this.#takeRemoval(readObject(this.#kind, object));
        break;
      case "BOOKMARK":
        refuseEarlier(versionOf(object), version);
        break;
      case "ERROR":
        // Above all 410: the server does not remember what came since.
        throw readStatusEvent(object);
      default:
        throw new ClusterError("unavailable", "an event of an unknown type");
    }
    this.#version = versionOf(object) ?? version;
  }

  #takeObject(object: ClusterObject): void {
    const held = this.#keep(object);
    if (held === undefined) {
      this.#takeRemoval(object);
      return;
    }
    const old = this.#held.get(held.place);
    if (old === undefined && this.#held.size >= this.#most()) throw new TooMany(this.#most());
    this.#held.set(held);
    if (isOther(old, held)) this.#tell({ place: held.place, before: old?.kept, after: held.kept });
  }

  #takeRemoval(object: ClusterObject): void {
    const place = placeOf(object);
    const old = this.#held.get(place);
    if (old === undefined) return;
    this.#held.delete(place);
    this.#tell({ place, before: old.kept, after: undefined });
  }

  /** What becomes of the state, and how long to wait. */
  async #afterFailure(error: unknown): Promise<number> {
    const { pace, random } = this.#parts;
    const failure = error instanceof ClusterError ? error : new ClusterError("unavailable", null, { cause: error });
    const delayMs = nextDelayMs(pace, this.#failures, failure.retryAfterMs, random);
    const lookAgainMs = pace.lookAgainMs * (1 + random() / 4);
    this.#failures += 1;
    if (isListNeeded(failure)) this.#version = undefined;
    // Silence and forgetting are met with a list, at once; but who forgets all the time is not asked all the time.
    if (failure.status === 410) return this.#failures > 1 ? delayMs : 0;
    if (failure instanceof TooMany) {
      this.#answered("too many", failure.message);
      return lookAgainMs;
    }
    if (failure.failure === "forbidden") {
      this.#answered("forbidden", failure.message);
      return delayMs;
    }
    if (failure.failure === "no such kind" && (await this.#isKindGone())) {
      this.#forgetKind(failure.message);
      return lookAgainMs;
    }
    this.#notHeard(failure.message);
    return delayMs;
  }

  #forgetKind(why: string): void {
    if (this.#isClosed()) return;
    const old = this.#held;
    this.#held = new HeldObjects();
    this.#failures = 0;
    this.#answered("no such kind", why);
    this.#begin();
    this.#tellAll(differences(old, this.#held));
  }

  /** Anybody can answer 404; only an API server can list the kinds that it has. */
  async #isKindGone(): Promise<boolean> {
    const { transport, pace } = this.#parts;
    try {
      return !(await isKindKnown(transport, this.#kind, { timeoutMs: pace.timeoutMs, signal: this.#closing.signal }));
    } catch {
      return false;
    }
  }

  #heard(): void {
    this.#heardAtMs = performance.now();
    if (this.#version !== undefined) this.#become("current", null);
  }

  /** The server is there, and has said why there is nothing to be had. */
  #answered(state: WatchState, why: string): void {
    this.#heardAtMs = performance.now();
    this.#become(state, why);
  }

  /** What is held stays what it was; how old that may be is told after a while. */
  #notHeard(why: string): void {
    this.#why = why;
    if (this.#behindTimer !== undefined || !this.#isStarted || this.#state === "behind") return;
    const { behindAfterMs } = this.#parts.pace;
    const leftMs = this.#heardAtMs + behindAfterMs - performance.now();
    // After a long silence there is still one try before the alarm.
    this.#behindTimer = setTimeout(() => this.#become("behind", this.#why), Math.max(behindAfterMs / 4, leftMs));
  }

  #begin(): void {
    this.#isStarted = true;
    this.#markStarted();
  }

  #become(state: WatchState, why: string | null): void {
    clearTimeout(this.#behindTimer);
    this.#behindTimer = undefined;
    this.#why = why;
    if (state === this.#state || this.#isClosed()) return;
    this.#state = state;
    this.#parts.observe({ kind: "watch state changed", objects: this.#kind.plural, state, why });
    this.#tell(undefined);
  }

  /** `undefined`: it is not held. If `keep` throws, what was held stays: a mistake in the program removes nothing. */
  #keep(object: ClusterObject): Held<Kept> | undefined {
    const place = placeOf(object);
    try {
      const kept = this.#options.keep(object);
      return kept === undefined ? undefined : { place, version: object.metadata.resourceVersion ?? "", kept };
    } catch (error) {
      this.#parts.observe({ kind: "watch listener failed", objects: this.#kind.plural, error });
      return this.#held.get(place);
    }
  }

  #tellAll(changes: Iterable<WatchChange<Kept>>): void {
    for (const change of changes) this.#tell(change);
  }

  #tell(change: WatchChange<Kept> | undefined): void {
    if (this.#isClosed()) return;
    try {
      this.#options.changed?.(change);
    } catch (error) {
      this.#parts.observe({ kind: "watch listener failed", objects: this.#kind.plural, error });
    }
  }

  #most(): number {
    return this.#options.most ?? defaultMost;
  }

  #isClosed(): boolean {
    return this.#closing.signal.aborted;
  }

  async #pause(ms: number): Promise<void> {
    await sleep(ms, undefined, { signal: this.#closing.signal }).catch(() => undefined);
  }
}

class TooMany extends ClusterError {
  constructor(most: number) {
    super("unavailable", `there are more than ${most} objects`);
  }
}

/** A server that is behind what it has told was restored from a backup: it tells nothing of what is there until it has caught up. */
function refuseEarlier(told: string | undefined, known: string | undefined): void {
  if (Number(told) < Number(known)) throw new ClusterError("unavailable", "the server has gone back in time");
}

/**
 * Whatever the server has said against watching from this version on, a list tells more; but where it has asked for patience, or could not answer
 * at all, it may still remember. One that says nothing may have never heard of the version, because it was restored from a backup.
 */
function isListNeeded(failure: ClusterError): boolean {
  if (failure instanceof TooMany || failure instanceof WentQuiet) return true;
  if (/too large resource version/i.test(failure.message)) return true;
  return failure.status !== null && failure.status < 500 && failure.status !== 429;
}

function versionOf(object: unknown): string | undefined {
  const metadata = isJsonObject(object) && isJsonObject(object.metadata) ? object.metadata : {};
  return typeof metadata.resourceVersion === "string" && metadata.resourceVersion !== ""
    ? metadata.resourceVersion
    : undefined;
}
