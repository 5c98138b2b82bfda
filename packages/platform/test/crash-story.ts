import type { CrashPoint } from "@osbert/journal";
import type { JournalLine } from "../src/platform.js";

/** What the process of a crash test is told. */
export interface CrashConfig {
  /** A file of SQLite, or a schema that several processes share. */
  readonly store: { readonly file: string } | { readonly postgres: string; readonly schema: string };
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
  /** By the name of the instance, where its broker says that its dashboard is. */
  readonly dashboards: Readonly<Record<string, string | null>>;
  /** By the name of the instance, the lines of its journal. */
  readonly journals: Readonly<Record<string, readonly CrashLine[]>>;
}

export type CrashLine = Pick<JournalLine, "family" | "kind" | "operation" | "summary">;
