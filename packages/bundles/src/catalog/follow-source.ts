import { type Journal, RetryLater, type TypedKind, type TypedOperation } from "@osbert/journal";
import { asDeleted } from "../reconcile/known-digests.js";
import { drainedObservation, reconcile } from "../reconcile/next-state.js";
import type { Observation, ReadingProgress } from "../reconcile/observation.js";
import type { StoredSource } from "../reconcile/records.js";
import { defaultRules, type Rules } from "../reconcile/rules.js";
import type { SourceChange } from "../reconcile/source-change.js";
import { useToAsk } from "../reconcile/use-to-ask.js";
import { readingId } from "./ask-for-reading.js";
import { inUse } from "./in-use.js";
import type { SourceCopy } from "./source-copy.js";
import type { SourceReadings } from "./source-readings.js";
import { followKind, type Relief, type SourceShape } from "./source-resource.js";
import { writeSource } from "./write-source.js";

/** A source as the operation that follows it needs it. */
export interface FollowedSource {
  /** Of its configuration: what was read with another one does not count. */
  readonly generation: string;
  /** Whether it has a list that can lack something; what is pushed has none (F5-64). */
  readonly listing: boolean;
  readonly rules: Rules;
  /** From the end of one reading to the next. */
  readonly intervalMs: number;
  /** Reads it. Whatever goes wrong is in the observation; it throws only when the signal ends it. */
  readonly observe: (stored: StoredSource, reading: ReadingRequest) => Promise<Observation>;
}

export interface ReadingRequest {
  /** The observation's id. */
  readonly id: string;
  readonly signal: AbortSignal;
  readonly onProgress: (progress: ReadingProgress) => void;
}

export interface FollowPorts {
  readonly journal: () => Journal;
  /** By the key of its resource. `undefined`: this process is not configured with it. */
  readonly source: (key: string) => FollowedSource | undefined;
  /** Configures it again, if another process has drained it only because that one lacks it. */
  readonly claim: (key: string) => Promise<void>;
  /** Of one that this process lacks: drains it, now and then, to see whether another process still has it and claims it. */
  readonly disclaim: (key: string) => Promise<void>;
  readonly copy: (key: string) => SourceCopy;
  /** Specs of a source whose current revision the store has lost: they are read again. */
  readonly unstored: (key: string) => ReadonlySet<string>;
  readonly random: () => number;
  readonly readings: SourceReadings;
  /** Told of every reading, also of those that change nothing: when what it changes is committed, or could not be. */
  readonly read: (key: string, observation: Observation, tookMs: number) => void;
  readonly reading: (key: string, progress: ReadingProgress) => void;
  readonly changed: (key: string, change: SourceChange) => void;
}

/** After a reading that failed: growing, with chance, and never sooner than the source has asked for. */
const failed = { firstMs: 5_000, mostMs: 600_000 };
/** What is not read here may be read elsewhere, or soon. */
const elsewhereMs = 30_000;

/** Then another operation goes on: a journal keeps all entries of one that is open, and this one would be for years. */
const relievedAfterMs = 24 * 60 * 60 * 1_000;
/** What a person has cancelled, or no journal could keep, is begun again after so long. */
const failedAgainMs = 60_000;

/**
 * The operation that each source has for as long as it is followed: it reads the source, reconciles, and sleeps. It is the journal's
 * business that one process does it, that another goes on when that dies, and that one which comes late changes nothing (F5-71, 74, 75).
 *
 * After a day it is relieved when its next reading is due, and before it reads: the next operation begins with that reading at once. So who has
 * asked for a reading gets one that began afterwards, in whichever of the two commits his word came.
 */
export function followOperation(ports: FollowPorts): TypedKind<SourceShape, typeof followKind> {
  return {
    deadlineMs: null,
    run: (operation) =>
      operation.poll("reading", ({ signal }) => followOnce(ports, operation, signal), { everyMs: elsewhereMs }),
    settle: ({ data }, _operation, outcome) => {
      if (outcome.kind !== "succeeded") return { accept: [{ kind: followKind, delayMs: failedAgainMs }] };
      if (outcome.result !== null) return { accept: [{ kind: followKind, input: outcome.result }] };
      // It was empty and drained when the operation ended. Who has configured it since counts on somebody who follows.
      return data?.mode === "active" ? { accept: [{ kind: followKind }] } : {};
    },
  };
}

/** Answers when there is nothing left to follow, or another one is to go on; throws RetryLater for the next reading. */
async function followOnce(
  ports: FollowPorts,
  operation: TypedOperation<SourceShape, typeof followKind>,
  signal: AbortSignal,
): Promise<Relief | null> {
  const { key } = operation;
  const journal = ports.journal();
  const id = (operation.attempt === 1 && operation.input?.reading) || readingId(operation.id, operation.attempt);
  const source = ports.source(key);
  const copy = ports.copy(key);
  const stored = await copy.refresh();
  if (stored === undefined) return null;
  if (journal.now() - operation.acceptedAt >= relievedAfterMs) return { reading: id };
  const { mode, generation, drainedBy } = stored.data;
  if (mode === "disabled") throw later("the source is disabled", elsewhereMs);
  // Replicas may be configured differently for a while; the one that was configured last reads.
  if (mode === "active" && source?.generation !== generation) {
    if (source === undefined) await ports.disclaim(key);
    throw later("the source is configured differently here", elsewhereMs);
  }
  if (mode === "draining" && drainedBy === null && source !== undefined) {
    await ports.claim(key);
    throw later("the source is configured here", elsewhereMs);
  }
  const { readings } = ports;
  const began = journal.now();
  const onProgress = (progress: ReadingProgress) => {
    if (readings.progress(key, progress)) ports.reading(key, progress);
  };
  const unstored = ports.unstored(key);
  const isRead = mode !== "draining" && source !== undefined;
  const observation = isRead
    ? await source.observe(asDeleted(stored, unstored), { id, signal, onProgress }).finally(() => readings.ended(key))
    : drainedObservation(stored.data, id);
  const tookMs = journal.now() - began;
  const rules = source?.rules ?? defaultRules;
  const write = (decide: Parameters<typeof operation.change>[0], parts: readonly string[]) =>
    operation.change(decide, { parts });
  let seen: (() => void) | undefined;
  try {
    const change = await writeSource(copy, write, async (present) => {
      const known = readings.upToDate(key, present);
      const ask = useToAsk(known, observation, rules);
      const facts = { rules, now: journal.now(), inUse: await inUse(journal, ask), unstored };
      const next = reconcile(known, observation, facts);
      seen = () => readings.saw(key, present.data.health, next.data.health);
      return next;
    });
    // Only now: who is overtaken decides anew, and must not count this reading twice.
    seen?.();
    if (change !== undefined) ports.changed(key, change);
  } finally {
    if (isRead) ports.read(key, observation, tookMs);
  }
  const after = copy.stored;
  if (after?.data.mode === "draining" && isEmpty(after)) return null;
  throw later("until the next reading", pauseMs(observation, after, source?.intervalMs ?? elsewhereMs, ports.random));
}

function later(why: string, afterMs: number): RetryLater {
  return new RetryLater(why, { afterMs });
}

/** Between readings there is some chance, so that sources of one interval do not come all at once (F3). */
function pauseMs(
  { completeness, retryAfterMs }: Observation,
  stored: StoredSource | undefined,
  intervalMs: number,
  random: () => number,
): number {
  const failures = stored?.data.health.consecutiveFailures ?? 0;
  const grown = Math.min(failed.mostMs, failed.firstMs * 2 ** Math.min(20, Math.max(0, failures - 1)));
  const ms = completeness === "failed" ? Math.min(grown, intervalMs) : intervalMs;
  return Math.max(ms * (0.9 + random() / 5), retryAfterMs ?? 0);
}

/** Nothing of it is left but what is remembered of its ids. */
function isEmpty({ specs }: StoredSource): boolean {
  return [...specs.values()].every(({ kind }) => kind === "deleted");
}
