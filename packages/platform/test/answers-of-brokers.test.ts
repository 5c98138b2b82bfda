import { describe, expect, test } from "vitest";
import { type MisbehaviourName, namedMisbehaviours } from "../src/testing/index.js";
import { type ExecutionLab, executionLab } from "./execution-lab.js";

/**
 * Every misbehaviour by every call that changes something: whatever a broker answers, each intent has an outcome, nothing is at the broker that nobody
 * knows, nothing was made twice, and what exists is not deleted because of a 409.
 */
const calls = ["provision", "update", "deprovision", "bind", "unbind"] as const;
type Call = (typeof calls)[number];

/** What never answers or never ends is waited for until the platform gives up; of all else, nothing hangs on a time. */
const timeoutOf = (name: MisbehaviourName) => (name.includes("hang") ? 1_000 : 30_000);
const endless: ReadonlySet<string> = new Set(["async-endless", "async-forgotten", "async-gone", "async-unknown-state"]);
const names = (Object.keys(namedMisbehaviours) as MisbehaviourName[]).filter((name) => name !== "slow-bytes");

describe.each(calls)("E4: %s", (call) => {
  // "misbehaving" lets everything be fetched, "unfetchable" nothing: what was to be made and is lost is found out in two ways.
  const isMade = call === "provision" || call === "bind";
  test.each(isMade ? ["misbehaving", "unfetchable"] : ["misbehaving"])(
    "of what is %s, answered once in each of all ways",
    async (offering) => {
      const ends = await inGroups(names, (name) => once(call, name, offering));
      expect(ends.filter((end) => end !== undefined)).toEqual([]);
    },
  );
});

/** So many at a time: each has a broker and a journal of its own. */
async function inGroups<T, Result>(all: readonly T[], work: (one: T) => Promise<Result>): Promise<readonly Result[]> {
  const done: Result[] = [];
  for (let at = 0; at < all.length; at += 24) done.push(...(await Promise.all(all.slice(at, at + 24).map(work))));
  return done;
}

/** Answers what is wrong, with its story. */
async function once(call: Call, name: MisbehaviourName, offering: string): Promise<string | undefined> {
  const lab = await executionLab({
    offering,
    timeoutMs: timeoutOf(name),
    maximumPollingSeconds: endless.has(name) ? 1 : 60,
    pauses: { failedDelete: [20] },
    rules: [{ call, do: [name] }],
  });
  const outcome = await play(lab, call).catch((error: Error) => error);
  if (outcome instanceof Error) return `${call} ${name} of what is ${offering}: ${outcome.message}`;
  const kind = outcome.kind === "failed" ? (outcome.failure?.class ?? outcome.error.message) : outcome.kind;
  const story = `${call} ${name} of what is ${offering} is ${kind}`;
  try {
    expect(expected(call, name, offering), story).toContain(kind);
    await lab.quiet();
    if (!liesAboutTheEnd(call, name)) await lab.checkNothingUnknown();
    if (kind === "succeeded" && !liesAboutTheEnd(call, name)) check(lab, call);
    if (kind === "conflict") expect(lab.sent().filter((line) => line.startsWith("DELETE"))).toEqual([]);
    if (liesAboutTheEnd(call, name)) return undefined;
    // An operation that nobody polls to its end keeps this broker busy for ever.
    if (name.startsWith("async-") && kind !== "succeeded") return undefined;
    // What a broker made and answered 409 to is never deleted, and keeps its instance.
    if (name === "done-409" && call === "bind") return undefined;
    // Whatever came before: what is known can be deleted, and then nothing is left but what waits for a person.
    if ((await lab.binding("db", "app")) !== undefined) await lab.ended("db", await lab.unbind("db", "app"));
    expect(await lab.ended("db", await lab.delete("db"))).toMatchObject({ kind: "succeeded" });
    await lab.quiet();
    await lab.checkNothingUnknown();
  } catch (error) {
    return `${story}: ${String(error)}`;
  }
  return undefined;
}

async function play(lab: ExecutionLab, call: Call) {
  const created = await lab.ended("db", await lab.create("db", { parameters: '{"size":1}' }));
  if (call === "provision") return created;
  if (call === "update") return lab.ended("db", await lab.update("db", { parameters: '{"size":2}' }));
  if (call === "deprovision") return lab.ended("db", await lab.delete("db"));
  const bound = await lab.ended("db", await lab.bind("db", "app"));
  if (call === "bind") return bound;
  return lab.ended("db", await lab.unbind("db", "app"));
}

/** The broker has what the platform says that there is, once. */
function check(lab: ExecutionLab, call: Call): void {
  const { instances } = lab.broker.state();
  expect(instances.length).toBe(call === "deprovision" ? 0 : 1);
  const bindings = instances.flatMap((one) => one.bindings);
  expect(bindings.length).toBe(call === "bind" ? 1 : 0);
  if (call === "update") expect(instances[0]?.parameters).toEqual({ size: 2 });
}

/** A broker that says that what it deletes is gone, and goes on with it: a platform has to believe that (P-POLL-05). */
function liesAboutTheEnd(call: Call, name: MisbehaviourName): boolean {
  return (call === "deprovision" || call === "unbind") && name === "async-gone";
}

/** What may become of an intent whose call is once answered so. */
function expected(call: Call, name: MisbehaviourName, offering: string): readonly string[] {
  const removes = call === "deprovision" || call === "unbind";
  const { class: found } = namedMisbehaviours[name];
  if (name in polled) return polled[name]?.(call) ?? [];
  if (call === "bind" && (name === "credentials-a-text" || name === "drain-unasked")) return ["unusable answer"];
  // It is asked again, and then the broker does what it should, or says 410.
  if (removes && (found === "conflict" || found === "malformed 200" || name === "404")) return ["succeeded"];
  switch (found) {
    case "malformed 200":
      return call !== "update" && offering === "misbehaving" ? ["succeeded"] : ["malformed 200"];
    case "rejected":
    case "conflict":
    case "needs async":
      return [found];
    case "needs refresh":
      return [call === "provision" || call === "update" ? found : "rejected"];
    case "needs app":
      return [call === "bind" ? found : "rejected"];
    case "done":
    case "running":
    case "busy":
    case "unauthorized":
    case "not found":
    case "not sent":
    case "unknown":
    case null:
      return ["succeeded"];
  }
}

const failed = () => ["operation failed"];
const removed = (call: Call) => call === "deprovision" || call === "unbind";
const tried = (call: Call) => (removed(call) ? ["succeeded"] : ["operation failed"]);
const never = () => ["operation timed out", "operation failed"];

/** What is answered with 202 ends as its polls say. A delete that failed is tried again. */
const polled: Partial<Record<MisbehaviourName, (call: Call) => readonly string[]>> = {
  "async-fails": tried,
  "async-fails-unusable": tried,
  "async-fails-for-good": tried,
  "async-endless": never,
  "async-forgotten": (call) => (removed(call) ? ["succeeded", ...never()] : never()),
  "async-gone": (call) => (removed(call) ? ["succeeded"] : never()),
  "async-polls-refused": failed,
  "async-unknown-state": never,
};
