import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished } from "vitest";
import type { MisbehavingBroker } from "../src/testing/index.js";
import type { CrashConfig, CrashLine, CrashReport } from "./crash-story.js";

/** A process of crash-platform.ts, and how it ends. */
export interface Crashing {
  readonly child: ChildProcess;
  readonly end: Promise<"killed" | CrashReport>;
}

export function startCrashing(config: CrashConfig): Crashing {
  const program = fileURLToPath(new URL("crash-platform.ts", import.meta.url));
  const flags = ["--conditions=@osbert/source", "--import", "tsx"];
  const child = spawn(process.execPath, [...flags, program, JSON.stringify(config)], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  // One that stands still is killed, too.
  onTestFinished(() => void child.kill("SIGKILL"));
  let [told, complained] = ["", ""];
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    told += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    complained = (complained + text).slice(-2_000);
  });
  const end = async (): Promise<"killed" | CrashReport> => {
    const [code, signal] = (await once(child, "close")) as [number | null, NodeJS.Signals | null];
    if (signal === "SIGKILL") return "killed";
    if (code !== 0) throw new Error(`the platform ended with ${code}: ${complained}`);
    return JSON.parse(told) as CrashReport;
  };
  return { child, end: end() };
}

/** What has to hold whatever happened. */
export function checkReport(broker: MisbehavingBroker, { known, ready, ledger, journals }: CrashReport): void {
  const there = broker
    .state()
    .instances.flatMap(({ id, bindings }) => [id, ...bindings.map((binding) => `${id}/${binding.id}`)]);
  const accounted = new Set([...known, ...ledger]);
  expect(there.filter((id) => !accounted.has(id))).toEqual([]);
  expect(ready.filter((id) => !there.includes(id))).toEqual([]);
  // No identity of one author on another's call: what is asked for one instance is asked by one of them.
  const authors = new Map<string, Set<string>>();
  for (const { path, headers } of broker.requests()) {
    const [, instance] = /^\/v2\/service_instances\/([^/]+)/.exec(path) ?? [];
    const identity = headers["x-broker-api-originating-identity"];
    if (instance === undefined || identity === undefined) continue;
    authors.set(instance, (authors.get(instance) ?? new Set()).add(String(identity)));
  }
  for (const [instance, identities] of authors) expect(identities.size, instance).toBe(1);
  for (const [name, lines] of Object.entries(journals)) checkJournal(name, lines);
}

/** Every intent has one outcome, or is held; what is not done beside anything else has ended in the order in which it was asked for. */
export function checkJournal(name: string, lines: readonly CrashLine[]): void {
  const intents = lines.filter(({ family }) => family === "intent");
  const outcomes = lines.filter(({ family }) => family === "outcome");
  expect(new Set(intents.map(({ operation }) => operation)).size, name).toBe(intents.length);
  for (const { operation, summary } of intents) {
    const decided = lines.filter((line) => line.operation === operation && line.family === "decision").at(-1);
    const count = outcomes.filter((outcome) => outcome.operation === operation).length;
    expect(count, `${name}: ${summary}`).toBe(decided?.kind === "held" && count === 0 ? 0 : 1);
  }
  const isAlone = (operation: string | null) =>
    intents.some((intent) => intent.operation === operation && /create|update|delete/.test(intent.kind));
  const asked = intents.map(({ operation }) => operation).filter(isAlone);
  const done = outcomes
    .filter(({ operation, kind }) => kind === "succeeded" && isAlone(operation))
    .map(({ operation }) => asked.indexOf(operation));
  expect(done, name).toEqual([...done].sort((one, other) => one - other));
}
