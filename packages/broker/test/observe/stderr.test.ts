import { spawn } from "node:child_process";
import { createRequire } from "node:module";
import { text } from "node:stream/consumers";
import { fileURLToPath, pathToFileURL } from "node:url";
import { memoryStore } from "@osbert/journal/memory";
import { manualClock } from "@osbert/journal/testing";
import { beforeEach, expect, type MockInstance, onTestFinished, test, vi } from "vitest";
import { createBroker, defineService, Failed, type Work } from "../../src/index.js";
import type { BrokerEvent } from "../../src/observe/event.js";
import { logTo, metrics, type RequestAnswered } from "../../src/observe/index.js";
import { lineOf, mayBeLoud } from "../../src/observe/log-to.js";
import { brokerStderrLog } from "../../src/observe/stderr-log.js";
import { type TestBroker, type TestBrokerOptions, testBroker } from "../../src/testing/index.js";
import { platform, watchedBroker } from "./watched-broker.js";

let written: MockInstance<typeof process.stderr.write>;

beforeEach(() => {
  written = vi.spyOn(process.stderr, "write").mockReturnValue(true);
  onTestFinished(() => written.mockRestore());
});

function lines(): readonly string[] {
  return written.mock.calls
    .map(([text]) => String(text))
    .join("")
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => line.replace(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z /, ""));
}

/** A broker whose provision does that, with all options as an author would leave them, but for the clock. */
async function flowOf(
  provision: (operation: Work) => Promise<void>,
  options: Partial<TestBrokerOptions> = {},
): Promise<TestBroker> {
  const service = defineService({
    id: "s-1",
    name: "database",
    description: "A database",
    plans: { only: { id: "p-1", description: "The only one" } },
    provision,
  });
  // Waits are as long as they can be, so that a test knows when the next attempt is.
  const journal = { random: () => 1 };
  const flow = await testBroker({ services: [service], stderr: "warnings", journal, ...options });
  onTestFinished(() => flow.stop());
  return flow;
}

const unreachable = async (operation: Work) => {
  await operation.step("reserve a host", () => {
    throw new Error("no route to host");
  });
};

/** What nobody has defined when it is read. */
const settings: { cluster?: { url: string } } = {};

const forgetful = async (operation: Work) => {
  await operation.step("reserve a host", () => (settings.cluster as { url: string }).url);
};

test("a step that fails is told of, with its name, its error and whose it is", async () => {
  const flow = await flowOf(unreachable);
  await flow.provision("i1");
  await flow.advance();
  expect(lines()).toEqual([
    expect.stringMatching(
      /^WARN provision failed and is tried again: Error: no route to host \(requestId=\S+ operation=\S+ instance=i1 service=database plan=only step=reserve a host attempt=1 until=\S+\)$/,
    ),
  ]);
});

test("what fails a thousand times is told of four times", async () => {
  const flow = await flowOf(unreachable);
  await flow.provision("i1");
  for (let attempt = 0; attempt < 1_000; attempt++) await flow.advance(60_000);
  expect(lines().map((line) => /\d+ times so far$/.exec(line)?.[0] ?? "first")).toEqual([
    "first",
    "10 times so far",
    "100 times so far",
    "1000 times so far",
  ]);
});

test("what looks like a bug is told louder the third time, with the step and the place in the author's file", async () => {
  const flow = await flowOf(forgetful);
  await flow.provision("i1");
  await flow.advance();
  expect(lines()).toHaveLength(1);
  await flow.advance(60_000);
  const [first, ...loud] = lines();
  expect(first).toContain("TypeError: Cannot read properties of undefined (reading 'url')");
  expect(loud.slice(0, 3)).toEqual([
    'ERROR This looks like a bug in the service database, in step "reserve a host" of provision, 3 times so far:',
    "    TypeError: Cannot read properties of undefined (reading 'url')",
    expect.stringMatching(/^ {8}at .*stderr\.test\.ts:\d+:\d+\)?$/),
  ]);
  expect(loud.at(-1)).toBe(
    "    It is tried again until its deadline. Mend it and restart the broker: what is recorded is not done again.",
  );
  expect(loud.join("\n")).not.toMatch(/node_modules|src\/operations|node:internal/);
});

test("a bug outside of any step is told of as one", async () => {
  const flow = await flowOf(async () => void (settings.cluster as { url: string }).url);
  await flow.provision("i1");
  await flow.advance(10_000);
  expect(lines()[1]).toBe(
    "ERROR This looks like a bug in the service database, outside of any step of provision, 3 times so far:",
  );
});

test("a fetch that fails is a misfortune and no bug, although it throws a TypeError", async () => {
  const flow = await flowOf(async (operation) => {
    await operation.step("ask", () => {
      throw new TypeError("fetch failed", { cause: new Error("ECONNREFUSED") });
    });
  });
  await flow.provision("i1");
  await flow.advance(10_000);
  expect(lines()).toEqual([expect.stringContaining("TypeError: fetch failed")]);
});

test("a broker in code without a log tells of wrong passwords, and twenty of them are one line", async () => {
  const { ask } = await watchedBroker({ services: [], stderr: "warnings" }, { authentication: { slowDown: "none" } });
  const wrong = { ...platform, password: "guess" };
  for (let time = 0; time < 20; time++) expect((await ask("GET", "/v2/catalog", { as: wrong })).status).toBe(401);
  expect(lines()).toEqual([
    'WARN requests were refused: they had no valid credential (network=127.0.0.1 unauthorized=1 names=["platform"])',
  ]);
});

test("what was refused within a minute is told of at its end, unless only bugs are wanted", async () => {
  const clock = manualClock();
  const told: string[] = [];
  const write = (text: string) => void told.push(text);
  const observers = (["warnings", "bugs"] as const).map((level) =>
    brokerStderrLog({ level, write, now: () => 0, clock }),
  );
  for (let time = 0; time < 1_000; time++) for (const observe of observers) observe(refusedRequest("192.0.2.1"));
  expect(told).toHaveLength(1);
  await clock.advance(60_000);
  expect(told).toEqual([expect.stringContaining("unauthorized=1 "), expect.stringContaining("unauthorized=999 ")]);
});

test("whoever guesses from many networks cannot crowd out what goes wrong", () => {
  const told: string[] = [];
  const write = (text: string) => void told.push(text);
  const observe = brokerStderrLog({ level: "warnings", write, now: () => 0, clock: manualClock() });
  for (let network = 0; network < 1_000; network++) observe(refusedRequest(`n${network}`));
  expect(told).toHaveLength(30);
  observe({ kind: "store failed", doing: "claim", error: new Error("gone") });
  expect(told.at(-1)).toContain("the store does not answer");
});

function refusedRequest(network: string): RequestAnswered {
  return {
    kind: "request answered",
    method: "GET",
    route: null,
    platform: null,
    credential: null,
    instance: null,
    binding: null,
    service: null,
    plan: null,
    status: 401,
    errorCode: "unauthorized",
    description: "valid credentials are needed",
    cause: undefined,
    operation: null,
    requestId: null,
    tookMs: 1,
    refused: { network, user: { kind: "known", name: "platform" } },
  };
}

test("an operation that has failed is told of with its reason", async () => {
  const flow = await flowOf(async () => {
    throw new Failed("no more hosts can be had");
  });
  await flow.provision("i1");
  await flow.advance();
  expect(lines()).toEqual([expect.stringContaining("WARN provision failed: no more hosts can be had (")]);
});

test("what goes well is not told of", async () => {
  const flow = await flowOf(async (operation) => void (await operation.step("a step", () => 1)));
  await flow.provision("i1");
  await flow.advance();
  expect((await flow.lastOperation("i1")).body.state).toBe("succeeded");
  expect((await flow.provision("i1", { with: { space_guid: "" } })).status).toBe(400);
  expect(lines()).toEqual([]);
});

test.each<[why: string, options: Partial<TestBrokerOptions>]>([
  ["it is turned off", { stderr: "nothing" }],
  ["it is to tell of bugs alone", { stderr: "bugs" }],
])("nothing is told if %s", async (_, options) => {
  const flow = await flowOf(unreachable, options);
  await flow.provision("i1");
  await flow.advance(60_000);
  expect(lines()).toEqual([]);
});

test("a log takes its place, metrics do not", () => {
  const logger = { debug() {}, info() {}, warn() {}, error() {} };
  const store = memoryStore();
  expect(createBroker({ services: [], store }).watch).toBeDefined();
  expect(createBroker({ services: [], store, stderr: "nothing" }).watch).toBeUndefined();
  const failing = { kind: "store failed", doing: "claim", error: new Error("gone") } as const;
  createBroker({ services: [], store, observe: [logTo(logger)] }).watch?.tell(failing);
  expect(lines()).toEqual([]);
  createBroker({ services: [], store, observe: [metrics({ process: false }).observe] }).watch?.tell(failing);
  expect(lines()).toEqual(["ERROR the store does not answer: Error: gone (doing=claim)"]);
});

test("a broker in a test tells of bugs alone, and of those at once", async () => {
  const flow = await flowOf(forgetful, { stderr: "bugs" });
  await flow.provision("i1");
  await flow.advance();
  expect(lines()[0]).toBe(
    'ERROR This looks like a bug in the service database, in step "reserve a host" of provision:',
  );
});

test("neither passwords in URLs, nor what was no JSON, nor what steers a terminal is in a line", async () => {
  const secrets = [
    "connect to postgres://admin:hunter2@db:5432 failed",
    "connect to postgres://admin:hun/ter2@x@db failed",
    "\u001b[2J\u009b31m hidden \u202e",
    `one line\nWARN a line that nobody wrote`,
    "long ".repeat(10_000),
  ];
  const flow = await flowOf(async (operation) => {
    await operation.step("connect", () => {
      if (operation.attempt <= secrets.length) throw new Error(secrets[operation.attempt - 1]);
      JSON.parse('{"password": hunter2}');
    });
  });
  await flow.provision("i1");
  await flow.advance(60_000);
  expect(lines()).toHaveLength(secrets.length + 1);
  const all = lines().join("\n");
  expect(all).not.toMatch(/hunter2|hun\//);
  expect(all).toContain("connect to postgres://…@db:5432 failed");
  expect(all).toContain("is not valid JSON");
  for (const line of lines()) {
    expect(line).not.toMatch(/[\p{Cc}\p{Cf}]/u);
    expect(line.length).toBeLessThan(1_000);
  }
});

test("a flood of different lines is cut off, and told of in the next minute", () => {
  let now = 0;
  const told: string[] = [];
  const log = brokerStderrLog({ level: "warnings", now: () => now, write: (line) => void told.push(line) });
  for (let number = 0; number < 1_000; number++) {
    log({ kind: "store failed", doing: "claim", error: new Error(`gone ${number}`) });
  }
  expect(told).toHaveLength(60);
  now = 60_000;
  log({ kind: "store failed", doing: "claim", error: new Error("gone again") });
  expect(told.slice(60)).toEqual([
    "1970-01-01T00:01:00.000Z WARN 940 more lines were left out\n",
    "1970-01-01T00:01:00.000Z ERROR the store does not answer: Error: gone again (doing=claim)\n",
  ]);
});

test("what differs in more than whose it is, is told of each", () => {
  const told: string[] = [];
  const log = brokerStderrLog({ level: "warnings", now: () => 0, write: (line) => void told.push(line) });
  for (const doing of ["claim", "renew", "claim"]) log({ kind: "store failed", doing, error: new Error("gone") });
  log({ kind: "presence lost" });
  expect(told.map((line) => line.slice("1970-01-01T00:00:00.000Z ".length))).toEqual([
    "ERROR the store does not answer: Error: gone (doing=claim)\n",
    "ERROR the store does not answer: Error: gone (doing=renew)\n",
    "WARN the store no longer vouches for this process\n",
  ]);
});

test("what has not come for a while is told of again", () => {
  let now = 0;
  const told: string[] = [];
  const log = brokerStderrLog({ level: "warnings", now: () => now, write: (line) => void told.push(line) });
  const outage = { kind: "store failed", doing: "claim", error: new Error("gone") } as const;
  for (now = 0; now < 5_000; now += 1_000) log(outage);
  expect(told).toHaveLength(1);
  now += 3_600_000;
  log(outage);
  expect(told).toHaveLength(2);
});

test("the broker that the README teaches tells of a step that fails, in a process of its own", async () => {
  const tsx = pathToFileURL(createRequire(import.meta.url).resolve("tsx")).href;
  const file = fileURLToPath(new URL("./failing-broker.ts", import.meta.url));
  const child = spawn(process.execPath, ["--conditions=@osbert/source", "--import", tsx, file], {
    stdio: ["ignore", "ignore", "pipe"],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  const complaints = await text(child.stderr);
  expect(complaints).toContain(
    "WARN provision failed and is tried again: TypeError: Cannot read properties of undefined",
  );
  expect(complaints).toContain('ERROR This looks like a bug in the service database, in step "reserve a host"');
  expect(complaints).toMatch(/at .*failing-broker\.ts:\d+:\d+/);
  expect(complaints).not.toContain("hunter2");
});

test("what is not made for it would have been no warning", () => {
  const about = { key: "k", operation: "o", operationKind: "provision", labels: [], instance: "i", tookMs: 1 };
  const request = { route: "catalog", method: "PUT", platform: "", credential: "c", errorCode: null, cause: undefined };
  const news = [
    ...["accepted", "attempt started", "step finished", "store answered"].map((kind) => ({ ...about, kind })),
    { ...about, kind: "waiting", until: 0 },
    ...["succeeded", "cancelled"].map((outcome) => ({ ...about, kind: "settled", outcome, message: null })),
    ...[200, 202, 304].map((status) => ({ ...request, kind: "request answered", status, tookMs: 1 })),
  ];
  for (const event of news) {
    expect(mayBeLoud(event), event.kind).toBe(false);
    expect(lineOf(event as unknown as BrokerEvent)?.level ?? "none", event.kind).not.toMatch(/warn|error/);
  }
  for (const kind of ["retrying", "lease lost", "store failed", "whatever comes later"])
    expect(mayBeLoud({ kind }), kind).toBe(true);
  expect(mayBeLoud({ kind: "settled", outcome: "failed" })).toBe(true);
  expect(mayBeLoud({ kind: "settled", outcome: "succeeded", settleError: new Error("lost") })).toBe(true);
});
