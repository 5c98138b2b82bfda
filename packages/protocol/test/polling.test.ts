import { describe, expect, test, vi } from "vitest";
import { createClient, OperationFailedError, receivedOf } from "../src/client/index.js";
import { nextPauseMs } from "../src/client/polling.js";
import { classify } from "../src/index.js";
import { brokerThat, type Reaction } from "./broker-double.js";

const quick = { firstMs: 5, factor: 1, longestMs: 5 };
const state = (text: string, more: object = {}): Reaction => ({ status: 200, body: { state: text, ...more } });

async function polling(...reactions: readonly Reaction[]) {
  const { url, seen } = await brokerThat(...reactions);
  return { client: createClient({ url, pace: quick, timeoutMs: 3_000 }), seen };
}

async function failureOf(work: Promise<unknown>): Promise<OperationFailedError> {
  const error = await work.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(OperationFailedError);
  return error as OperationFailedError;
}

describe("polling", () => {
  test("P-POLL-01: it goes on while in progress, and ends with succeeded", async () => {
    const { client, seen } = await polling(state("in progress"), state("in progress"), state("succeeded"));
    const told: unknown[] = [];
    const last = await client.waitForInstance("i", { onPoll: (poll) => told.push(poll?.state) });
    expect(last.state).toBe("succeeded");
    expect(seen).toHaveLength(3);
    expect(told).toEqual(["in progress", "in progress", "succeeded"]);
  });

  test("P-POLL-01, P-POLL-11: it ends with failed, and says what the broker said", async () => {
    const { client, seen } = await polling(state("failed", { description: "no room", instance_usable: false }));
    const error = await failureOf(client.waitForBinding("i", "b"));
    expect(error.kind).toBe("operation failed");
    expect(error.message).toBe("no room");
    expect(error.last).toMatchObject({ state: "failed", instance_usable: false });
    expect(seen).toHaveLength(1);
  });

  test("P-POLL-02, P-POLL-03, P-POLL-04: every poll carries the operation and the hints", async () => {
    const { client, seen } = await polling(state("in progress"), state("succeeded"));
    await client.waitForInstance("i", { operation: "o p", serviceId: "s", planId: "the plan before" });
    for (const { query } of seen) {
      expect(Object.fromEntries(query)).toEqual({ operation: "o p", service_id: "s", plan_id: "the plan before" });
    }
  });

  test("P-POLL-05: 410 while deleting is success", async () => {
    const { client } = await polling(state("in progress"), { status: 410, body: "" });
    expect((await client.waitForInstance("i", { change: "delete" })).state).toBe("succeeded");
  });

  test("P-POLL-06: 410 while creating or updating is no answer: it is asked again", async () => {
    const { client, seen } = await polling({ status: 410 }, { status: 410 }, state("succeeded"));
    expect((await client.waitForInstance("i")).state).toBe("succeeded");
    expect(seen).toHaveLength(3);
  });

  test("P-POLL-07: errors, malformed answers and silence are asked again", async () => {
    const { client, seen } = await polling(
      { status: 500, body: "down" },
      { status: 404 },
      { status: 200, body: "<html>" },
      { status: 200, body: [] },
      state("done"),
      { status: 200, body: {} },
      { status: 302, headers: { location: "/elsewhere" } },
      (response) => response.destroy(),
      () => undefined,
      state("succeeded"),
    );
    expect((await client.waitForInstance("i")).state).toBe("succeeded");
    expect(seen).toHaveLength(10);
  });

  test("P-POLL-08: Retry-After in seconds is waited for", async () => {
    const { client, seen } = await polling(
      { status: 200, body: { state: "in progress" }, headers: { "retry-after": "1" } },
      state("succeeded"),
    );
    const started = performance.now();
    await client.waitForInstance("i");
    expect(performance.now() - started).toBeGreaterThanOrEqual(950);
    expect(seen).toHaveLength(2);
  });

  test("P-POLL-08: Retry-After as a date is waited for", async () => {
    const date = new Date(Date.now() + 2_000).toUTCString();
    const { client } = await polling(
      { status: 200, body: { state: "in progress" }, headers: { "retry-after": date } },
      state("succeeded"),
    );
    await client.waitForInstance("i");
    expect(Date.now()).toBeGreaterThanOrEqual(Date.parse(date) - 50);
  });

  test("P-POLL-08: the first poll comes when the answer that began the operation said", async () => {
    const { client, seen } = await polling(state("succeeded"));
    const started = performance.now();
    await client.waitForInstance("i", { retryAfterMs: 1_000 });
    expect(performance.now() - started).toBeGreaterThanOrEqual(950);
    expect(seen).toHaveLength(1);
  });

  test("P-POLL-08, P-POLL-10: such advice does not lead beyond the limit", async () => {
    const { client, seen } = await polling(state("succeeded"));
    await client.waitForInstance("i", { retryAfterMs: 3_600_000, maximumPollingDuration: 0.1 });
    expect(seen).toHaveLength(1);
  });

  test("P-POLL-08, P-POLL-12: pauses grow to a limit; advice is brought back to what is sensible", () => {
    const pace = { firstMs: 1_000, factor: 2, longestMs: 5_000 };
    expect([0, 1, 2, 3, 50].map((polls) => nextPauseMs(polls, undefined, { pace, random: () => 0.5 }))).toEqual([
      1_000, 2_000, 4_000, 5_000, 5_000,
    ]);
    const late = { tookMs: 3_600_000, random: () => 0.5 };
    expect(nextPauseMs(0, 0)).toBe(1_000);
    expect(nextPauseMs(0, 999_999_999)).toBe(3_600_000);
    expect(nextPauseMs(9, 7_000)).toBe(7_000);
    expect(nextPauseMs(50, undefined, late)).toBe(300_000);
    expect(nextPauseMs(50, undefined, { ...late, tookMs: 3_599_999 })).toBe(60_000);
    expect(nextPauseMs(50, undefined, { ...late, pace })).toBe(5_000);
  });

  test("P-POLL-12: pauses vary by a fifth, those that the broker advises do not", () => {
    expect(nextPauseMs(0, undefined, { random: () => 0 })).toBeCloseTo(800);
    expect(nextPauseMs(0, undefined, { random: () => 1 })).toBeCloseTo(1_200);
    expect(nextPauseMs(0, 5_000, { random: () => 0 })).toBe(5_000);
  });

  test("P-POLL-12: without advice the first poll has its pause, too", async () => {
    const { url, seen } = await brokerThat({ status: 200, body: { services: [] } });
    const client = createClient({ url, pace: { firstMs: 600_000, factor: 1, longestMs: 600_000 } });
    const caller = new AbortController();
    const waiting = client.waitForInstance("i", { signal: caller.signal });
    await client.catalog();
    caller.abort();
    await expect(waiting).rejects.toMatchObject({ kind: "called off" });
    expect(seen.map(({ path }) => path)).toEqual(["/v2/catalog"]);
  });

  test("P-POLL-09, P-POLL-10: after the plan's maximum duration it counts as failed", async () => {
    const { client, seen } = await polling(state("in progress", { description: "still copying" }));
    const started = performance.now();
    const error = await failureOf(client.waitForInstance("i", { maximumPollingDuration: 1 }));
    expect(error.kind).toBe("operation timed out");
    expect(error.message).toContain("1 seconds");
    expect(error.last).toMatchObject({ state: "in progress", description: "still copying" });
    expect(performance.now() - started).toBeGreaterThanOrEqual(900);
    expect(performance.now() - started).toBeLessThan(10_000);
    expect(seen.length).toBeGreaterThan(5);
  });

  test("P-POLL-10: advice beyond the limit does not end it early: there is a last look when the time is up", async () => {
    const { client, seen } = await polling(
      { status: 200, body: { state: "in progress" }, headers: { "retry-after": "3600" } },
      state("succeeded"),
    );
    expect((await client.waitForInstance("i", { maximumPollingDuration: 1 })).state).toBe("succeeded");
    expect(seen).toHaveLength(2);
  });

  test("401 is asked again: credentials can be put right while an operation goes on", async () => {
    const { client, seen } = await polling({ status: 401 }, { status: 401 }, { status: 401 }, state("succeeded"));
    expect((await client.waitForInstance("i", { change: "create" })).state).toBe("succeeded");
    expect(seen).toHaveLength(4);
  });

  test("it can be called off, between polls and within one", async () => {
    for (const reaction of [
      { status: 200, body: { state: "in progress" }, headers: { "retry-after": "60" } },
      () => undefined,
    ] as const) {
      const { url, seen } = await brokerThat(reaction);
      const caller = new AbortController();
      const waiting = createClient({ url, pace: quick }).waitForInstance("i", { signal: caller.signal });
      waiting.catch(() => undefined);
      await vi.waitFor(() => expect(seen).toHaveLength(1));
      caller.abort(new Error("enough"));
      await expect(waiting).rejects.toMatchObject({ kind: "called off", message: expect.stringMatching(/called off/) });
    }
  });
});

const bad = (description: string, error?: string): Reaction => ({ status: 400, body: { error, description } });

describe("400 to a poll", () => {
  test("the third equal one is a failure, in the broker's words", async () => {
    const { client, seen } = await polling(bad("try 1"), bad("try 2"), bad("no such operation"), state("succeeded"));
    const error = await failureOf(client.waitForInstance("i"));
    expect(error).toMatchObject({ kind: "operation failed", last: undefined });
    expect(error.message).toContain("no such operation");
    expect(seen).toHaveLength(3);
  });

  test("polls without an answer do not end the row", async () => {
    const { client, seen } = await polling(bad("a"), bad("a"), (response) => response.destroy(), bad("a"));
    await failureOf(client.waitForBinding("i", "b"));
    expect(seen).toHaveLength(4);
  });

  test("any other answer in between does, and so does another error", async () => {
    const { client, seen } = await polling(
      ...[bad("a"), bad("a"), { status: 500 }, bad("a"), bad("a"), bad("a", "Other"), bad("a", "Other")],
      state("succeeded"),
    );
    expect((await client.waitForInstance("i")).state).toBe("succeeded");
    expect(seen).toHaveLength(8);
  });
});

const breaks: Reaction = (response) => response.destroy();
const notFound: Reaction = { status: 404, body: { description: "never heard of it" } };
const ids = { serviceId: "s", planId: "p" };
const deleting = { ...ids, operation: "first", change: "delete" } as const;

describe("404 to the poll of a delete", () => {
  test.each([200, 410])("one more DELETE that is answered with %i says that it is gone", async (status) => {
    const { client, seen } = await polling(state("in progress"), notFound, { status });
    expect((await client.waitForInstance("i", deleting)).state).toBe("succeeded");
    expect(seen.map(({ method }) => method)).toEqual(["GET", "GET", "DELETE"]);
    expect(seen[2]?.path).toBe("/v2/service_instances/i");
    expect(Object.fromEntries(seen[2]?.query ?? [])).toEqual({
      service_id: "s",
      plan_id: "p",
      accepts_incomplete: "true",
    });
  });

  test("it is the binding that is deleted once more, not its instance", async () => {
    const { client, seen } = await polling(notFound, { status: 410 });
    await client.waitForBinding("i", "b", deleting);
    expect(seen[1]).toMatchObject({ method: "DELETE", path: "/v2/service_instances/i/service_bindings/b" });
  });

  test("one that is taken is polled under its own operation, and is the last", async () => {
    const { client, seen } = await polling(
      notFound,
      { status: 202, body: { operation: "second" } },
      notFound,
      notFound,
      state("succeeded"),
    );
    await client.waitForInstance("i", deleting);
    expect(seen.map(({ method, query }) => `${method} ${query.get("operation")}`)).toEqual([
      ...["GET first", "DELETE null", "GET second", "GET second", "GET second"],
    ]);
  });

  test.each([400, 403, 404])("one that is answered with %i is a failure, which says so", async (status) => {
    const { client, seen } = await polling(notFound, { status, body: { description: "leave me alone" } });
    const error = await failureOf(client.waitForInstance("i", deleting));
    expect(error.kind).toBe("operation failed");
    expect(error.message).toContain("leave me alone");
    expect(error.cause).toMatchObject({ status });
    expect(seen).toHaveLength(2);
  });

  test("one without an answer that counts is sent again after the next 404", async () => {
    const { client, seen } = await polling(
      ...[notFound, { status: 500 }, notFound, { status: 422, body: { error: "ConcurrencyError" } }],
      ...([notFound, breaks, notFound, { status: 200, body: "<html>" }] satisfies Reaction[]),
      ...[notFound, { status: 410 }],
    );
    await client.waitForInstance("i", deleting);
    expect(seen.filter(({ method }) => method === "DELETE")).toHaveLength(5);
  });

  test("nothing is deleted by who does not say that it is deleting, nor without the ids", async () => {
    for (const options of [
      { ...ids },
      { ...ids, change: "create" },
      { ...ids, change: "update" },
      { ...ids, change: "unknown" },
      { change: "delete" },
    ] as const) {
      const { client, seen } = await polling(notFound, notFound, state("succeeded"));
      await client.waitForInstance("i", options);
      expect(seen.map(({ method }) => method)).toEqual(["GET", "GET", "GET"]);
    }
  });
});

describe("404 to the poll of a create", () => {
  const minute = 60_000;

  /** A minute passes with every poll. */
  async function slowly(...reactions: readonly Reaction[]) {
    const { url, seen } = await brokerThat(...reactions);
    return { client: createClient({ url, pace: quick, now: () => seen.length * minute }), seen };
  }

  test("after more than ten minutes nobody knows what became of it: the class is unknown, and it may be an orphan", async () => {
    const { client, seen } = await slowly(state("in progress"), notFound);
    const error = await failureOf(client.waitForInstance("i", { change: "create" }));
    expect(error.kind).toBe("operation lost");
    expect(seen).toHaveLength(13);
    expect(classify("provision", receivedOf(error))).toEqual({ class: "unknown", next: "resolve", orphan: "instance" });
  });

  test("any other answer in between begins the ten minutes anew", async () => {
    const row = Array.from({ length: 10 }, () => notFound);
    const { client, seen } = await slowly(...row, { status: 500 }, ...row, state("succeeded"));
    expect((await client.waitForInstance("i", { change: "create" })).state).toBe("succeeded");
    expect(seen).toHaveLength(22);
  });

  test("an update is asked for again, however long it is", async () => {
    const { client } = await slowly(...Array.from({ length: 30 }, () => notFound), state("succeeded"));
    expect((await client.waitForInstance("i", { change: "update" })).state).toBe("succeeded");
  });
});
