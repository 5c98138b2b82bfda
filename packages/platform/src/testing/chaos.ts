import { createHash } from "node:crypto";
import type { MisbehavingCall, Misbehaviour } from "./misbehaviour.js";
import { type MisbehaviourName, namedMisbehaviour } from "./named-misbehaviours.js";

export interface Chaos {
  readonly seed: number;
  /** From 0 to 1: how many requests are misbehaved to. Default 0.3. */
  readonly rate?: number;
}

/** After so many requests of one kind for one thing the broker is good to it: whoever asks again comes to an end. */
const mostInARow = 4;

const anywhere: readonly MisbehaviourName[] = [
  "500",
  "503-retry-after",
  "429",
  "reset",
  "half-answer",
  "half-head",
  "half-request",
  "not-http",
  "200-not-json",
];
const changes: readonly MisbehaviourName[] = [
  ...anywhere,
  "concurrency",
  "done-500",
  "done-reset",
  "done-close",
  "late-reset",
  "late-500",
  "201-half-json",
  "202-not-json",
  "async",
  "async-fails",
  "async-without-operation",
  "async-polls-break",
  "400",
];

/**
 * What becomes of a request by chance. It hangs on the seed, the call, the ids and how often that was asked before, and on nothing else: a
 * storm of requests in another order is misbehaved to in the same way.
 */
export function chaosFor(
  chaos: Chaos,
  call: MisbehavingCall,
  subject: string,
  count: number,
): Misbehaviour | undefined {
  if (count >= mostInARow) return undefined;
  const bytes = createHash("sha256")
    .update(JSON.stringify([chaos.seed, call, subject, count]))
    .digest();
  if (bytes.readUInt32BE(0) / 2 ** 32 >= (chaos.rate ?? 0.3)) return undefined;
  const reads = call === "catalog" || call.startsWith("poll") || call.startsWith("fetch");
  const choice = reads ? anywhere : changes;
  const name = choice[bytes.readUInt32BE(4) % choice.length];
  return name === undefined ? undefined : namedMisbehaviour(name);
}
