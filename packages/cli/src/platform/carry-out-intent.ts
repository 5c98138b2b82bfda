import type { apiDescriptions } from "@osbert/platform/api";
import type { Shaped } from "@osbert/server/client";
import { type ExitStatus, exitStatuses } from "../client/exit-status.js";
import { plainJson, plainText } from "../client/plain-text.js";
import { startProgress } from "../client/progress.js";
import { facts, type Instance, queuedText, stateText } from "./instance-text.js";
import type { IntentOptions } from "./platform-options.js";
import { PlatformProblem } from "./platform-problem.js";
import type { PlatformSession } from "./platform-session.js";

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
  /** Told after a success, instead of the sentence. */
  finish?(): Promise<void>;
}

type End =
  | { readonly kind: "succeeded" }
  | { readonly kind: "failed"; readonly message: string }
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
    "idempotency-key": options.idempotencyKey,
  });
  const admitted = await wanted.ask(asking, options.dryRun ? { dry_run: "true" } : {});
  const say = (line: string) => void stderr.write(`${plainText(line)}\n`);
  if (admitted.result === "dry-run") {
    stdout.write(session.json ? `${asking.text()}\n` : dryRunText(admitted));
    return admitted.report?.ok === false ? exitStatuses.failed.status : exitStatuses.succeeded.status;
  }
  const { operation } = admitted;
  if (admitted.result === "unchanged" || operation === null) {
    if (session.json) stdout.write(`${asking.text()}\n`);
    else say(`${wanted.instance} is, or will be, so already; nothing was queued`);
    return exitStatuses.succeeded.status;
  }
  const end: End = options.wait
    ? await waitForEnd(session, options, wanted, operation)
    : { kind: "open", why: "the platform has accepted it" };
  if (session.json)
    stdout.write(`${plainJson({ instance: wanted.instance, binding: wanted.binding, operation, ...end })}\n`);
  switch (end.kind) {
    case "succeeded":
      if (wanted.finish !== undefined) await wanted.finish();
      else if (!session.json) stdout.write(`${plainText(wanted.done)}\n`);
      return exitStatuses.succeeded.status;
    case "failed":
      stderr.write(`error: ${plainText(`${wanted.what} failed: ${end.message}`)}\n`);
      return exitStatuses.failed.status;
    case "open":
      say(`${end.why}. To look at it: osbert platform show ${wanted.instance} (operation ${operation})`);
      return options.wait ? exitStatuses.inProgress.status : exitStatuses.succeeded.status;
  }
}

const pauseMs = 500;

async function waitForEnd(
  session: PlatformSession,
  options: IntentOptions,
  wanted: WantedChange,
  operation: string,
): Promise<End> {
  const { surroundings } = session;
  const progress = startProgress(plainText(wanted.what), surroundings);
  const until = options.timeout === undefined ? Infinity : surroundings.now() + options.timeout * 1_000;
  let interrupted = false;
  let wake = (): void => undefined;
  const endListening = surroundings.onInterrupt(() => {
    interrupted = true;
    wake();
  });
  try {
    for (;;) {
      const seen = await look(session, wanted, operation);
      if (typeof seen !== "string") return seen;
      progress.tell(seen);
      if (interrupted) return { kind: "open", why: "no longer waiting; it goes on" };
      if (surroundings.now() >= until) return { kind: "open", why: "the time is up; it goes on" };
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, pauseMs);
        wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
  } finally {
    endListening();
    progress.stop();
  }
}

/** How it ended, or what is told of it while it is open. */
async function look(session: PlatformSession, wanted: WantedChange, operation: string): Promise<End | string> {
  const values = { space: session.space, instance: wanted.instance };
  let instance: Instance;
  try {
    instance = await session.ask("instance", values);
  } catch (error) {
    // Whatever was wanted of it: it is gone, and with it its queue.
    if (error instanceof PlatformProblem && error.httpStatus === 404) return { kind: "succeeded" };
    throw error;
  }
  const open = instance.queue.find((one) => one.operation === operation);
  if (open?.state === "held")
    return { kind: "open", why: `it is held: ${open.held_for ?? "something before it failed"}` };
  if (open !== undefined) return queuedText(open);
  const failure = failureIn(instance, wanted, operation);
  if (failure !== undefined) return { kind: "failed", message: failure };
  const { items } = await session.ask("journal", values, { query: { limit: "100" } });
  const outcome = items.find((line) => line.family === "outcome" && line.operation === operation);
  return outcome === undefined || outcome.kind === "succeeded"
    ? { kind: "succeeded" }
    : { kind: "failed", message: outcome.summary };
}

function failureIn(instance: Instance, wanted: WantedChange, operation: string): string | undefined {
  if (instance.last_delete?.operation === operation) return `the broker refuses: ${instance.last_delete.message}`;
  const failed = instance.failures.find((one) => one.operation === operation);
  if (failed !== undefined) return failed.message;
  const binding = instance.bindings.find(({ name }) => name === wanted.binding);
  return binding?.phase === "failed" || binding?.phase === "unbind-rejected"
    ? (binding.message ?? binding.phase)
    : undefined;
}

function dryRunText({ report, desired }: Admitted): string {
  const findings = (report?.findings ?? []).map(
    ({ severity, path, message }) => `${severity}: ${plainText(`${path === null ? "" : `${path}: `}${message}`)}\n`,
  );
  const verdict = report?.ok === false ? "it would be refused\n" : "it would be accepted\n";
  return `${verdict}${findings.join("")}${facts({ "would be": desired === null ? "gone" : stateText(desired) })}`;
}
