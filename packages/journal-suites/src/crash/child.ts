import { writeSync } from "node:fs";
import type {
  Attribution,
  CrashPoint,
  Decide,
  JournalEvent,
  Json,
  Look,
  OpenOperation,
  Operation,
  OperationKind,
  Outcome,
  Resource,
  ResourceChange,
} from "@osbert/journal";
import { type Journal, type JournalOptions, openJournal, Permanent, RetryLater, systemClock } from "@osbert/journal";
import type { Store } from "@osbert/journal/store";
import type { ChildCommand, ChildConfig, StoreModule } from "./child-config.js";
import { setClockRate } from "./clock-rate.js";
import { type DumpedResource, dumpOf } from "./dump.js";
import { boundedAttempts, type Request, type Script, scenarioOf } from "./scenario.js";
import { Turn } from "./turn.js";
import { type ChildEvent, machineMs } from "./witness.js";

/**
 * The program that is killed: an engine that does what a scenario says and tells a witness of it, on file descriptor 3. It is started in
 * plain Node with its configuration as the only argument, and told on standard input what to accept.
 */
const config = JSON.parse(process.argv[2] ?? "null") as ChildConfig;

type RunTask = Extract<ChildConfig["task"], { kind: "run" }>;

async function dump(from: Store): Promise<void> {
  await from.open();
  for await (const resource of dumpOf(from)) tell(resource);
  await from.close();
  process.exit(0);
}

async function rival(on: Store): Promise<void> {
  try {
    await on.open();
    witness({ kind: "rival", refusedBy: null });
    await on.close();
  } catch (error) {
    witness({ kind: "rival", refusedBy: wordsOf(error) });
  }
  process.exit(0);
}

async function run(task: RunTask): Promise<void> {
  const { scripts, requests } = scenarioOf(task.scenario);
  const turn = new Turn();
  let attempts = 0;
  let effects = 0;
  const kind: OperationKind = {
    lane: (input) => scriptOf(input).lane,
    deadlineMs: null,
    backoff: { firstMs: 10, factor: 2, longestMs: 60 },
    run: runScript,
    settle: (resource, operation, outcome) => settled(resource, operation, outcome, scripts),
  };
  const options: Omit<JournalOptions, "store"> = {
    kinds: { work: kind, bounded: { ...kind, maxAttempts: boundedAttempts } },
    concurrency: 48,
    laneConcurrency: 12,
    leaseMs: task.leaseMs,
    timeoutMs: task.timeoutMs,
    retention: task.retention,
    clock: { monotonicMs: () => turn.read(), after: (ms, wake) => systemClock.after(ms, wake) },
    reached: killerAt(task.dieAt),
    observe,
  };
  const journal = await opened(options, task.keepsTrying);
  witness({ kind: "started" });
  listen((command) => {
    switch (command.kind) {
      case "accept":
        return accept(journal, requests[command.request] as Request);
      case "cancel":
        return cancel(journal, scripts[command.n] as Script, command.id);
      case "finish":
        return finish(journal);
    }
  });

  function scriptOf(input: Json): Script {
    return scripts[(input as { n: number }).n] as Script;
  }

  async function runScript(operation: Operation): Promise<unknown> {
    const script = scriptOf(operation.input);
    const { n } = script;
    const attempt = `${config.process}.${++attempts}`;
    const recorded: Record<string, string> = {};
    for (const { name } of script.steps) {
      const value = operation.recorded(name);
      if (value !== undefined) recorded[name] = value as string;
    }
    witness({ kind: "attempt begins", n, id: operation.id, attempt, recorded, turnAt: turn.at });
    let how = "returned";
    try {
      return await runSteps(operation, script, attempt);
    } catch (error) {
      how = error instanceof Error ? `threw ${error.name}` : "threw";
      throw error;
    } finally {
      witness({ kind: "attempt ends", n, attempt, how });
    }
  }

  async function runSteps(operation: Operation, script: Script, attempt: string): Promise<readonly string[]> {
    const { n } = script;
    const values: string[] = [];
    if (script.looks > 0) {
      const look = ({ looks }: Look) => {
        witness({ kind: "looks", n, before: looks });
        return looks < script.looks ? undefined : looks;
      };
      await operation.poll("something is there", look, { everyMs: pollMs });
    }
    for (const [index, { name, effectMs, sleepMs, describes }] of script.steps.entries()) {
      const isLast = index === script.steps.length - 1;
      if (describes) operation.describe(`comes to ${name}`);
      if (sleepMs !== null) {
        const wait = `before ${name}`;
        witness({ kind: "wait begins", n, wait, ms: sleepMs });
        await operation.sleep(wait, sleepMs);
        witness({ kind: "wait over", n, wait });
      }
      const trouble = script.troubles.find((of) => of.attempt === operation.attempt && of.step === index)?.kind;
      let ran = false;
      const value = await operation.step(name, async ({ idempotencyKey, signal }) => {
        if (trouble === "before its effect") throw new Error("trouble before the effect");
        if (trouble === "later") throw new RetryLater("not yet", { afterMs: 15 });
        if (isLast && script.ending === "waits too long") throw new RetryLater("never", { afterMs: 20 });
        ran = true;
        witness({ kind: "effect begins", n, attempt, step: name, idempotencyKey, turnAt: turn.at });
        if (isLast && script.ending === "hangs") await aborted(signal);
        else if (effectMs > 0) await new Promise((resolve) => setTimeout(resolve, effectMs));
        const result = `${config.process}.${++effects}`;
        witness({ kind: "effect ends", n, attempt, step: name, value: result });
        if (trouble === "after its effect") throw new Error("trouble after the effect");
        if (isLast && script.ending === "exhausts") throw new Error("trouble every time");
        return result;
      });
      witness({ kind: "step done", n, attempt, step: name, ran, value });
      values.push(value);
    }
    if (script.ledger !== null) await noteOn(script.ledger, operation);
    if (script.ending === "fails") throw new Permanent("it is scripted to fail", { details: { values } });
    return values;
  }
}

const pollMs = 25;

/** An effect on another resource: made once, the part there says once. */
async function noteOn(ledger: string, operation: Operation): Promise<void> {
  const part = `taken/${operation.key}/${operation.id}`;
  const take: Decide<number> = (resource) => {
    const times = Number(resource?.parts.get(part) ?? 0) + 1;
    return { result: times, change: { parts: { [part]: times } } };
  };
  await operation.transact("take", ledger, take, { parts: [part] });
}

async function opened(options: Omit<JournalOptions, "store">, keepsTrying: boolean): Promise<Journal> {
  for (;;) {
    try {
      const journal = await openJournal({ ...options, store: await openStore(config.store.config) });
      await journal.start();
      return journal;
    } catch (error) {
      if (!keepsTrying) throw error;
      witness({ kind: "not opened", why: wordsOf(error) });
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }
}

class Refused extends Error {}

async function accept(journal: Journal, request: Request): Promise<void> {
  const { key, number, scripts, opens } = request;
  const [first] = scripts;
  if (first === undefined) return;
  // A request that was committed before its process died is asked again, because nobody was told: it must not count twice.
  const isRepeat = (resource: Resource | undefined) =>
    opens ? (resource?.data as { born?: number } | null)?.born === first.n : resource?.parts.has(partOf(first));
  const decide: Decide<"accepted" | "repeated"> = (resource) => {
    if (request.refused) throw new Refused("it is scripted to be refused");
    if (isRepeat(resource)) return { result: "repeated" };
    const change: ResourceChange = {
      ...(opens && { data: { born: first.n } }),
      labels: { suite: "crash" },
      parts: Object.fromEntries(scripts.map((script) => [partOf(script), { n: script.n }])),
      accept: scripts.map((script) => ({
        kind: script.kind,
        mode: script.mode,
        part: partOf(script),
        input: { n: script.n },
        deadlineMs: script.deadlineMs,
      })),
    };
    return { result: "accepted", change };
  };
  try {
    const options = opens ? { likelyNew: true } : { parts: [partOf(first)] };
    const { result, accepted } = await journal.transact(key, decide, { by: by("caller", first.n), ...options });
    witness({ kind: "accepted", request: number, ids: result === "accepted" ? accepted.map(({ id }) => id) : null });
  } catch (error) {
    if (error instanceof Refused) witness({ kind: "refused", request: number });
    else witness({ kind: "not accepted", request: number, why: wordsOf(error) });
  }
}

async function cancel(journal: Journal, { key, n }: Script, id: string): Promise<void> {
  try {
    witness({ kind: "cancel answered", n, answer: await journal.cancel(key, id, "scripted", by("canceller", n)) });
  } catch (error) {
    witness({ kind: "cancel failed", n, why: wordsOf(error) });
  }
}

async function finish(journal: Journal): Promise<void> {
  // An error leaves it open whether something is open.
  while (await hasOpen(journal).catch(() => true)) await new Promise((resolve) => setTimeout(resolve, 50));
  witness({ kind: "quiet" });
  await journal.stop();
  process.exit(0);
}

async function hasOpen(journal: Journal): Promise<boolean> {
  for (let after: string | null | undefined; after !== null; ) {
    const { items, next } = await journal.find({ ...(after !== undefined && { after }), limit: 1_000 });
    if (items.some(({ open, queued }) => open.length + queued > 0)) return true;
    after = next;
  }
  return false;
}

/** The end of an operation is written beside its resource, where retention does not take it: what was accepted can be looked for. */
function settled(
  resource: Resource,
  operation: OpenOperation,
  outcome: Outcome,
  scripts: readonly Script[],
): ResourceChange {
  const { part } = operation;
  const before = part === null ? undefined : (resource.parts.get(part) as { n: number; ends?: Json[] } | undefined);
  if (part === null || before === undefined) return {};
  const end: Json = { id: operation.id, ...(outcome as unknown as Record<string, Json>) };
  return {
    parts: { [part]: { n: before.n, ends: [...(before.ends ?? []), end] } },
    ...(scripts[before.n]?.leaves && { gone: true }),
  };
}

function by(role: "caller" | "canceller", n: number): Attribution {
  return {
    actor: { type: "user", subject: `${role}-${n}` },
    cause: "the crash suite",
    requestId: `${role}-request-${n}`,
  };
}

function partOf({ n }: Script): string {
  return `operation/${n}`;
}

function killerAt(dieAt: RunTask["dieAt"]): (point: CrashPoint) => void {
  let times = 0;
  return (point) => {
    if (point !== dieAt?.point || ++times < dieAt.nth) return;
    witness({ kind: "dies at", point });
    process.kill(process.pid, "SIGKILL");
  };
}

/** What helps to understand a violation. */
const telling: readonly JournalEvent["kind"][] = [
  "lease lost",
  "set aside",
  "presence lost",
  "abandoned",
  "unknown kind",
  "store failed",
  "taken over",
];

function observe(event: JournalEvent): void {
  if (event.kind === "settled") {
    witness({ kind: "settled", id: event.operation, key: event.key, outcome: event.outcome });
  } else if (telling.includes(event.kind)) {
    const words = (_: string, value: unknown) => (value instanceof Error ? wordsOf(value) : value);
    witness({ kind: "observed", what: JSON.stringify(event, words) });
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}

function listen(obey: (command: ChildCommand) => Promise<void>): void {
  let rest = "";
  process.stdin.on("end", () => process.exit(1)); // The parent is gone.
  process.stdin.setEncoding("utf8").on("data", (text: string) => {
    const lines = (rest + text).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) void obey(JSON.parse(line) as ChildCommand);
  });
}

function witness(event: ChildEvent): void {
  tell({ at: machineMs(), process: config.process, ...event });
}

function tell(what: (ChildEvent & { at: number; process: number }) | DumpedResource): void {
  const bytes = Buffer.from(`${JSON.stringify(what)}\n`);
  for (let written = 0; written < bytes.length; ) {
    try {
      written += writeSync(3, bytes, written);
    } catch (error) {
      // The parent reads as fast as it can; nothing may be left out.
      if ((error as NodeJS.ErrnoException).code !== "EAGAIN") throw error;
    }
  }
}

function wordsOf(error: unknown): string {
  return error instanceof Error ? `${error.name}: ${error.message}` : String(error);
}

const { openStore } = (await import(config.store.module)) as StoreModule;
switch (config.task.kind) {
  case "run":
    setClockRate(config.task.clockRate);
    await run(config.task);
    break;
  case "dump":
    await dump(await openStore(config.store.config));
    break;
  case "rival":
    await rival(await openStore(config.store.config));
}
