import type { JsonObject } from "@osbert/protocol";
import type { Action, BundleSpec } from "../formats/bundle-spec.js";
import type { Artifact } from "../sources/source.js";

/** One run of one action of a bundle. */
export interface Job {
  /** Of the operation and its action: the same over attempts and restarts. Letters, digits and dashes, at most 100. */
  readonly id: string;
  readonly action: Action;
  readonly spec: BundleSpec;
  readonly artifact: Artifact;
  /** What the bundle is given: as a file or on standard input, never on a command line. */
  readonly input: JsonObject;
  /**
   * The operator's secrets that this bundle may have. They are in the input already; a classic bundle also finds them as files,
   * `/etc/apb-secrets/apb-NAME/KEY`. Nothing that outlives the run may hold them, and no log may show them.
   */
  readonly secrets?: JobSecrets;
  readonly limits: JobLimits;
  /** Whose work it is. `null`: of nobody but who started it. */
  readonly operation: JobOperation | null;
}

/** An operation of the journal: when that is over, its jobs have nobody to run for. */
export interface JobOperation {
  /** Of its resource. */
  readonly key: string;
  readonly id: string;
}

export interface KnownJob {
  readonly id: string;
  readonly operation: JobOperation | null;
}

/** Texts by their keys, by the names of the secrets. */
export type JobSecrets = Readonly<Record<string, Readonly<Record<string, string>>>>;

export interface JobLimits {
  readonly timeoutMs: number;
  readonly memoryBytes: number;
  /** At a time. */
  readonly processes: number;
  readonly cpuSeconds: number;
  /** Of all that it prints. What is beyond ends it. */
  readonly outputBytes: number;
  /** The bundle asked for it and the operator allows it. */
  readonly network: boolean;
}

/**
 * How far a job is. `unknown`: nothing was ever started under this id, or its traces are gone; that is neither success nor failure. `lost`:
 * it was started, it does not run any more, and nobody knows how it ended: a machine that was switched off.
 */
export type JobState =
  | { readonly kind: "unknown" }
  | { readonly kind: "running" }
  | {
      readonly kind: "ended";
      readonly exitCode: number;
      /**
       * `disk`: what it printed could not be kept, because the disk of the runner is full. `start`: it never ran, because what runs it could not start
       * it; the log says why.
       */
      readonly cause: "exit" | "timeout" | "output" | "memory" | "disk" | "start" | "stopped";
    }
  | { readonly kind: "lost"; readonly why: string };

/**
 * Runs actions of bundles. Whoever writes one keeps three promises: `start` under an id that was started before starts nothing, however
 * often and from whichever process it is called; what was started goes on when the process that started it dies, and is found again by its
 * id; nothing of a job's input is on a command line, in a name or in a log.
 */
export interface Runner {
  /** What an operator calls it in the settings. */
  readonly name: string;
  /**
   * Where its jobs are found: the same text for all runners that find each other's jobs, now and after restarts, and another one for every
   * other runner. What was started at one place is neither started nor called lost at another.
   */
  readonly place: string;
  /** Resolves when the job is sure to run, or to have run. */
  start(job: Job, signal: AbortSignal): Promise<void>;
  /** Waits up to `waitMs` for the job's end, and answers at once when that comes. */
  look(id: string, options: { readonly waitMs: number; readonly signal: AbortSignal }): Promise<JobState>;
  /**
   * The jobs at its place that run, or have ended and were not forgotten, whoever started them. It ends nothing and waits for no job: each
   * start of any bundle asks for it.
   */
  jobs(): Promise<readonly KnownJob[]>;
  /** What it has printed on standard output from a byte on, whole lines only; and where to read on. */
  output(id: string, from: number): Promise<{ readonly lines: readonly string[]; readonly next: number }>;
  /** What it printed on standard error, its last bytes, for a person. */
  log(id: string, lastBytes: number): Promise<string>;
  /**
   * Ends the job and all that it has started. One that has ended, or was never started, is left as it is. Throws if it cannot be ended in
   * bounded time.
   */
  stop(id: string): Promise<void>;
  /**
   * Removes what a job that has ended was given and has said: that is recorded. How it ended and its log stay, for as long as the runner keeps
   * them; `secrets` are not in what is kept of the log.
   */
  forget(id: string, secrets?: readonly unknown[]): Promise<void>;
}
