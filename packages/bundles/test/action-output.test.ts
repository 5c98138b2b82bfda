import { expect, test, vi } from "vitest";
import { type ActionOutput, endOf, noOutput, readOutput } from "../src/runners/action-output.js";
import type { JobState } from "../src/runners/runner.js";

const exit = (exitCode: number): JobState => ({ kind: "ended", exitCode, cause: "exit" });
const say = (...values: readonly unknown[]) =>
  readOutput(
    noOutput,
    values.map((value) => JSON.stringify(value)),
  );

test("what a bundle says is kept: the latest progress, the state merged key by key, credentials, dashboard", () => {
  const output = say(
    { progress: "creating" },
    { state: { host: "a", port: 1 } },
    { progress: "created" },
    { state: { port: 2 } },
    { credentials: { password: "p" } },
    { dashboard: "https://example.org/x" },
  );
  expect(output).toEqual({
    progress: "created",
    state: { host: "a", port: 2 },
    credentials: { password: "p" },
    dashboard: "https://example.org/x",
    refused: null,
    retryAfterSeconds: null,
    lines: 6,
    stateLines: 2,
    rubbish: null,
  } satisfies ActionOutput);
});

test("output that is read in parts is the same as output that is read at once", () => {
  const lines = ['{"state":{"a":1}}', "", '{"state":{"b":2}}', "oops", '{"progress":"x"}'];
  const parts = lines.reduce((before, line) => readOutput(before, [line]), noOutput);
  expect(parts).toEqual(readOutput(noOutput, lines));
  expect(parts.rubbish?.line).toBe(4);
});

test.each([
  ["text", "PASSWORD=hunter2", "is not JSON; print for people on standard error"],
  ["half of a line", '{"credentials":{"password":"hunter2"', "is not JSON; print for people on standard error"],
  ["a list", '["hunter2"]', "is not a JSON object"],
  ["nothing known", '{"hunter2":1}', "is not an object with exactly one of"],
  ["two at once", '{"progress":"hunter2","state":{}}', "is not an object with exactly one of"],
  ["a name of every object", '{"constructor":"hunter2"}', "is not an object with exactly one of"],
  ["progress as a number", '{"progress":1}', 'has a "progress" that is not a text'],
  ["state as a text", '{"state":"hunter2"}', 'has a "state" that is not an object'],
  ["credentials as a list", '{"credentials":["hunter2"]}', 'has a "credentials" that is not an object'],
  ["a script as a dashboard", '{"dashboard":"javascript:hunter2"}', "that is not an http or https address"],
  ["a time before now", '{"retryAfterSeconds":-1}', "that is not a number from 0 on"],
  ["too long", `{"progress":"${"hunter2".repeat(200_000)}"}`, "is longer than 1048576 characters"],
  ["too large a state", `{"state":{"a":"${"x".repeat(300_000)}"}}`, 'makes "state" larger than 262144 characters'],
  ["a number that is none", '{"state":{"hunter2":1e999}}', "has a number in it that is too large"],
  ["too deep", `{"state":{"a":${"[".repeat(100_000)}${"]".repeat(100_000)}}}`, "is nested deeper than 64"],
])("rubbish (%s) fails the action with the number of the line, and never with its content", (_, line, why) => {
  const output = readOutput(noOutput, ['{"progress":"fine"}', line, "more rubbish"]);
  const end = endOf(exit(0), output);
  expect(end).toEqual({ kind: "failed", reason: expect.stringContaining(`line 2 of the bundle's standard output`) });
  expect(end).toEqual({ kind: "failed", reason: expect.stringContaining(why) });
  expect(JSON.stringify(output) + JSON.stringify(end)).not.toContain("hunter2");
});

test("a state that grows by many small lines is bounded, and keeps what it had", () => {
  const lines = Array.from({ length: 40 }, (_, at) => JSON.stringify({ state: { [`key${at}`]: "x".repeat(10_000) } }));
  const output = readOutput(noOutput, lines);
  expect(output.rubbish?.line).toBe(27);
  expect(Object.keys(output.state)).toHaveLength(26);
});

test("a state is told in at most 1,000 lines: the next is rubbish, and keeps nothing", () => {
  const lines = Array.from({ length: 20_000 }, (_, at) => JSON.stringify({ state: { at } }));
  const output = readOutput(noOutput, lines);
  expect(output.rubbish).toEqual({ line: 1_001, why: expect.stringContaining("1000") });
  expect(output.state).toEqual({ at: 999 });
  // Also when it is read in parts.
  const parts = [lines.slice(0, 600), lines.slice(600, 1_200), lines.slice(1_200)];
  expect(parts.reduce((before, part) => readOutput(before, part), noOutput)).toEqual(output);
});

test("what a line of state costs is its own size, not that of the state so far", () => {
  const large = Object.fromEntries(Array.from({ length: 18_000 }, (_, at) => [`k${at}`, at]));
  const before = say({ state: large });
  const lines = [...Array.from({ length: 998 }, () => '{"state":{}}'), '{"state":{"k0":"new"}}'];
  const stringify = vi.spyOn(JSON, "stringify");
  try {
    const output = readOutput(before, lines);
    const characters = stringify.mock.results.reduce((sum, { value }) => sum + String(value).length, 0);
    expect(output).toMatchObject({ rubbish: null, stateLines: 1_000, state: { k0: "new", k17999: 17_999 } });
    // The state once, and then what the lines add.
    expect(characters).toBeLessThan(262_144);
  } finally {
    stringify.mockRestore();
  }
});

test.each([
  ["one key", ["a"]],
  ["two keys", ["a", "b"]],
  ["a key that is escaped", ['"\n']],
])("the size of a state is that of its JSON, to the character: %s", (_, keys) => {
  const [first = "", ...others] = keys;
  const rest = Object.fromEntries(others.map((key) => [key, 1]));
  const most = 262_144 - JSON.stringify({ ...rest, [first]: "" }).length;
  const fill = (length: number) =>
    say({ state: rest }, { state: { [first]: "old" } }, { state: { [first]: "x".repeat(length) } });
  expect(fill(most).rubbish).toBeNull();
  expect(fill(most + 1).rubbish?.line).toBe(3);
  expect(fill(most + 1).state).toEqual({ ...rest, [first]: "old" });
});

test("a key __proto__ is a key like any other", () => {
  const output = readOutput(noOutput, ['{"state":{"__proto__":{"a":1}}}', '{"state":{"b":2}}']);
  expect(JSON.stringify(output.state)).toBe('{"__proto__":{"a":1},"b":2}');
  expect(Object.getPrototypeOf({})).not.toHaveProperty("a");
});

test("texts for users are short and have no control characters", () => {
  const output = say({ progress: `a\u001b[31m\nb${"c".repeat(5_000)}` });
  expect(output.progress).toHaveLength(1_000);
  expect(output.progress?.startsWith("a [31m b")).toBe(true);
});

test.each<[string, JobState, ActionOutput, ReturnType<typeof endOf>]>([
  ["exit 0", exit(0), noOutput, { kind: "done" }],
  ["exit 8", exit(8), noOutput, { kind: "not known" }],
  ["exit 8 after text, as Ansible prints it", exit(8), readOutput(noOutput, ["PLAY"]), { kind: "not known" }],
  ["exit 64", exit(64), say({ refused: "too big" }), { kind: "refused", text: "too big" }],
  ["exit 64 without a text", exit(64), noOutput, { kind: "refused", text: "the bundle refused it without a reason" }],
  ["a text of a refusal with exit 0", exit(0), say({ refused: "too big" }), { kind: "done" }],
  ["exit 75", exit(75), say({ retryAfterSeconds: 5 }), { kind: "try again", afterSeconds: 5 }],
  ["exit 75 without a time", exit(75), noOutput, { kind: "try again", afterSeconds: null }],
  ["exit 75, in a year", exit(75), say({ retryAfterSeconds: 3e7 }), { kind: "try again", afterSeconds: 86_400 }],
  ["exit 1", exit(1), noOutput, { kind: "failed", reason: "the bundle ended with exit code 1" }],
  ["lost", { kind: "lost", why: "restart" }, noOutput, { kind: "lost", why: "restart" }],
  ["running", { kind: "running" }, noOutput, null],
  ["unknown", { kind: "unknown" }, noOutput, null],
  [
    "out of time, although it then exited with 0",
    { kind: "ended", exitCode: 0, cause: "timeout" },
    noOutput,
    { kind: "failed", reason: "the bundle took longer than it may, and was ended" },
  ],
])("%s", (_, state, output, end) => {
  expect(endOf(state, output)).toEqual(end);
});

test("no secret is in texts for people, not even the half of one at their longest", () => {
  const secrets = [{ server: { password: "hunter2-of-the-operator" } }];
  const long = `${"x".repeat(990)}hunter2-of-the-operator`;
  const lines = [{ progress: long }, { refused: "admin:hunter2-of-the-operator" }].map((line) => JSON.stringify(line));
  const { progress, refused } = readOutput(noOutput, lines, secrets);
  expect([progress?.slice(990), refused]).toEqual(["***", "admin:***"]);
});
