import { expect, test, vi } from "vitest";
import { JournalOrphans } from "../src/queue/orphans.js";
import { instances } from "../src/records/instance-record.js";
import { keys } from "../src/records/keys.js";
import { type OrphanData, orphanRecords } from "../src/records/orphan-record.js";
import { executionLab } from "./execution-lab.js";

const operator = { by: { actor: { type: "operator", subject: "olga" } } } as const;
const deletes = (lines: readonly string[]) => lines.filter((line) => line.startsWith("DELETE"));

test("P-ORPH-14, E8: a create of which nobody knows what it did is mitigated to the end, and the next attempt has an id of its own", async () => {
  const lab = await executionLab({
    offering: "unfetchable",
    rules: [
      { call: "provision", instance: "osb-db", do: "done-500" },
      { call: "deprovision", instance: "osb-db", do: ["500", "400", "async-fails", "async"] },
    ],
  });
  expect(await lab.ended("db", await lab.create("db"))).toMatchObject({ kind: "succeeded" });
  const data = await lab.data("db");
  expect(data?.osbId).toMatch(/^[0-9a-f-]{36}$/);
  expect(data?.formerOsbIds).toEqual(["osb-db"]);
  await lab.quiet();
  expect(lab.broker.state().instances.map(({ id }) => id)).toEqual([data?.osbId]);
  expect(await lab.orphans()).toMatchObject([{ state: "mitigated", instanceOsbId: "osb-db" }]);
  // P-ID-03: nobody's identity goes with what nobody asked for.
  for (const { method, headers } of lab.broker.requests())
    if (method === "DELETE") expect(headers["x-broker-api-originating-identity"]).toBeUndefined();
});

test("P-ORPH-16: what comes into being after its create was given up is found and deleted", async () => {
  const late = { effect: "late", lateMs: 100, answerBytes: 0 } as const;
  const lab = await executionLab({
    offering: "unfetchable",
    pauses: { lateMs: 2_000 },
    rules: [{ call: "provision", instance: "osb-db", do: late }],
    policy: { orphans: "mitigate" },
  });
  expect(await lab.ended("db", await lab.create("db"))).toMatchObject({ kind: "succeeded" });
  await lab.quiet();
  await lab.checkNothingUnknown();
  expect(lab.broker.state().instances).toHaveLength(1);
  expect(await lab.orphans()).toMatchObject([{ state: "mitigated", mayComeLate: true }]);
});

test("E10-63: a lost answer and then a 409 is never followed by a DELETE, also not by that of the user", async () => {
  const lab = await executionLab({
    offering: "unfetchable",
    rules: [
      { call: "provision", do: ["done-500", "409"] },
      { call: "poll", do: { status: 404 } },
    ],
    maximumPollingSeconds: 1,
  });
  expect(await lab.ended("db", await lab.create("db"))).toMatchObject({
    kind: "failed",
    failure: { class: "conflict", uncertain: true, orphan: keys.orphan("broker", "osb-db", null) },
  });
  expect(await lab.ended("db", await lab.delete("db"))).toMatchObject({ kind: "succeeded" });
  await lab.quiet();
  expect(deletes(lab.sent())).toEqual([]);
  expect(await lab.orphans()).toMatchObject([{ state: "held", isConflict: true }]);
  // An operator looks at it, and has it deleted.
  const orphans = new JournalOrphans(lab.journal);
  expect(await orphans.mitigate(keys.orphan("broker", "osb-db", null), operator)).toMatchObject({ state: "open" });
  await lab.quiet();
  expect(lab.broker.state().instances).toEqual([]);
  expect(await lab.orphans()).toMatchObject([{ state: "mitigated" }]);
});

test("E10-63: what a broker answers 409 to although it made it is taken on, if the broker says that it succeeded", async () => {
  const lab = await executionLab({
    offering: "unfetchable",
    rules: [
      { call: "provision", do: ["done-500", "409"] },
      { call: "poll", do: { status: 200, body: { state: "succeeded" } } },
    ],
  });
  expect(await lab.ended("db", await lab.create("db"))).toMatchObject({ kind: "succeeded" });
  expect(await lab.data("db")).toMatchObject({ osbId: "osb-db" });
});

test("P-ORPH-02: with the policy `hold` nothing is deleted and nothing tried again before someone says so; a delete by the user does", async () => {
  const lab = await executionLab({
    offering: "unfetchable",
    policy: { orphans: "hold" },
    rules: [{ call: "provision", do: "done-500" }],
  });
  expect(await lab.ended("db", await lab.create("db"))).toMatchObject({ kind: "failed", failure: { uncertain: true } });
  await lab.quiet();
  expect(deletes(lab.sent())).toEqual([]);
  expect(await lab.orphans()).toMatchObject([{ state: "held" }]);
  expect(await lab.ended("db", await lab.delete("db"))).toMatchObject({ kind: "succeeded", result: { asked: true } });
  expect(lab.broker.state().instances).toEqual([]);
});

test("E10-22: a delete while what is left of the create is being deleted joins that: there is one stream of DELETEs", async () => {
  const lab = await executionLab({
    offering: "unfetchable",
    rules: [
      { call: "provision", do: "async-fails" },
      { call: "deprovision", do: { slow: { ms: 300 } } },
    ],
  });
  const failed = await lab.ended("db", await lab.create("db"));
  expect(failed).toMatchObject({ kind: "failed", failure: { class: "operation failed", uncertain: false } });
  expect(await lab.ended("db", await lab.delete("db"))).toMatchObject({ kind: "succeeded", result: { asked: true } });
  expect(deletes(lab.sent())).toEqual(["DELETE osb-db"]);
  expect(await lab.orphans()).toMatchObject([{ state: "mitigated" }]);
});

test("E8: a row that was dismissed is not opened again by a create that takes the place of the one that left it", async () => {
  const lab = await executionLab({
    offering: "unfetchable",
    policy: { orphans: "hold" },
    rules: [{ call: "provision", instance: "osb-db", do: "done-500" }],
  });
  const orphans = new JournalOrphans(lab.journal);
  const key = keys.orphan("broker", "osb-db", null);
  await lab.ended("db", await lab.create("db"));
  await orphans.dismiss(key, "its data is needed", operator);
  // As of one that was stopped in the moment before it forgot its id.
  const remember = instances.decide((resource) => {
    if (resource === undefined) throw new Error("it is there");
    return { result: null, change: { data: { ...resource.data, osbId: "osb-db", formerOsbIds: [] } } };
  });
  await lab.journal.transact(keys.instance("dev", "db"), remember, operator);
  expect(await lab.ended("db", await lab.create("db", { osbId: "osb-next" }))).toMatchObject({ kind: "succeeded" });
  await lab.quiet();
  expect(await lab.orphans()).toMatchObject([{ state: "dismissed", endReason: "its data is needed" }]);
  expect(lab.broker.state().instances.map(({ id }) => id)).toEqual(["osb-db", "osb-next"]);
  expect((await lab.data("db"))?.formerOsbIds).toEqual(["osb-db"]);
});

test("E8: a row that is dismissed with a reason is left alone", async () => {
  const lab = await executionLab({
    rules: [
      { call: "provision", do: "async-fails" },
      { call: "deprovision", do: "500" },
    ],
  });
  await lab.ended("db", await lab.create("db"));
  const orphans = new JournalOrphans(lab.journal);
  const key = keys.orphan("broker", "osb-db", null);
  await expect(orphans.dismiss(key, " ", operator)).rejects.toMatchObject({ code: "invalid" });
  const dismissed = await orphans.dismiss(key, "deleted by hand", operator);
  expect(dismissed).toMatchObject({ state: "dismissed", endedBy: "olga", endReason: "deleted by hand" });
  await lab.quiet();
  const sent = lab.sent().length;
  await expect(orphans.mitigate(key, operator)).rejects.toMatchObject({ code: "too-late" });
  expect(lab.sent().length).toBe(sent);
});

test("E8: a DELETE whose answer was lost stays in its row, also when that is dismissed", async () => {
  const lab = await executionLab({
    rules: [
      { call: "provision", do: "async-fails" },
      { call: "deprovision", do: "500" },
    ],
  });
  await lab.ended("db", await lab.create("db"));
  await vi.waitFor(async () => expect((await lab.orphans())[0]?.tries).toBeGreaterThan(0));
  const orphans = new JournalOrphans(lab.journal);
  expect(await orphans.dismiss(keys.orphan("broker", "osb-db", null), "looked after by hand", operator)).toMatchObject({
    deleting: { operation: null },
  });
});

test("E10-29: what is abandoned is in the ledger, and no call is made for it", async () => {
  const lab = await executionLab();
  await lab.ended("db", await lab.create("db"));
  expect(await lab.ended("db", await lab.delete("db", { mode: "abandon" }))).toMatchObject({
    result: { asked: false },
  });
  expect(deletes(lab.sent())).toEqual([]);
  await lab.checkNothingUnknown();
  const key = keys.orphan("broker", "osb-db", null);
  expect(await new JournalOrphans(lab.journal).mitigate(key, operator)).toMatchObject({ state: "open" });
  await lab.quiet();
  expect(lab.broker.state().instances).toEqual([]);
});

test("E10-29: bindings of what is abandoned are in the ledger, too, and whoever adopts and deletes it has them deleted first", async () => {
  const lab = await executionLab();
  await lab.ended("db", await lab.create("db"));
  await lab.ended("db", await lab.bind("db", "app"));
  await lab.ended("db", await lab.delete("db", { mode: "abandon" }));
  expect(deletes(lab.sent())).toEqual([]);
  expect(await lab.orphans()).toMatchObject([
    { instanceOsbId: "osb-db", bindingOsbId: null, state: "abandoned" },
    { instanceOsbId: "osb-db", bindingOsbId: "osb-db-app", state: "abandoned" },
  ]);
  await lab.ended("new", await lab.adopt("new", "osb-db"));
  expect(await lab.ended("new", await lab.delete("new"))).toMatchObject({ kind: "succeeded" });
  expect(lab.broker.state().instances).toEqual([]);
});

test("E10-26: a delete waits for what the ledger still deletes of the instance's bindings", async () => {
  const lab = await executionLab({
    rules: [
      { call: "bind", do: ["drain-unasked"] },
      { call: "unbind", do: ["500", "500", "500", "500"] },
    ],
  });
  await lab.ended("db", await lab.create("db"));
  await lab.ended("db", await lab.bind("db", "app"));
  expect(await lab.ended("db", await lab.delete("db"))).toMatchObject({ kind: "succeeded" });
  expect(lab.broker.state().instances).toEqual([]);
});

test("E10-26: however many rows of bindings have ended, a delete waits for the one that has not", async () => {
  const lab = await executionLab({
    offering: "unfetchable",
    policy: { orphans: "hold" },
    rules: [{ call: "bind", do: "done-500" }],
  });
  await lab.ended("db", await lab.create("db"));
  expect(await lab.ended("db", await lab.bind("db", "app"))).toMatchObject({ kind: "failed" });
  const [left] = await lab.orphans();
  if (left === undefined) throw new Error("the bind has left something");
  for (let number = 0; number < 450; number++) {
    const data: OrphanData = { ...left, bindingOsbId: `a-${1_000 + number}`, state: "mitigated", endedAt: 1 };
    const ended = orphanRecords.decide(() => ({ result: null, change: { data, gone: true } }));
    await lab.journal.transact(keys.orphan("broker", "osb-db", data.bindingOsbId), ended, operator);
  }
  expect(await lab.ended("db", await lab.delete("db"))).toMatchObject({ kind: "succeeded" });
  expect(deletes(lab.sent())[0]).toBe("DELETE osb-db/service_bindings/osb-db-app");
  expect(lab.broker.state().instances).toEqual([]);
});

test("E10-43, P-BIND-06: a binding of no use is failed, deleted at the broker, and its credentials are kept nowhere", async () => {
  const lab = await executionLab({ rules: [{ call: "bind", do: ["drain-unasked"] }] });
  await lab.ended("db", await lab.create("db"));
  expect(await lab.ended("db", await lab.bind("db", "app"))).toMatchObject({
    kind: "failed",
    failure: { class: "unusable answer" },
  });
  await lab.quiet();
  expect(lab.broker.state().instances).toMatchObject([{ bindings: [] }]);
  expect(await lab.binding("db", "app")).toMatchObject({ phase: "failed", answer: null });
  expect(await lab.orphans()).toMatchObject([{ state: "mitigated", bindingOsbId: "osb-db-app" }]);
});

test("P-DEL-03, E10-27: 404 to a delete is asked once more, and then it is refused with a hint, unless the broker is known to mean 410", async () => {
  const rules = [{ call: "deprovision", do: ["404", "404"] }] as const;
  const lab = await executionLab({ rules });
  await lab.ended("db", await lab.create("db"));
  expect(await lab.ended("db", await lab.delete("db"))).toMatchObject({
    kind: "failed",
    error: { message: expect.stringContaining("notFoundMeansGone") },
    failure: { class: "not found" },
  });
  expect(deletes(lab.sent())).toHaveLength(2);
  expect(await lab.data("db")).toMatchObject({ osbId: "osb-db" });
  const quirky = await executionLab({ rules, quirks: { notFoundMeansGone: true } });
  await quirky.ended("db", await quirky.create("db"));
  expect(await quirky.ended("db", await quirky.delete("db"))).toMatchObject({ kind: "succeeded" });
  expect(deletes(quirky.sent())).toHaveLength(1);
});

test("secrets of a broker are in no entry of the journal", async () => {
  const secret = "hunter2-of-the-broker";
  const text = `{"credentials":{"password":"${secret}","account":12345678901234567890}}`;
  const lab = await executionLab({ rules: [{ call: "bind", do: { status: 201, text } }] });
  await lab.ended("db", await lab.create("db"));
  await lab.ended("db", await lab.bind("db", "app"));
  expect((await lab.binding("db", "app"))?.answer).toBe(text);
  expect(JSON.stringify(await lab.entries("db"))).not.toContain(secret);
});
