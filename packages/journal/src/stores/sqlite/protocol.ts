import type { Change, ClaimAnswer, ClaimRequest, Expected, Held, Release, TextReplacement } from "../../store.js";
import type { Cell } from "./change-cells.js";
import type { WriterFailure } from "./failure.js";

/** What the store asks of its writer. */
export type Request = { readonly kind: "commit"; readonly change: Change } | OtherRequest;

export type OtherRequest =
  | ({ readonly kind: "claim" } & ClaimRequest)
  | { readonly kind: "renew"; readonly owner: string; readonly held: readonly Held[]; readonly leaseMs: number }
  | { readonly kind: "release"; readonly owner: string; readonly held: readonly Release[] }
  | { readonly kind: "reap"; readonly living: readonly string[] }
  | { readonly kind: "remove"; readonly key: string; readonly expected: Expected }
  | { readonly kind: "set aside"; readonly key: string }
  | { readonly kind: "restore"; readonly key: string }
  | { readonly kind: "replace texts"; readonly key: string; readonly replacements: readonly TextReplacement[] };

/** What a request is answered with: whether it was done, how many it was done to, or as the contract says. */
export type WriterAnswer = boolean | number | readonly string[] | ClaimAnswer | { readonly failed: WriterFailure };

/**
 * To the writer. Requests are carried out in their order, in one transaction, all at the time `now`. Changes come as
 * flat cells, one after the other (see change-cells.ts), other requests as the objects they are: changes are nearly
 * all of the traffic, and a flat list of texts and numbers is the cheapest thing to pass between threads.
 */
export type ToWriter =
  | { readonly kind: "batch"; readonly now: number; readonly items: readonly (Cell | OtherRequest)[] }
  | { readonly kind: "close" };

/**
 * From the writer. Batches are answered in their order, once what they did is durable, with how many transactions
 * wrote, and how long the last of them took to become durable.
 */
export type FromWriter =
  | { readonly kind: "ready"; readonly clockMark: number }
  | { readonly kind: "not ready"; readonly failure: WriterFailure }
  | {
      readonly kind: "done";
      readonly answers: readonly WriterAnswer[];
      readonly transactions: number;
      readonly flushMs: number;
    };

/** What the writer is started with. */
export interface WriterSettings {
  readonly path: string;
  /** The inode of the lock file that this process has locked. */
  readonly lockFile: bigint;
  readonly synchronous: "full" | "normal";
  readonly maxPages: number | null;
  /** Whether times given out are remembered in the file; not if they come from a test's clock. */
  readonly marksClock: boolean;
}
