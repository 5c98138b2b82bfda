import type { CrashPoint } from "@osbert/journal";

/** What the process of a crash test is told. */
export interface CrashConfig {
  readonly file: string;
  readonly url: string;
  readonly instances: number;
  /** The moment at which it kills itself: the so manieth time that it comes to that point. */
  readonly dieAt?: { readonly point: CrashPoint; readonly count: number };
}

/** What it knows in the end: ids at the broker; of a binding, behind those of its instance. */
export interface CrashReport {
  /** Instances and bindings, also those of which nobody knows whether they are there. */
  readonly known: readonly string[];
  /** Those that a user may use. */
  readonly ready: readonly string[];
  /** What may be left, and is not ended. */
  readonly ledger: readonly string[];
}
