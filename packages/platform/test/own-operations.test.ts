import { setTimeout as pause } from "node:timers/promises";
import { expect, test } from "vitest";
import { type ExecutionLab, executionLab } from "./execution-lab.js";

/**
 * An answer was lost, and then the broker is busy: it may be at what was lost, or at something else. The end of something else must never be
 * taken for the end of what was asked for.
 */
const lostThenBusy = ["reset", "concurrency"] as const;
const sent = (lab: ExecutionLab, method: string) => lab.sent().filter((line) => line.startsWith(method));

async function until(is: () => boolean): Promise<void> {
  for (let look = 0; look < 500; look++) {
    if (is()) return;
    await pause(10);
  }
  throw new Error("it has not come to be");
}

test("E10-24: a delete whose answer was lost, and which is then told that the broker is busy, did not end with the create that it was busy with", async () => {
  const lab = await executionLab({
    rules: [
      { call: "provision", do: { slow: { ms: 200 } } },
      { call: "deprovision", do: lostThenBusy },
    ],
  });
  const create = await lab.create("db");
  await until(() => lab.sent().some((line) => line.endsWith("last_operation")));
  const deleted = await lab.delete("db");
  await lab.cancel("db", create);
  expect(await lab.ended("db", deleted)).toMatchObject({ kind: "succeeded" });
  await lab.quiet();
  expect(lab.broker.state().instances).toEqual([]);
});

test("E10-24: a delete that was lost and met another operation, which failed, is not refused because of that", async () => {
  const lab = await executionLab({
    pauses: { failedDelete: [] },
    rules: [
      { call: "update", do: { slow: { ms: 100, end: "failed" } } },
      { call: "deprovision", do: lostThenBusy },
    ],
  });
  await lab.ended("db", await lab.create("db"));
  const update = await lab.update("db", { parameters: "{}" });
  await until(() => lab.sent().some((line) => line.endsWith("last_operation")));
  const deleted = await lab.delete("db");
  await lab.cancel("db", update);
  expect(await lab.ended("db", deleted)).toMatchObject({ kind: "succeeded" });
  expect(lab.broker.state().instances).toEqual([]);
  // The lost one, the busy one, and the one that did it.
  expect(sent(lab, "DELETE")).toHaveLength(3);
});

test("E10-46: an unbind whose answer was lost, and which is then told that the broker is busy, did not end with the bind", async () => {
  const lab = await executionLab({
    rules: [
      { call: "bind", do: ["async"] },
      { call: "unbind", do: lostThenBusy },
    ],
  });
  await lab.ended("db", await lab.create("db"));
  await lab.ended("db", await lab.bind("db", "app"));
  expect(await lab.ended("db", await lab.unbind("db", "app"))).toMatchObject({ kind: "succeeded" });
  expect(lab.broker.state().instances).toMatchObject([{ bindings: [] }]);
});

test("E8: a row of the ledger whose DELETE was lost, and which is then told that the broker is busy, did not end with what it was busy with", async () => {
  const lab = await executionLab({
    offering: "unfetchable",
    rules: [
      { call: "provision", instance: "osb-db", do: ["async-fails"] },
      { call: "deprovision", do: lostThenBusy },
    ],
  });
  await lab.ended("db", await lab.create("db"));
  await lab.quiet();
  expect(await lab.orphans()).toMatchObject([{ state: "mitigated" }]);
  expect(lab.broker.state().instances).toEqual([]);
});

test("an update whose answer was lost, and which is then told that the broker is busy, was not applied by what it was busy with", async () => {
  const lab = await executionLab({
    rules: [
      { call: "provision", do: ["async"] },
      { call: "update", do: lostThenBusy },
    ],
  });
  await lab.ended("db", await lab.create("db"));
  expect(await lab.ended("db", await lab.update("db", { parameters: '{"size":2}' }))).toMatchObject({
    kind: "succeeded",
  });
  expect(lab.broker.state().instances).toMatchObject([{ parameters: { size: 2 } }]);
  expect(sent(lab, "PATCH")).toHaveLength(3);
});
