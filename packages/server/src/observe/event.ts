import type { RefusedCaller } from "../authentication/refused-caller.js";

/**
 * What a server tells of every request. The room whose API was asked adds what its requests are about, and events of its own: adapters take
 * the union that it makes of them. Nothing here carries a header or a body; an error carries what its author wrote into it.
 */
export interface RequestAnswered {
  readonly kind: "request answered";
  readonly method: string;
  /** The endpoint's name: "provision", "catalog", "readyz"…; `null` if it is none. */
  readonly route: string | null;
  readonly platform: string | null;
  /** The name of the credential; `null` if there was no valid one. */
  readonly credential: string | null;
  readonly status: number;
  /** The row in the table of errors. */
  readonly errorCode: string | null;
  /** What the caller was told of an error. */
  readonly description: string | null;
  /** What went wrong inside, where that was not the caller's doing. */
  readonly cause: unknown;
  readonly requestId: string | null;
  readonly tookMs: number;
  /** Who asked, where they were not let in: a 401, or a 429 for too many guesses. */
  readonly refused: RefusedCaller | null;
}

/** Told of everything, at once. What it throws is swallowed. */
export interface Observe<Event> {
  (event: Event): void;
  /** It tells a person of warnings and errors, as a log does: then they need not be written to standard error as well. */
  readonly logs?: true;
  /** Whether it makes anything of such an event: one that nobody does need not be made. Default, and if it throws: of all. */
  readonly needs?: (news: News) => boolean;
}

/** What is known of an event before it is made. */
export interface News {
  readonly kind: string;
  /** Of a request. */
  readonly status?: number;
  /** Of an operation that has ended. */
  readonly outcome?: string;
  readonly settleError?: unknown;
}
