import { setTimeout as pause } from "node:timers/promises";
import { memoryStore } from "@osbert/journal/memory";
import { interposedStore } from "@osbert/journal/testing";
import { expect, test, vi } from "vitest";
import { cancelReasons } from "../src/decisions/cancel-reasons.js";
import { keys } from "../src/records/keys.js";
import { type ExecutionLab, executionLab } from "./execution-lab.js";

const deletes = (lab: ExecutionLab) => lab.sent().filter((line) => line.startsWith("DELETE"));

/** Until it is so. */
async function until(is: () => Promise<boolean> | boolean): Promise<void> {
  for (let look = 0; look < 500; look++) {
    if (await is()) return;
    await pause(10);
  }
  throw new Error("it has not come to be");
}

test("E10-23: a delete while the create is under way goes to the broker, which is asked again as long as it is busy", async () => {
  const lab = await executionLab({ rules: [{ call: "provision", do: { slow: { ms: 200 } } }] });
  const create = await lab.create("db");
  await until(() => lab.sent().some((line) => line.endsWith("last_operation")));
  const deleted = await lab.delete("db");
  await lab.journal.cancel(keys.instance("dev", "db"), create, cancelReasons.deleting, {
    actor: { type: "user", subject: "anna" },
  });
  expect(await lab.ended("db", deleted)).toMatchObject({ kind: "succeeded", result: { asked: true } });
  await lab.quiet();
  expect(lab.broker.state().instances).toEqual([]);
});

test("E10-44: what was bound after a while, and cannot be fetched, is asked for with the identical request", async () => {
  const lab = await executionLab({ offering: "unfetchable", rules: [{ call: "bind", do: ["async"] }] });
  await lab.ended("db", await lab.create("db"));
  expect(await lab.ended("db", await lab.bind("db", "app"))).toMatchObject({ kind: "succeeded" });
  const binds = lab.broker.requests().filter(({ call }) => call === "bind");
  expect(binds).toHaveLength(2);
  expect(binds[0]?.body).toBe(binds[1]?.body);
  expect((await lab.binding("db", "app"))?.answer).toContain("credentials");
});

test("E10-44: if that does not bring them, the binding is deleted, and not forgotten", async () => {
  const lab = await executionLab({ offering: "unfetchable", rules: [{ call: "bind", do: ["async", "400"] }] });
  await lab.ended("db", await lab.create("db"));
  expect(await lab.ended("db", await lab.bind("db", "app"))).toMatchObject({ failure: { class: "unusable answer" } });
  await lab.quiet();
  expect(lab.broker.state().instances).toMatchObject([{ bindings: [] }]);
});

test("E10-56: what could not be sent in all its time fails, and a delete waits for ever", async () => {
  const lab = await executionLab({ pauses: { deadlineMs: 100 }, rules: [{ call: "update", do: "concurrency" }] });
  await lab.ended("db", await lab.create("db"));
  expect(await lab.ended("db", await lab.update("db", { parameters: "{}" }))).toMatchObject({
    failure: { class: "deadline", uncertain: false },
  });
  const patient = await executionLab({
    pauses: { deadlineMs: 100 },
    rules: [{ call: "deprovision", do: Array.from({ length: 12 }, () => "concurrency" as const) }],
  });
  await patient.ended("db", await patient.create("db"));
  expect(await patient.ended("db", await patient.delete("db"))).toMatchObject({ kind: "succeeded" });
  expect(deletes(patient)).toHaveLength(13);
});

test("E4, P-UPD-06: an update whose answers are lost is sent six times, then it is failed and uncertain, and nothing is deleted", async () => {
  const lab = await executionLab({ rules: [{ call: "update", do: "500" }] });
  await lab.ended("db", await lab.create("db"));
  expect(await lab.ended("db", await lab.update("db", { parameters: '{"size":2}' }))).toMatchObject({
    failure: { class: "unknown", status: 500, uncertain: true, orphan: null },
  });
  expect(lab.sent().filter((line) => line.startsWith("PATCH"))).toHaveLength(6);
  expect(await lab.data("db")).toMatchObject({ uncertainSince: { operation: expect.any(String) } });
  expect(deletes(lab)).toEqual([]);
});

test("P-UPD-09: an update that is not to be repeated is not sent again", async () => {
  const body = { description: "broken", update_repeatable: false, instance_usable: false };
  const lab = await executionLab({ rules: [{ call: "update", do: { status: 500, body } }] });
  await lab.ended("db", await lab.create("db"));
  expect(await lab.ended("db", await lab.update("db", { parameters: "{}" }))).toMatchObject({
    failure: { usable: false, repeatable: false, uncertain: true },
  });
  expect(lab.sent().filter((line) => line.startsWith("PATCH"))).toHaveLength(1);
  expect(await lab.data("db")).toMatchObject({ usable: false });
});

test("E5: a delete that was accepted and failed is tried three more times, then it is refused", async () => {
  const lab = await executionLab({ rules: [{ call: "deprovision", do: "async-fails" }] });
  await lab.ended("db", await lab.create("db"));
  expect(await lab.ended("db", await lab.delete("db"))).toMatchObject({ failure: { class: "operation failed" } });
  expect(deletes(lab)).toHaveLength(4);
  expect(await lab.data("db")).toMatchObject({ osbId: "osb-db", lastDelete: { by: "anna" } });
});

test("E3: a bind that collides with another is sent again, and the broker is remembered for it", async () => {
  const lab = await executionLab({ rules: [{ call: "bind", do: ["concurrency"] }] });
  await lab.ended("db", await lab.create("db"));
  expect(await lab.ended("db", await lab.bind("db", "app"))).toMatchObject({ kind: "succeeded" });
  expect(lab.collided).toEqual(["service-misbehaving"]);
});

test("P-POLL-09, P-POLL-10, E10-12: an operation that does not end in the time of its plan has failed, and is mitigated", async () => {
  const lab = await executionLab({ maximumPollingSeconds: 1, rules: [{ call: "provision", do: "async-endless" }] });
  expect(await lab.ended("db", await lab.create("db"))).toMatchObject({
    failure: { class: "operation timed out", uncertain: true, orphan: keys.orphan("broker", "osb-db", null) },
  });
  await lab.quiet();
  await lab.checkNothingUnknown();
  expect(deletes(lab).length).toBeGreaterThan(0);
});

test("an instance that is at the broker already is taken on without a request that could change it", async () => {
  const lab = await executionLab();
  await lab.ended("old", await lab.create("old"));
  await lab.ended("old", await lab.delete("old", { mode: "abandon" }));
  const sent = lab.sent().length;
  expect(await lab.ended("new", await lab.adopt("new", "osb-old"))).toMatchObject({ kind: "succeeded" });
  expect(lab.sent().slice(sent)).toEqual(["GET osb-old"]);
  expect(await lab.ended("none", await lab.adopt("none", "osb-none"))).toMatchObject({
    failure: { class: "rejected" },
  });
});

test("E10-20: a process that slept between its mark and its call does not send it: another one may have taken over, and be done", async () => {
  let [looks, labs]: [number, ExecutionLab | undefined] = [0, undefined];
  const journal = () => {
    if (labs === undefined) throw new Error("nothing runs before there is a lab");
    const { journal: real } = labs;
    // It looks at the clock when it begins, at the deadline, and before it sends: then a minute has passed.
    return {
      now: () => real.now() + (++looks === 3 ? 60_000 : 0),
      read: real.read.bind(real),
      find: real.find.bind(real),
      transact: real.transact.bind(real),
    };
  };
  const lab = await executionLab({ ports: { journal } });
  labs = lab;
  expect(await lab.ended("db", await lab.create("db"))).toMatchObject({ kind: "succeeded" });
  const marks = (await lab.entries("db")).filter(({ kind }) => kind === "attempt-started");
  expect(marks).toHaveLength(2);
  expect(lab.sent()).toEqual(["PUT osb-db"]);
});

test("E10-20: the answer that a process hears after it was overtaken is kept as an observation, and changes nothing", async () => {
  let isCutOff = false;
  // Its leases are not prolonged, so that it has to think that another one has taken over.
  const store = interposedStore(memoryStore(), ({ method }, go) => {
    if (method === "renew" && isCutOff) throw new Error("the store cannot be reached");
    return go();
  });
  const lab = await executionLab({
    store,
    dieAt: Number.MAX_SAFE_INTEGER,
    timeoutMs: 20_000,
    rules: [{ call: "provision", do: [{ delayMs: 1_000, body: { dashboard_url: "http://late" } }] }],
  });
  isCutOff = true;
  const create = await lab.create("db");
  const kinds = async () => (await lab.entries("db")).map(({ kind }) => kind);
  await vi.waitFor(async () => expect(await kinds()).toContain("attempt-lost"), { timeout: 10_000 });
  isCutOff = false;
  expect(await lab.ended("db", create)).toMatchObject({ kind: "succeeded" });
  await vi.waitFor(async () => expect(await kinds()).toContain("answered-late"), { timeout: 10_000 });
  const late = (await lab.entries("db")).find(({ kind }) => kind === "answered-late");
  expect(late).toMatchObject({ operation: create, payload: { what: "provision", class: "done", status: 201 } });
  expect(await lab.data("db")).toMatchObject({ phase: "ready", osbId: "osb-db", dashboardUrl: null });
  expect(lab.sent()).toEqual(["PUT osb-db", "GET osb-db"]);
});
