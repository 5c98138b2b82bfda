import type { CrashPoint, Outcome } from "@osbert/journal";

/** What a child tells, the moment it happens: written to a pipe before the next instruction, so it survives the child. */
export type ChildEvent =
  | { readonly kind: "started" }
  | { readonly kind: "accepted"; readonly request: number; readonly ids: readonly string[] | null }
  | { readonly kind: "not accepted"; readonly request: number; readonly why: string }
  | { readonly kind: "refused"; readonly request: number }
  | { readonly kind: "cancel answered"; readonly n: number; readonly answer: boolean }
  | { readonly kind: "cancel failed"; readonly n: number; readonly why: string }
  | {
      readonly kind: "attempt begins";
      readonly n: number;
      readonly id: string;
      readonly attempt: string;
      /** Results of steps that earlier attempts have recorded. */
      readonly recorded: Readonly<Record<string, string>>;
      /** When the turn of the event loop began in which the engine let it begin. */
      readonly turnAt: number;
    }
  | { readonly kind: "attempt ends"; readonly n: number; readonly attempt: string; readonly how: string }
  | {
      readonly kind: "effect begins";
      readonly n: number;
      readonly attempt: string;
      readonly step: string;
      readonly idempotencyKey: string;
      readonly turnAt: number;
    }
  | {
      readonly kind: "effect ends";
      readonly n: number;
      readonly attempt: string;
      readonly step: string;
      readonly value: string;
    }
  | {
      readonly kind: "step done";
      readonly n: number;
      readonly attempt: string;
      readonly step: string;
      /** False: its recorded result was used. */
      readonly ran: boolean;
      readonly value: string;
    }
  /** A poll looks; so often it has looked before, and seen nothing. */
  | { readonly kind: "looks"; readonly n: number; readonly before: number }
  | { readonly kind: "wait begins"; readonly n: number; readonly wait: string; readonly ms: number }
  | { readonly kind: "wait over"; readonly n: number; readonly wait: string }
  | { readonly kind: "settled"; readonly id: string; readonly key: string; readonly outcome: Outcome["kind"] }
  | { readonly kind: "dies at"; readonly point: CrashPoint }
  /** Something that the engine observed and that helps to understand a violation. */
  | { readonly kind: "observed"; readonly what: string }
  | { readonly kind: "quiet" }
  /** The store could not be opened; it is tried again. */
  | { readonly kind: "not opened"; readonly why: string }
  /** What became of a rival's try; `null`: it was let in. */
  | { readonly kind: "rival"; readonly refusedBy: string | null };

/** What the parent does to its children, and sees of them. */
export type ParentEvent =
  | { readonly kind: "spawned" }
  | { readonly kind: "killed"; readonly how: "at a point" | "at random" }
  | { readonly kind: "frozen" }
  | { readonly kind: "thawed" }
  | { readonly kind: "cancel asked"; readonly n: number }
  /** What the chaos suite did, and how many processes, connections, sessions or files it hit. */
  | { readonly kind: "disturbed"; readonly what: { readonly kind: string }; readonly hit: number }
  /** From now on nothing is disturbed any more. */
  | { readonly kind: "calm" }
  /** Two processes had a file that one has at a time. */
  | { readonly kind: "two owners"; readonly by: string }
  | { readonly kind: "ended by itself"; readonly why: string };

/** `at`: milliseconds on the machine's monotonic clock, which all processes share. `process`: the how-manieth child. */
export type Witnessed = (ChildEvent | ParentEvent) & { readonly at: number; readonly process: number };

export function machineMs(): number {
  return Number(process.hrtime.bigint() / 1_000n) / 1_000;
}
