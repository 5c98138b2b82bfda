import type { Json } from "./json.js";

/** Who asked. Taken when the request was admitted, never refreshed. */
export interface Actor {
  readonly type: "user" | "service-account" | "system" | "operator";
  readonly subject: string;
  /** What else the originating identity said. */
  readonly claims?: Json;
}

/** J9: stands on every entry, beside its time. */
export interface Attribution {
  readonly actor: Actor;
  /** Why: the number of the entry, or the words, that led to this one. */
  readonly cause?: number | string;
  readonly requestId?: string;
  /** Where the request stands in a distributed trace, as a W3C traceparent: what is done for it later goes on from there. */
  readonly trace?: string;
}

/** The journal itself, where nobody asked. */
export const journalActor: Actor = { type: "system", subject: "journal" };

/** Exclusive operations of a resource run alone and in order; shared ones beside each other, never beside an exclusive one. */
export type Mode = "exclusive" | "shared";

/** What a decision asks to be done. */
export interface NewOperation {
  readonly kind: string;
  readonly input?: Json;
  /** What is to be known of it without reading its input, by whoever decides while it is open. At most 1,024 bytes. */
  readonly brief?: Json;
  /** The part that it is about, if not the resource itself. */
  readonly part?: string;
  /** As the kind says, unless given. */
  readonly mode?: Mode;
  /** As the kind says, unless given. */
  readonly lane?: string;
  /** As the kind says, unless given. `null`: no deadline. */
  readonly deadlineMs?: number | null;
  /** Not to be started before so long from now. */
  readonly delayMs?: number;
  /** "front": before everything that has not started yet. */
  readonly place?: "back" | "front";
  /** Not to be started until it is released; those behind it go on. */
  readonly held?: boolean;
}

/** All of them: what else is asked for would be lost, and is refused. */
export const newOperationMembers: Readonly<Record<keyof NewOperation, true>> = {
  kind: true,
  input: true,
  brief: true,
  part: true,
  mode: true,
  lane: true,
  deadlineMs: true,
  delayMs: true,
  place: true,
  held: true,
};

/** An operation that has not ended, as the resource's state keeps it: small, whatever its input was. */
export interface OpenOperation {
  /** The number of the entry that accepted it, a dash, and chance. Unreserved URL characters only. */
  readonly id: string;
  readonly kind: string;
  readonly part: string | null;
  readonly mode: Mode;
  readonly lane: string;
  readonly acceptedAt: number;
  /** Of the request that asked for it. */
  readonly requestId: string | null;
  readonly deadlineAt: number | null;
  /** Not before this time. */
  readonly readyAt: number;
  readonly held: boolean;
  readonly cancel: CancelRequest | null;
  /** Attempts that ended without ending the operation. */
  readonly attempts: number;
  /** Those of them that failed since the last recorded step; decides the back-off. */
  readonly failures: number;
  readonly lastError: string | null;
  readonly description: string | null;
  /** Recorded steps: name, number of the entry with the result. A list, because a name may be any text. */
  readonly steps: readonly (readonly [name: string, seq: number])[];
  /** Begun waits: name, when it is over. */
  readonly waits: readonly (readonly [name: string, until: number])[];
  /** Polls that go on; missing: none. */
  readonly polls?: readonly PollPlace[];
  /** It was told to hurry while it ran: its next poll that sees nothing looks again at once, and so does its next attempt come. */
  readonly hurried?: true;
  /** A word of the user's own; missing: none was given. */
  readonly brief?: Json;
}

/** What an operation waits for: a time, or the next look of a poll. */
export type Wait =
  | { readonly kind: "sleep"; readonly name: string; readonly until: number }
  | {
      readonly kind: "poll";
      readonly name: string;
      readonly until: number;
      readonly looks: number;
      readonly since: number;
    };

/** How far a poll has got: when to look again, how often it was looked, and when for the first time. */
export type PollPlace = readonly [name: string, until: number, looks: number, since: number];

/**
 * `running`: an engine is at it. `waiting`: for its next attempt, a wait of its own, or the time it was asked for. `queued`: others are before it,
 * or nobody has begun with it yet. `held`: until it is released. `paused`: its lane is. `cancelling`: it was told to stop and has not yet.
 */
export type OperationState = "running" | "waiting" | "queued" | "held" | "paused" | "cancelling";

/** An open operation as it is told: with its state at the moment of reading. */
export interface ListedOperation extends OpenOperation {
  readonly state: OperationState;
}

/** An open operation with the words of the request for it. */
export interface AskedOperation extends ListedOperation {
  /** Who asked for it. */
  readonly author: Actor;
  readonly input: Json;
}

export interface CancelRequest {
  readonly reason: string;
  readonly attribution: Attribution;
}

export type Outcome =
  | { readonly kind: "succeeded"; readonly result: Json }
  | { readonly kind: "failed"; readonly error: Failure }
  | { readonly kind: "cancelled"; readonly reason: string };

export interface Failure {
  readonly message: string;
  /** "permanent": the author said so. "deadline": time was up. "unkeepable": a result that cannot be recorded. */
  readonly class: "permanent" | "deadline" | "exhausted" | "unkeepable";
  readonly details?: Json;
}

/** An operation that has ended. Its result and its whole story are in the entries. */
export interface FinishedOperation {
  readonly id: string;
  readonly kind: string;
  readonly part: string | null;
  readonly acceptedAt: number;
  readonly endedAt: number;
  readonly outcome: Outcome["kind"];
  /** The failure's message or the reason of the cancellation. */
  readonly message: string | null;
  readonly description: string | null;
  /** The number of the entry with the outcome. */
  readonly seq: number;
}

/** J9: what the journal does to an operation by itself, it does because of the request for it. */
export function becauseOf({ id, requestId }: OpenOperation): Attribution {
  const cause = acceptedSeq(id);
  return { actor: journalActor, ...(cause !== undefined && { cause }), ...(requestId !== null && { requestId }) };
}

/** The number of the entry that accepted an operation, or undefined if that is not an operation's id. */
export function acceptedSeq(operation: string): number | undefined {
  const match = /^([1-9][0-9]{0,15})-[0-9a-z]{1,40}$/.exec(operation);
  return match === null ? undefined : Number(match[1]);
}
