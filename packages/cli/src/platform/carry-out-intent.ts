import { randomUUID } from "node:crypto";
import type { apiDescriptions } from "@osbert/platform/api";
import type { Shaped } from "@osbert/server/client";
import { facts } from "../admin/print.js";
import { type ExitStatus, exitStatuses } from "../client/exit-status.js";
import { plainJson, plainText } from "../client/plain-text.js";
import { queuedText, stateText } from "./instance-text.js";
import type { IntentOptions, WaitOptions } from "./platform-options.js";
import { PlatformProblem } from "./platform-problem.js";
import { NoAnswerError, type PlatformSession } from "./platform-session.js";
import { type Look, waitWithProgress } from "./wait-with-progress.js";

type Admitted = Shaped<(typeof apiDescriptions)["createInstance"]["answer"]>;

/** A change that is wanted, as a person is told of it. */
export interface WantedChange {
  readonly instance: string;
  readonly binding?: string;
  /** "creating my-db" */
  readonly what: string;
  /** "my-db is created" */
  readonly done: string;
  ask(session: Pick<PlatformSession, "ask">, query: { readonly dry_run?: string }): Promise<Admitted>;
  /** What is known of a failure beyond its own words; `undefined`: nothing. */
  explain?(operation: string): Promise<string | undefined>;
  /** Told after a success, instead of the sentence. */
  finish?(): Promise<void>;
}

/** What became of the operation itself, whatever else has happened to its instance. */
type End =
  | { readonly kind: "succeeded" }
  | { readonly kind: "failed" | "cancelled" | "unknown"; readonly message: string }
  | { readonly kind: "open"; readonly why: string };

/** Asks for a change, waits for its end unless that is not wanted, and tells what became of it. */
export async function carryOutIntent(
  session: PlatformSession,
  options: IntentOptions,
  wanted: WantedChange,
): Promise<ExitStatus> {
  const { stdout, stderr } = session.surroundings;
  const asking = session.askWith({
    "if-match": options.ifRevision && `"${options.ifRevision}"`,
    // Also where nobody names one: a change whose answer gets lost can be asked for again.
    "idempotency-key": options.idempotencyKey ?? (options.dryRun ? undefined : randomUUID()),
  });
  const ask = () => wanted.ask(asking, options.dryRun ? { dry_run: "true" } : {});
  const admitted = await ask().catch((error: unknown) => {
    if (!(error instanceof NoAnswerError) || !error.mayHaveArrived) throw error;
    stderr.write(`${plainText(error.message)}; asking once more, for the same change\n`);
    return ask();
  });
  if (admitted.result === "dry-run") {
    stdout.write(session.json ? `${asking.text()}\n` : dryRunText(admitted));
    return admitted.report?.ok === false ? exitStatuses.failed.status : exitStatuses.succeeded.status;
  }
  const { operation } = admitted;
  if (admitted.result === "unchanged" || operation === null) {
    if (session.json) stdout.write(`${asking.text()}\n`);
    else stderr.write(`${plainText(`${wanted.instance} is, or will be, so already; nothing was queued`)}\n`);
    return exitStatuses.succeeded.status;
  }
  return followOperation(session, options, wanted, operation);
}

/** Waits for the end of an operation, unless that is not wanted, and tells what became of it. */
export async function followOperation(
  session: PlatformSession,
  options: WaitOptions,
  wanted: Omit<WantedChange, "ask">,
  operation: string,
): Promise<ExitStatus> {
  const { stdout, stderr } = session.surroundings;
  const ended: End = options.wait
    ? await waitForEnd(session, options, wanted, operation)
    : { kind: "open", why: "the platform has accepted it" };
  const isBad = ended.kind === "failed" || ended.kind === "cancelled";
  const known = isBad ? await wanted.explain?.(operation) : undefined;
  const end: End = isBad && known !== undefined ? { ...ended, message: known } : ended;
  if (session.json)
    stdout.write(`${plainJson({ instance: wanted.instance, binding: wanted.binding, operation, ...end })}\n`);
  const say = (sentence: string) => void stderr.write(`${plainText(sentence)}\n`);
  const fail = (sentence: string): ExitStatus => {
    say(`error: ${sentence}`);
    return exitStatuses.failed.status;
  };
  switch (end.kind) {
    case "succeeded":
      if (wanted.finish !== undefined) await wanted.finish();
      else if (!session.json) stdout.write(`${plainText(wanted.done)}\n`);
      return exitStatuses.succeeded.status;
    case "failed":
      return fail(`${wanted.what} failed: ${end.message}`);
    case "cancelled":
      return fail(`${wanted.what} was cancelled: ${end.message}`);
    case "unknown":
      return fail(`${wanted.what}: ${end.message}`);
    case "open":
      say(
        `${end.why}. To look at it: osbert platform show ${wanted.instance}; to wait for it: osbert platform wait ${wanted.instance} ${operation}`,
      );
      return options.wait ? exitStatuses.inProgress.status : exitStatuses.succeeded.status;
  }
}

async function waitForEnd(
  session: PlatformSession,
  options: WaitOptions,
  wanted: Omit<WantedChange, "ask">,
  operation: string,
): Promise<End> {
  const waited = await waitWithProgress(session, wanted.what, options.timeout, () =>
    lookAt(session, wanted.instance, operation),
  );
  switch (waited.kind) {
    case "ended":
      return waited.end;
    case "interrupted":
      return { kind: "open", why: "no longer waiting; it goes on" };
    case "timed out":
      return { kind: "open", why: "the time is up; it goes on" };
  }
}

/** By its own id: the instance may be gone, another one may have its name, and its journal may be long. */
async function lookAt(session: PlatformSession, instance: string, operation: string): Promise<Look<End>> {
  try {
    const { state, message, intent } = await session.ask("operation", { space: session.space, instance, operation });
    if (state === "succeeded") return { kind: "ended", end: { kind: state } };
    if (state !== "open") return { kind: "ended", end: { kind: state, message: message ?? "nobody says why" } };
    // A delete ends by itself, and with it the wait for it; anything else waits for somebody.
    const waitsForSomebody = intent?.state === "held" && intent.held_by.some((kind) => kind !== "delete");
    if (!waitsForSomebody) return { kind: "open", news: intent === null ? "" : queuedText(intent) };
    const why = `it is held: ${intent.held_for ?? "something before it failed"}`;
    return { kind: "ended", end: { kind: "open", why } };
  } catch (error) {
    if (!(error instanceof PlatformProblem) || error.httpStatus !== 404) throw error;
    const message = "nobody remembers what became of it; osbert platform list shows what is there";
    return { kind: "ended", end: { kind: "unknown", message } };
  }
}

function dryRunText({ report, desired }: Admitted): string {
  const findings = (report?.findings ?? []).map(
    ({ severity, path, message }) => `${severity}: ${plainText(`${path === null ? "" : `${path}: `}${message}`)}\n`,
  );
  const verdict = report?.ok === false ? "it would be refused\n" : "it would be accepted\n";
  return `${verdict}${findings.join("")}${facts({ "would be": desired === null ? "gone" : stateText(desired) })}`;
}
