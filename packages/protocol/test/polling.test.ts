import { describe, expect, test } from "vitest";
import { createClient, OperationFailedError } from "../src/client/index.js";
import { nextPauseMs } from "../src/client/polling.js";
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
    expect((await client.waitForInstance("i", { deleting: true })).state).toBe("succeeded");
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
    expect([0, 1, 2, 3, 50].map((polls) => nextPauseMs(polls, undefined, pace))).toEqual([
      1_000, 2_000, 4_000, 5_000, 5_000,
    ]);
    expect(nextPauseMs(0, 0)).toBe(1_000);
    expect(nextPauseMs(0, 999_999_999)).toBe(3_600_000);
    expect(nextPauseMs(9, 7_000)).toBe(7_000);
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

  test("it can be called off, between polls and within one", async () => {
    for (const reaction of [
      { status: 200, body: { state: "in progress" }, headers: { "retry-after": "60" } },
      () => undefined,
    ] as const) {
      const { url } = await brokerThat(reaction);
      const caller = new AbortController();
      const waiting = createClient({ url }).waitForInstance("i", { signal: caller.signal });
      setTimeout(() => caller.abort(new Error("enough")), 100);
      await expect(waiting).rejects.toMatchObject({ kind: "called off", message: expect.stringMatching(/called off/) });
    }
  });
});
