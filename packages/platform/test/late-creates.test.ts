import { setTimeout as pause } from "node:timers/promises";
import type { Store } from "@osbert/journal";
import { memoryStore } from "@osbert/journal/memory";
import { expect, test } from "vitest";
import type { BindingRecord } from "../src/records/instance-record.js";
import { keys } from "../src/records/keys.js";
import type { Misbehaviour } from "../src/testing/index.js";
import { type ExecutionLab, executionLab } from "./execution-lab.js";

/** A broker that answers so, and does it when the test says. */
const late = (answer: Misbehaviour): Misbehaviour => ({ effect: "late", lateMs: 3_600_000, ...answer });
const answered = (lab: ExecutionLab, method: string, id: string) =>
  lab.broker.requests().filter((one) => one.method === method && one.path.endsWith(id) && one.delivered !== null);

async function until(is: () => Promise<boolean> | boolean): Promise<void> {
  for (let look = 0; look < 1_000; look++) {
    if (await is()) return;
    await pause(10);
  }
  throw new Error("it has not come to be");
}

test.each([{ status: 500 }, { answerBytes: 0 }])(
  "E8: what is made late, after %j and after the broker said that there is nothing, is found and deleted",
  async (answer) => {
    const lab = await executionLab({
      offering: "unfetchable",
      pauses: { lateMs: 1_500 },
      rules: [{ call: "provision", instance: "osb-db", do: late(answer) }],
    });
    const create = await lab.create("db");
    await until(() => answered(lab, "DELETE", "osb-db").length > 0);
    lab.broker.finishLate();
    expect(await lab.ended("db", create)).toMatchObject({ kind: "succeeded" });
    await lab.quiet();
    await lab.checkNothingUnknown();
    expect(lab.broker.state().instances).toHaveLength(1);
    expect(await lab.orphans()).toMatchObject([{ state: "mitigated" }]);
  },
);

test("E8: what is made late, after the second attempt was deleted, is found and deleted", async () => {
  const lab = await executionLab({
    offering: "unfetchable",
    pauses: { lateMs: 1_500 },
    rules: [{ call: "provision", instance: "osb-db", do: [late({ answerBytes: 0 }), "done-500"] }],
  });
  const create = await lab.create("db");
  await until(() => answered(lab, "DELETE", "osb-db").some(({ delivered }) => delivered === 200));
  lab.broker.finishLate();
  expect(await lab.ended("db", create)).toMatchObject({ kind: "succeeded" });
  await lab.quiet();
  await lab.checkNothingUnknown();
  expect(lab.broker.state().instances).toHaveLength(1);
});

test("E8: a binding that is made late, after a 500 and after the broker said that there is nothing, is found and deleted", async () => {
  const lab = await executionLab({
    offering: "unfetchable",
    pauses: { lateMs: 1_500 },
    rules: [{ call: "bind", binding: "osb-db-app", do: late({ status: 500 }) }],
  });
  await lab.ended("db", await lab.create("db"));
  const bind = await lab.bind("db", "app");
  await until(() => answered(lab, "DELETE", "osb-db-app").length > 0);
  lab.broker.finishLate();
  expect(await lab.ended("db", bind)).toMatchObject({ kind: "succeeded" });
  await lab.quiet();
  await lab.checkNothingUnknown();
  expect(lab.broker.state().instances).toMatchObject([{ bindings: [expect.anything()] }]);
});

test("E8: a create whose polls are refused may go on: that the broker says there is nothing does not end the row", async () => {
  const lab = await executionLab({
    pauses: { lateMs: 1_500 },
    rules: [
      { call: "provision", do: "async-polls-refused" },
      { call: "deprovision", do: [{ status: 410 }] },
    ],
  });
  expect(await lab.ended("db", await lab.create("db"))).toMatchObject({ failure: { uncertain: true } });
  await lab.quiet();
  expect(lab.broker.state().instances).toEqual([]);
});

test("E10-22: a delete waits until the broker has deleted what a create left, and not for what may still come: the ledger looks for that", async () => {
  const lab = await executionLab({
    offering: "unfetchable",
    policy: { orphans: "hold" },
    pauses: { lateMs: 3_600_000 },
    rules: [{ call: "provision", do: "done-500" }],
  });
  expect(await lab.ended("db", await lab.create("db"))).toMatchObject({ kind: "failed" });
  expect(await lab.ended("db", await lab.delete("db"))).toMatchObject({ kind: "succeeded", result: { asked: true } });
  expect(lab.broker.state().instances).toEqual([]);
  expect(await lab.orphans()).toMatchObject([{ state: "open", endedAt: null }]);
});

test("E10-22: what a create makes late, after it was deleted together with its second attempt, is found and deleted", async () => {
  const lab = await executionLab({
    offering: "unfetchable",
    pauses: { lateMs: 1_500 },
    timeoutMs: 60_000,
    rules: [{ call: "provision", do: [late({ answerBytes: 0 }), "done-hang"] }],
  });
  const create = await lab.create("db");
  await until(() => lab.broker.state().instances.length > 0);
  const deleted = await lab.delete("db");
  await lab.cancel("db", create);
  expect(await lab.ended("db", deleted)).toMatchObject({ kind: "succeeded" });
  lab.broker.finishLate();
  await lab.quiet();
  expect(lab.broker.state().instances).toEqual([]);
});

test("E8: a binding of which one attempt was lost, and another has succeeded, does not come back after it was unbound", async () => {
  const lab = await executionLab({
    offering: "unfetchable",
    pauses: { lateMs: 1_500 },
    rules: [{ call: "bind", do: [late({ status: 500 })] }],
  });
  await lab.ended("db", await lab.create("db"));
  expect(await lab.ended("db", await lab.bind("db", "app"))).toMatchObject({ kind: "succeeded" });
  expect(await lab.ended("db", await lab.unbind("db", "app"))).toMatchObject({ kind: "succeeded" });
  lab.broker.finishLate();
  await lab.quiet();
  expect(lab.broker.state().instances).toMatchObject([{ bindings: [] }]);
});

type Change = Parameters<Store["commit"]>[0];

/** What is kept of a resource, commit by commit: each value that differs from the one before. */
function history(store: Store, of: (change: Change) => string | undefined): { readonly store: Store; seen: string[] } {
  const seen: string[] = [];
  const commit: Store["commit"] = async (change) => {
    const value = of(change);
    const outcome = await store.commit(change);
    if (outcome.kind === "committed" && value !== undefined && value !== seen.at(-1)) seen.push(value);
    return outcome;
  };
  const watched = new Proxy(store, {
    get: (target, name) => {
      if (name === "commit") return commit;
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
  return { store: watched, seen };
}

test("E8: a third bind is not given the id of the second again, and waiting for it costs no entries", async () => {
  const record = ({ putParts }: Change) => {
    const text = putParts.find(({ id }) => id === "binding/app")?.body;
    if (text === undefined) return undefined;
    const { osbId, lostBind } = JSON.parse(text) as BindingRecord;
    return `${osbId} ${lostBind?.osbId} ${lostBind?.at}`;
  };
  const { store, seen } = history(memoryStore(), record);
  const lab = await executionLab({
    store,
    offering: "unfetchable",
    rules: [{ call: "bind", do: ["500", "500", "500", "500", { slow: { ms: 300 } }] }],
  });
  await lab.ended("db", await lab.create("db"));
  expect(await lab.ended("db", await lab.bind("db", "app"))).toMatchObject({ kind: "succeeded" });
  const ids = seen.map((line) => line.split(" ")[0]).filter((id, at, all) => id !== all[at - 1]);
  expect(ids).toHaveLength(3);
  expect(new Set(seen).size).toBe(seen.length);
  expect(lab.sent().filter((line) => line.endsWith("last_operation")).length).toBeGreaterThan(3);
  const entries = await lab.entries("db");
  expect(entries.filter(({ kind }) => kind === "changed").length).toBeLessThan(5);
});

test("E8: of two creates that are lost, the one that was lost last is kept, however long the third takes", async () => {
  const lost = ({ key, state }: Change) =>
    key === keys.instance("dev", "db") ? /"lostCreate":\{[^}]*\}/.exec(state)?.[0] : undefined;
  const { store, seen } = history(memoryStore(), lost);
  const lab = await executionLab({
    store,
    offering: "unfetchable",
    rules: [{ call: "provision", do: ["500", "500", "500", "500", { slow: { ms: 300 } }] }],
  });
  expect(await lab.ended("db", await lab.create("db"))).toMatchObject({ kind: "succeeded" });
  const ids = seen.map((text) => /"osbId":"([^"]*)"/.exec(text)?.[1]);
  expect(ids.filter((id, at) => id !== ids[at - 1])).toHaveLength(2);
});
