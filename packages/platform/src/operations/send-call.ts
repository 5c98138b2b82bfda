import { hash } from "node:crypto";
import { RetryLater, type TypedOperationChange, type TypedResource } from "@osbert/journal";
import type { Call } from "@osbert/protocol";
import type { Changed, Client, RequestOptions } from "@osbert/protocol/client";
import type { CallOutcome, Refusal } from "../records/call-outcome.js";
import { instanceLabels } from "../records/instance-labels.js";
import { type CallMark, type InstanceData, type InstanceShape, instances } from "../records/instance-record.js";
import { type Came, callBroker, clipped } from "./call-broker.js";
import { failure } from "./failure.js";
import { identityOf } from "./identity-of.js";
import type { InstanceOperation } from "./instance-operation.js";
import { isLeaseLost, isOvertaken, keepLateAnswer, unlessOvertaken } from "./late-answer.js";
import { type GrowingPause, growingPauseMs } from "./pauses.js";
import type { RunPorts } from "./run-ports.js";

/** A call that changes something at a broker. */
export interface BrokerCall<Body> {
  /** In words, another one for each call of an operation: its answer is recorded as the step `answer to …`. */
  readonly what: string;
  readonly call: Exclude<Call, "fetch" | "catalog">;
  /** Ids at the broker. */
  readonly instance: string;
  readonly binding?: string;
  /** All that is sent as the body. */
  readonly body?: string;
  readonly send: (client: Client, options: RequestOptions) => Promise<Changed<Body>>;
  /** The part that `ahead`, `whenInDoubt` and `whenConflict` look at. */
  readonly reads?: `binding/${string}`;
  /** What the instance is from the moment on in which this may have been sent: kept with the mark, and thus never again once it is answered. */
  readonly ahead?: (now: KeptResource) => Kept;
  /** What it is once an answer is lost: kept with that, so that whoever stops the operation after it knows (E8). */
  readonly whenInDoubt?: (now: KeptResource, at: number) => Kept;
  /** What the instance is once the broker has answered 409. It is kept before the answer is: a delete that comes in between must know. */
  readonly whenConflict?: (now: KeptResource) => Kept;
  /** Whether it is kept that the broker answered 409: whoever died before that was recorded has heard an answer, and nothing is lost. */
  readonly isConflictKept?: () => Promise<boolean>;
  /**
   * Keeps what belongs in no entry, before the answer is recorded: a kill in between costs one more resolve, the other way round the
   * credentials would be lost. Answers why the answer cannot be used; `null`: it can.
   */
  readonly keep?: (answer: Changed<Body>) => Promise<string | null>;
  /** An earlier call of the operation for the same is lost. */
  readonly lostBefore?: boolean;
  /** What the broker is busy with was polled before: now it is waited until it takes the call. */
  readonly waitWhileBusy?: boolean;
  readonly whenLost: WhenLost;
}

export type KeptResource = Pick<TypedResource<InstanceShape>, "data" | "parts">;
export type Kept = Pick<TypedOperationChange<InstanceShape>, "data" | "parts">;

/** `tell`: the answer is that it is lost. Else the same is sent again, so often and for so long. */
export type WhenLost = "tell" | { readonly most: number; readonly withinMs: number; readonly pause: GrowingPause };

/** What changes nothing if it is done twice, and whose answer is lost, is sent again: so often, and for so long (E4). */
export const budget = { most: 6, withinMs: 30 * 60_000 };

export const forEver = (pause: GrowingPause): WhenLost => ({
  most: Number.POSITIVE_INFINITY,
  withinMs: Number.POSITIVE_INFINITY,
  pause,
});

/** From the mark to its call: less than a lease. */
export const longestAheadMs = 20_000;
/** `instance_usable` and such are in what the broker says; its links may be anything. */
const longestLink = 4_096;

/**
 * Sends a call, and again as long as the broker is busy or cannot be reached, which counts for nothing. In this order, each durable before the
 * next: the mark that it may have been sent, the call, what it brought that is secret, its answer. Whoever finds the mark of the very look that
 * it begins follows a process that died in between: that attempt is lost, unless it is kept what the answer was.
 */
export async function sendCall<Body extends object>(
  ports: RunPorts,
  operation: InstanceOperation,
  call: BrokerCall<Body>,
): Promise<CallOutcome> {
  const { broker } = operation.data;
  const name = stepOf(call.what);
  const part = `call/${operation.id}` as const;
  const write = (mark: CallMark, kind: string, payload: object, keep: (now: KeptResource) => Kept = () => ({})) =>
    operation.change(
      (now) => {
        const { data = now.data, parts } = keep(now);
        const ahead = aheadOf(operation, name, mark, data);
        return {
          parts: parts === undefined ? instances.part(part, mark) : { ...parts, ...instances.part(part, mark) },
          data: ahead,
          entries: [{ kind, payload: { ...payload }, operation: operation.id }],
          ...(ahead.osbId !== now.data.osbId && { labels: instanceLabels(ahead) }),
        };
      },
      { parts: partsOf(call) },
    );

  const lose = async (mark: CallMark, said: Refusal): Promise<CallOutcome> => {
    const lost = mark.lost + 1;
    const { status, error, message } = said;
    const payload = { what: call.what, class: said.class, status, error, message };
    // Not the number of a look: whoever begins the next one has nothing more to find out.
    const at = ports.journal().now();
    const doubt = (now: KeptResource) => call.whenInDoubt?.(now, at) ?? {};
    await write({ ...mark, look: -1, lost }, "attempt-lost", payload, doubt);
    const { whenLost } = call;
    const isOver = whenLost === "tell" || lost >= whenLost.most || said.repeatable === false;
    if (isOver || ports.journal().now() - mark.firstAt >= whenLost.withinMs) return { kind: "lost", ...said };
    operation.describe(`nobody knows whether the broker did it, so it is asked again: ${message}`);
    throw later(said.message, growingPauseMs(whenLost.pause, lost - 1, ports.random));
  };

  // Of the last call, until its answer is recorded.
  let heard: Parameters<typeof keepLateAnswer>[2] | undefined;
  const tellLate = async (error: unknown): Promise<unknown> => {
    const late = heard;
    heard = undefined;
    if (late !== undefined) await keepLateAnswer(ports, operation, late);
    return error;
  };

  const look = async ({ looks, signal }: { readonly looks: number; readonly signal: AbortSignal }) => {
    const found = (await operation.parts([part])).get(part);
    const now = ports.journal().now();
    const before = found?.call === name ? found : { call: name, look: -1, at: now, lost: 0, firstAt: now };
    if (before.look === looks) {
      if ((await call.isConflictKept?.()) !== true) return lose(before, died);
      return { kind: "refused", afterLost: call.lostBefore === true || before.lost > 0, ...conflictHeard } as const;
    }
    // That it is lost is kept, and whoever was to be told so died before: sent again it would be a first call, whose refusal leaves nothing.
    if (call.whenLost === "tell" && before.lost > 0) return { kind: "lost", ...died } as const;
    // No mark at all: nothing of this operation has ever been sent, so that it may still be left.
    // What may have been sent by an earlier operation is found out, whatever became of the catalog.
    const drift = found === undefined && call.lostBefore !== true ? recheckAloud(ports, operation) : null;
    if (drift !== null) throw failure(drift, { class: "preflight-drift" });
    // It was looked at before, and nothing was sent: it was frozen, until now, and with it all that is behind it.
    const isThawed = found === undefined && looks > 0;
    if (!isThawed) checkDeadline(ports, operation, call, before);
    const mark: CallMark = { ...before, look: looks, at: now };
    const requestId = ports.newId();
    const payload = {
      what: call.what,
      instance: call.instance,
      attempt: mark.lost + 1,
      requestId,
      ...(call.binding !== undefined && { binding: call.binding }),
      ...(call.body !== undefined && { bodyHash: hashOf(call.instance, call.body) }),
    };
    await write(mark, "attempt-started", payload, (kept) => {
      const { data = kept.data, parts } = call.ahead?.(kept) ?? {};
      return { data: isThawed ? { ...data, waitsSince: now } : data, ...(parts !== undefined && { parts }) };
    });
    // Whoever was stopped in between, and has lost its lease meanwhile, would send what others have found to be lost, and resolved.
    if (ports.journal().now() - now > longestAheadMs) throw later("the mark was too long in coming", 0);
    const identity = identityOf(operation.input);
    const goesOn = unlessOvertaken(signal);
    const send = (client: Client) => call.send(client, { requestId, signal: goesOn, ...identity });
    const lostBefore = call.waitWhileBusy !== true && (call.lostBefore === true || mark.lost > 0);
    const came = await callBroker(ports, broker, call.call, send, { signal: goesOn, lostBefore });
    if (came.said.status !== null) heard = { what: call.what, requestId, said: came.said };
    if (isOvertaken(signal)) throw await tellLate(signal.reason);
    return take(came, mark, looks);
  };

  const take = async (came: Came<Changed<Body>>, mark: CallMark, looks: number): Promise<CallOutcome> => {
    const { answer, said, next, retryAfterMs } = came;
    const { pauses, random } = ports;
    const { whenConflict } = call;
    const running = (named: string | null, dashboardUrl: string | null) => {
      const at = ports.journal().now();
      return { kind: "running", operation: named, retryAfterMs: retryAfterMs ?? null, dashboardUrl, at } as const;
    };
    switch (next) {
      case "succeed":
      case "poll": {
        const unusable = answer === undefined ? null : ((await call.keep?.(answer)) ?? null);
        if (unusable !== null) return { kind: "unusable", status: said.status, message: unusable };
        const dashboardUrl = dashboardOf(answer?.body);
        if (next === "succeed") return { kind: "done", status: said.status ?? 200, dashboardUrl };
        if (answer === undefined) return { ...running(null, null), isAssumed: true };
        return running(answer.kind === "accepted" ? (answer.operation ?? null) : null, dashboardUrl);
      }
      case "wait":
        if (call.call === "bind" && said.error === "ConcurrencyError")
          ports.brokers.sawBindsCollide(operation.data.broker, operation.data.offering.id);
        operation.describe(`the broker is busy: ${said.message}`);
        throw later(said.message, retryAfterMs ?? growingPauseMs(pauses.busy, looks, random));
      case "send again": {
        // Of what was answered, only a delete that met a conflict.
        const isAnswered = said.status !== null;
        operation.describe(isAnswered ? `the broker is not ready for it: ${said.message}` : said.message);
        throw later(said.message, growingPauseMs(isAnswered ? pauses.busy : pauses.notSent, looks, random));
      }
      case "replace credentials":
        operation.describe(`the broker ${broker} refuses the platform's credentials`);
        throw later(said.message, growingPauseMs(pauses.notSent, looks, random));
      case "resolve":
        // Asked again, the broker says once more that it works at it. Its name for that is of no use, and not needed (E10-15).
        if (said.status === 202 && (call.lostBefore === true || mark.lost > 0)) return running(null, null);
        return lose(mark, said);
      case "fail":
      case "keep":
      case "refresh catalog":
      case "fetch":
      case "delete again":
        if (said.class === "conflict" && whenConflict !== undefined)
          await operation.change(whenConflict, { parts: partsOf(call) });
        return { kind: "refused", afterLost: call.lostBefore === true || mark.lost > 0, ...said };
    }
  };

  try {
    return await operation.poll(name, look, { everyMs: pausesAreThrown });
  } catch (error) {
    throw isLeaseLost(error) ? await tellLate(error) : error;
  }
}

function partsOf({ reads }: Pick<BrokerCall<unknown>, "reads">) {
  return reads === undefined ? [] : [reads];
}

export function stepOf(what: string): string {
  return `answer to ${what}`;
}

/** Every look that sees nothing says when to look again. */
export const pausesAreThrown = 60_000;

const died: Refusal = {
  class: "unknown",
  status: null,
  error: null,
  message: "the platform stopped before it heard the answer",
  usable: null,
  repeatable: null,
};

/** The broker answered 409 to someone who died before that was recorded. */
export const conflictHeard: Refusal = {
  class: "conflict",
  status: 409,
  error: null,
  message: "the broker answered 409: it has something else under that id",
  usable: null,
  repeatable: null,
};

/** Bindings go on side by side: what is under way stands in their own parts. */
function aheadOf(operation: InstanceOperation, call: string, { at }: CallMark, data: InstanceData): InstanceData {
  if (operation.kind === "bind" || operation.kind === "unbind") return data;
  if (data.attempt?.operation === operation.id && data.attempt.call === call) return data;
  return { ...data, attempt: { operation: operation.id, call, since: at } };
}

/** Whoever waits for what is frozen is told by whom, and why. */
function recheckAloud(ports: RunPorts, operation: InstanceOperation): string | null {
  try {
    return ports.recheck(operation);
  } catch (error) {
    if (error instanceof RetryLater) operation.describe(error.message);
    throw error;
  }
}

/**
 * E10-56: what never reached the broker does not wait for ever. Deletes do. What counts is the time in which it waited for the broker, and neither for
 * somebody who kept it back nor for what was before it; once it was tried, it has had its turn.
 */
function checkDeadline(
  { journal, pauses }: RunPorts,
  { acceptedAt, data }: InstanceOperation,
  { call, lostBefore }: Pick<BrokerCall<unknown>, "call" | "lostBefore">,
  { lost, firstAt }: CallMark,
): void {
  const mayHaveActed = lost > 0 || lostBefore === true || call === "deprovision" || call === "unbind";
  const waitsSince = Math.min(firstAt, Math.max(acceptedAt, data.waitsSince ?? 0));
  if (mayHaveActed || journal().now() - waitsSince < pauses.deadlineMs) return;
  throw failure("the broker could not be asked in all the time that there was", { class: "deadline" });
}

function later(message: string, afterMs: number): RetryLater {
  return new RetryLater(message, { afterMs });
}

/** Salted with the id, so that the same parameters of two instances are not seen to be the same. */
function hashOf(instance: string, body: string): string {
  return hash("sha256", `${instance}\n${body}`, "hex");
}

function dashboardOf(body: object | undefined): string | null {
  const link = body !== undefined && "dashboard_url" in body ? body.dashboard_url : undefined;
  return typeof link === "string" && link !== "" && clipped(link, longestLink) === link ? link : null;
}
