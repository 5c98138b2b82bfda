import { createHash } from "node:crypto";
import { Failed, RetryLater, type Work } from "@osbert/broker";
import { Interrupted, type Json, type Step } from "@osbert/journal";
import { isJsonObject, type JsonObject } from "@osbert/protocol";
import type { Action, BundleSpec } from "../formats/bundle-spec.js";
import { type ActionEnd, type ActionOutput, endOf, noOutput } from "../runners/action-output.js";
import { newProgress, OutputReader } from "../runners/output-reader.js";
import type { Job, JobLimits, JobSecrets, JobState, Runner } from "../runners/runner.js";
import { RunnerError } from "../runners/runner-error.js";
import type { Artifact } from "../sources/source.js";
import { SourceError } from "../sources/source-error.js";
import type { BundleObserver, JobFacts } from "../watch/bundle-event.js";
import { ArtifactGone } from "./artifact-mirror.js";
import type { OrphanedJobs } from "./orphaned-jobs.js";

/** What running actions takes. */
export interface ActionPorts {
  readonly runner: Runner;
  /** Has the artifact at hand, so that a runner finds it: from the mirror, or else from its source. Answers it as it is to be run. */
  readonly fetch: (artifact: Artifact, signal: AbortSignal) => Promise<Artifact>;
  readonly limits: JobLimits;
  readonly orphans: OrphanedJobs;
  /** The operator's secrets that a bundle may have, as they are now. */
  readonly secrets: (spec: BundleSpec) => JobSecrets;
  /** All values of secrets so far: a job may tell one that was exchanged since it was started. Nobody is to hear of it. */
  readonly everGiven: () => readonly string[];
  readonly tell: BundleObserver;
}

/** An action to run, as its operation asks for it. */
export interface ActionRequest {
  readonly action: Action;
  readonly spec: BundleSpec;
  readonly artifact: Artifact;
  /** Of the instance's resource in the journal. */
  readonly key: string;
  /** Without what is added here: the action and the idempotency key. */
  readonly input: JsonObject;
  /** Those that are in the input. */
  readonly secrets: JobSecrets;
  /** What has been said, at once and as often as it grows: what must be known whatever becomes of the action. */
  readonly said: (output: ActionOutput) => Promise<void>;
}

/** How an action ended, with all that it said. */
export interface ActionResult {
  readonly end: Exclude<ActionEnd, { readonly kind: "lost" | "try again" }>;
  readonly output: ActionOutput;
}

/** A bundle that asks to be tried again, or is lost, is started again at most so often. */
const mostStarts = 100;
/** After an end that asks for another try and does not say when. */
const tryAgainMs = (starts: number) => Math.min(300_000, 5_000 * 2 ** Math.min(starts, 6));
/** A runner waits so long for a job's end before it answers; then the operation sleeps, and holds no place, for `restMs`. */
const waitMs = 20_000;
const restMs = 1_000;
/** What a bundle says is read so often while it runs. */
const readEveryMs = 1_000;

/** How often a process asks that is not at the job's place. */
const elsewhereMs = 2_000;
/** A job that nobody is known to have started is not started later than this, so that others can tell when it must have ended. */
const startWithinMs = 600_000;
const notStarted = "nobody has started it in time";
/** A job's time limit does not count its start, its grace and what is done after its end. */
const slackMs = 120_000;

/**
 * The steps under which a job is recorded before it is started, so that whoever undoes the operation can stop it; whether it was started; that
 * a provision has begun something; and its end. The third is never recorded of what was not started: steps of a later operation take the
 * place of those of an earlier one by name, and a start that was given up must not hide one that was not.
 */
const jobStep = (start: number) => `job ${start}`;
const startStep = (start: number) => `start ${start}`;
const begunStep = (start: number) => `begun ${start}`;
const endStep = (start: number) => `end ${start}`;

/** Which of these a step is, by its name. `prefix`: of an operation that does the work of several. */
export function jobSteps(
  step: string,
): { readonly kind: "job" | "end"; readonly prefix: string; readonly start: number } | undefined {
  const [, prefix = "", kind, start] = /^(.*: )?(job|end) ([0-9]{1,3})$/s.exec(step) ?? [];
  return kind === "job" || kind === "end" ? { kind, prefix, start: Number(start) } : undefined;
}

/**
 * Of what an action has printed for people, its last part is kept with its end if it failed: who asks why may ask on another machine, or after
 * the runner has forgotten it. Of what went well nobody asks, and a store is no place for logs. It goes with the operation.
 */
const keptLogBytes = 16_384;

/** A job, as it is recorded before its start. */
interface NamedJob {
  readonly id: string;
  /** Of the runner that starts it. */
  readonly place: string;
  readonly timeoutMs: number;
}

/**
 * Runs an action of a bundle inside an operation. The order of effects, for each start:
 *
 * 1. The job's id is recorded, with the place of the runner that is going to start it. The id is made of the operation's, so that it is the
 *    same over attempts, and a delete that comes after a cancel finds it. Killed before: nothing was started.
 * 2. What still runs of earlier operations of the instance, because these were cancelled while nobody looked, is stopped.
 * 3. The job is started. Killed before this is recorded: it is started again under the same id, which starts nothing (see Runner).
 * 4. The operation waits for its end, a look at a time; what the bundle says meanwhile is kept with each look. Killed here: another
 *    process looks, and reads what was said from its first line.
 * 5. Its end is recorded with what it said. Then the runner forgets it. Killed in between: the next attempt has it forgotten.
 *
 * A process whose runner is at another place can neither start the job nor look at it: it leaves 3 to 5 to those that can, until the job
 * must have ended, because its time is limited there without a broker, too. Only then it is lost, and started again where this process is.
 *
 * A job goes on when this process stops, and is stopped when its operation is cancelled or its time is up: see also OrphanedJobs.
 */
export async function runAction(ports: ActionPorts, operation: Work, request: ActionRequest): Promise<ActionResult> {
  let first: string | undefined;
  const timeoutMs = Math.min(ports.limits.timeoutMs, request.spec.timeoutMs ?? Number.POSITIVE_INFINITY);
  for (let start = 1; start <= mostStarts; start++) {
    const named = ({ idempotencyKey }: Step) => {
      const id = jobId(operation, request, start);
      return { id, idempotencyKey, place: ports.runner.place, timeoutMs };
    };
    const job = await operation.step(jobStep(start), named);
    // The same for every start: to the bundle they are tries of one action.
    first ??= job.idempotencyKey;
    const { end, output } = await runJob(ports, operation, { ...request, idempotencyKey: first }, job, start);
    if (end.kind !== "lost" && end.kind !== "try again") return { end, output };
    // Why it could not be started was said when it was tried.
    if (end.kind === "lost" && end.why !== notStarted)
      operation.describe("what ran the bundle was lost; it is started again");
    const asked = end.kind === "try again" ? end.afterSeconds : null;
    const ms = asked === null ? tryAgainMs(start) : asked * 1_000;
    await operation.sleep(`before start ${start + 1}`, ms);
  }
  const reason = `the bundle asked to be tried again, was lost, or could not be started, ${mostStarts} times`;
  return { end: { kind: "failed", reason }, output: noOutput };
}

/** One operation may unbind several bindings, one after the other: each has jobs of its own. */
function jobId({ id }: Work, { action, input }: ActionRequest, start: number): string {
  const about = isJsonObject(input.binding) ? input.binding.id : input._apb_service_binding_id;
  const binding = typeof about === "string" ? `-${createHash("sha256").update(about).digest("hex").slice(0, 8)}` : "";
  return `${id}-${action}-${start}${binding}`;
}

async function runJob(
  ports: ActionPorts,
  operation: Work,
  request: ActionRequest & { readonly idempotencyKey: string },
  job: NamedJob,
  start: number,
): Promise<JobEnd> {
  const { runner, orphans, tell } = ports;
  const { id, place, timeoutMs } = job;
  const stopIfUnwanted = () => {
    const reason: unknown = operation.signal.reason;
    // What must stop only in this process goes on in another, which finds the job again.
    const isOver = reason instanceof Interrupted && (reason.why === "cancelled" || reason.why === "deadline");
    // Where that fails, OrphanedJobs tries again.
    if (isOver) void runner.stop(id).catch(() => undefined);
  };
  const isHere = place === runner.place;
  operation.signal.addEventListener("abort", stopIfUnwanted, { once: true });
  const facts: JobFacts = { job: id, operation: operation.id, service: request.spec.name, action: request.action };
  let isWatched = false;
  try {
    const started = await operation.poll(
      startStep(start),
      async ({ elapsedMs, signal }) => {
        if (!isHere) return elsewhere(operation, elapsedMs, startWithinMs + timeoutMs + slackMs);
        if (elapsedMs > startWithinMs) return wasStarted(runner, id, signal);
        await orphans.stop(request.key);
        await orphans.attend(id, () => startJob(ports, operation, request, job, signal));
        return true;
      },
      { everyMs: elsewhereMs },
    );
    if (!started) return lost(notStarted);
    // Before it can end: what it has made is to be undone, whatever becomes of the rest.
    if (request.action === "provision") await operation.step(begunStep(start), () => true);
    if (isHere) tell({ kind: "job watched", ...facts });
    isWatched = isHere;
    // From the first line again in each attempt: to keep twice what was said changes nothing.
    const reader = new OutputReader(runner, id, ports.everGiven());
    const heard = async (output: ActionOutput, before: ActionOutput) => {
      const progress = newProgress(output, before);
      if (progress !== null) operation.describe(progress);
      if (output.state !== before.state) await request.said(output);
    };
    const ended = await operation.poll(
      endStep(start),
      async ({ elapsedMs, signal }) => {
        if (!isHere) {
          elsewhere(operation, elapsedMs, timeoutMs + slackMs);
          return lost("the machine that ran it did not come back in time");
        }
        const state = await orphans.attend(id, () => lookAndRead(runner, id, signal, () => reader.readOn(heard)));
        const { output } = reader;
        const end =
          state.kind === "unknown"
            ? lost("the runner knows nothing of it").end
            : endOf(state, output, request.spec.format);
        if (end === null) return undefined;
        tell({ kind: "job ended", ...facts, end: end.kind, cause: state.kind === "ended" ? state.cause : "lost" });
        if (end.kind !== "failed") return { end, output };
        // A log that cannot be read is no reason not to say how it ended.
        const log = keepable(await runner.log(id, keptLogBytes).catch(() => ""));
        return { end, output, ...(log !== "" && { log }) };
      },
      { everyMs: restMs },
    );
    // What it said may be secret, and is kept by the journal from here on. What cannot be removed goes when it is old.
    if (isHere) await runner.forget(id).catch(() => undefined);
    return ended as JobEnd;
  } finally {
    if (isWatched) tell({ kind: "job left", ...facts });
    operation.signal.removeEventListener("abort", stopIfUnwanted);
  }
}

/**
 * Whether a job, for whose start it is too late, was started by a process that was killed before it could record that. If not, it will not
 * be: who has only prepared it finds it stopped.
 */
async function wasStarted(runner: Runner, id: string, signal: AbortSignal): Promise<boolean> {
  if ((await runner.look(id, { waitMs: 0, signal })).kind !== "unknown") return true;
  await runner.stop(id);
  return false;
}

/** Waits for a job's end, and reads meanwhile: who polls the operation is told how far it is while it runs, and not when it is over. */
async function lookAndRead(
  runner: Runner,
  id: string,
  signal: AbortSignal,
  readOn: () => Promise<unknown>,
): Promise<JobState> {
  for (let leftMs = waitMs; ; leftMs -= readEveryMs) {
    const state = await runner.look(id, { waitMs: Math.min(leftMs, readEveryMs), signal });
    await readOn();
    if (state.kind !== "running" || leftMs <= readEveryMs) return state;
  }
}

interface JobEnd {
  readonly end: ActionEnd;
  readonly output: ActionOutput;
  /** Without secrets. */
  readonly log?: string;
}

/** Every store keeps it as it is: without NUL. A log is read from bytes, so that all else in it is a character. */
function keepable(text: string): string {
  return text.replaceAll("\0", "\ufffd");
}

function lost(why: string, output = noOutput): JobEnd {
  return { end: { kind: "lost", why }, output };
}

/** Leaves it to those at the job's place, until these must be done with it: then it answers false. */
function elsewhere(operation: Pick<Work, "describe">, elapsedMs: number, untilMs: number): false {
  if (elapsedMs > untilMs) return false;
  const waits = "waits for the machine that has begun it";
  operation.describe(waits);
  throw new RetryLater(waits, { afterMs: elsewhereMs });
}

async function startJob(
  { runner, fetch, limits }: ActionPorts,
  operation: Work,
  {
    action,
    spec,
    key,
    input,
    secrets,
    idempotencyKey,
    ...request
  }: ActionRequest & { readonly idempotencyKey: string },
  { id, timeoutMs }: NamedJob,
  signal: AbortSignal,
): Promise<void> {
  const artifact = await fetch(request.artifact, signal).catch((error: unknown) => cannotStart(operation, error));
  const job: Job = {
    ...{ id, action, spec, artifact, operation: { key, id: operation.id } },
    input: { action, idempotencyKey, bundleVersion: spec.bundleVersion, ...input },
    ...(Object.keys(secrets).length > 0 && { secrets }),
    limits: { ...limits, timeoutMs, network: limits.network && spec.network },
  };
  await runner.start(job, signal).catch((error: unknown) => cannotStart(operation, error));
}

/** What will not be otherwise by itself ends the operation with a word for the user; the rest is tried again, and said meanwhile. */
function cannotStart(operation: Work, error: unknown): never {
  const isGone =
    (error instanceof RunnerError && error.failure === "image not found") ||
    (error instanceof SourceError && error.failure === "not found") ||
    error instanceof ArtifactGone;
  // F5-34: whoever puts it back may ask again.
  if (isGone) throw new Failed(`the bundle cannot be run, artifact gone: ${error.message}`, { cause: error });
  if (error instanceof RunnerError && error.failure === "wrong artifact")
    throw new Failed(`the bundle cannot be run: ${error.message}`, { cause: error });
  if (error instanceof Error) operation.describe(`tried again: ${error.message}`);
  throw error;
}

/** What a job said that nobody has recorded. */
export type LastWords = Pick<ActionOutput, "state" | "credentials">;

/**
 * Stops what an operation that did not end well has left running, by what its steps recorded, before it is undone. Answers whether any of
 * it may have begun. At another place than the job's that cannot be done: it waits for those who can, or until the job must have ended.
 *
 * A job may say what it has made as late as when it is told to end: that is recorded first, then kept where the next one who undoes it finds it,
 * too, and only then the runner forgets the job. Killed in between: the next attempt goes on from what is recorded.
 */
export async function stopJobsOf(
  { runner }: Pick<ActionPorts, "runner">,
  operation: Pick<Work, "poll" | "describe">,
  steps: ReadonlyMap<string, Json>,
  keep: (words: LastWords) => Promise<void>,
): Promise<boolean> {
  let hasBegun = false;
  for (let start = 1; start <= mostStarts; start++) {
    const job = namedJob(steps.get(jobStep(start)));
    if (job === undefined) break;
    const hasEnded = steps.has(endStep(start));
    const stopped = hasEnded ? false : await stopJob(runner, operation, job);
    if (typeof stopped === "object") {
      if (Object.keys(stopped.state).length > 0 || stopped.credentials !== null) await keep(stopped);
      // What cannot be removed now, OrphanedJobs finds again.
      await runner.forget(job.id).catch(() => undefined);
    }
    // Steps of several operations may be among these: one that named its job and could not start it hides the job of an earlier one by the
    // same name, of which the runner is not asked then. What that one has recorded beyond tells of it. A start that was given up has begun nothing.
    const wasStarted = steps.has(begunStep(start)) || steps.get(startStep(start)) === true;
    if (stopped !== false || hasEnded || wasStarted) hasBegun = true;
  }
  return hasBegun;
}

/** Answers with what it said, if it has begun here; else whether it may have begun. */
async function stopJob(
  runner: Runner,
  operation: Pick<Work, "poll" | "describe">,
  { id, place, timeoutMs }: NamedJob,
): Promise<boolean | LastWords> {
  return operation.poll(
    `stop ${id}`,
    async ({ elapsedMs, signal }): Promise<boolean | LastWords> => {
      if (place !== runner.place) return !elsewhere(operation, elapsedMs, timeoutMs + slackMs);
      await runner.stop(id);
      if ((await runner.look(id, { waitMs: 0, signal })).kind === "unknown") return false;
      const reader = new OutputReader(runner, id, []);
      await reader.readOn(() => undefined);
      const { state, credentials } = reader.output;
      return { state, credentials };
    },
    { everyMs: elsewhereMs },
  );
}

function namedJob(recorded: Json | undefined): NamedJob | undefined {
  if (!isJsonObject(recorded)) return undefined;
  const { id, place, timeoutMs } = recorded;
  if (typeof id !== "string" || typeof place !== "string" || typeof timeoutMs !== "number") return undefined;
  return { id, place, timeoutMs };
}
