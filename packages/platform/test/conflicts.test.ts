import { setTimeout as pause } from "node:timers/promises";
import { expect, test } from "vitest";
import { cancelReasons } from "../src/decisions/cancel-reasons.js";
import { brokerClient, type ExecutionLab, executionLab } from "./execution-lab.js";

/** 409 says that the id belongs to something that exists: whatever comes after it, no DELETE does that nobody looked at (E10-63). */
const deletes = (lab: ExecutionLab) => lab.sent().filter((line) => line.startsWith("DELETE"));

async function until(is: () => boolean): Promise<void> {
  for (let look = 0; look < 500; look++) {
    if (is()) return;
    await pause(10);
  }
  throw new Error("it has not come to be");
}

test.each(["drain", "abandon"] as const)(
  "E10-63: a delete (%s) while a create that was answered 409 is polled is not sent: the row of the ledger waits for a person",
  async (mode) => {
    const lab = await executionLab({
      offering: "unfetchable",
      rules: [
        { call: "provision", do: ["done-500", "409"] },
        { call: "poll", do: { status: 404 } },
      ],
    });
    const create = await lab.create("db");
    await until(() => lab.sent().some((line) => line.endsWith("last_operation")));
    const deleted = await lab.delete("db", { mode });
    await lab.cancel("db", create);
    expect(await lab.ended("db", deleted)).toMatchObject({ kind: "succeeded", result: { asked: false } });
    await lab.quiet();
    expect(deletes(lab)).toEqual([]);
    expect(await lab.orphans()).toMatchObject([{ state: mode === "abandon" ? "abandoned" : "held", isConflict: true }]);
    await lab.checkNothingUnknown();
  },
);

/** The moments before that are those before the attempt, the step and the call, and after the call: what nobody has kept nobody knows. */
const heardAt = 5;

test("E10-63: a delete after a create was answered 409 is not sent, wherever that create was interrupted", async () => {
  const interrupted = async (dieAt: number) => {
    let deleted = "";
    const lab = await executionLab({
      dieAt,
      offering: "unfetchable",
      rules: [{ call: "provision", do: "409" }],
      whenDead: async (dead) => {
        await dead.cancelAll("db");
        deleted = await dead.accept("db", "delete", { mode: "drain", reason: null });
      },
    });
    lab.arm();
    const create = await lab.create("db");
    const end = await lab.ended("db", create);
    if (deleted !== "") await lab.ended("db", deleted);
    await lab.quiet();
    return { moments: lab.moments(), end: end.kind, deletes: deletes(lab), orphans: await lab.orphans() };
  };
  const { moments } = await interrupted(Number.POSITIVE_INFINITY);
  const ats = Array.from({ length: moments - heardAt + 1 }, (_, more) => heardAt + more);
  const ends = await Promise.all(ats.map(interrupted));
  for (const [at, end] of ends.entries()) {
    expect(end.deletes, `killed at ${ats[at]}`).toEqual([]);
    expect(end.orphans, `killed at ${ats[at]}`).toMatchObject([{ state: "held", isConflict: true }]);
  }
  expect(ends.some(({ end }) => end === "cancelled")).toBe(true);
});

test.each(["goes on", "is stopped and resumed"] as const)(
  "E10-63: a create that was answered 409 and %s, wherever the platform was killed, does not take another's for its own",
  async (way) => {
    const interrupted = async (dieAt: number) => {
      let resumed = "";
      const lab = await executionLab({
        dieAt,
        ...(way !== "goes on" && {
          whenDead: async (dead) => {
            resumed = await dead.resume("db");
          },
        }),
      });
      await lab.ended("other", await lab.create("other", { osbId: "osb-db" }));
      lab.broker.setRules([{ call: "provision", do: "409" }]);
      lab.arm();
      const create = await lab.create("db");
      const end = await lab.ended("db", create);
      const last = resumed === "" ? end : await lab.ended("db", resumed);
      await lab.quiet();
      return { moments: lab.moments(), end: last, orphans: await lab.orphans() };
    };
    const { moments } = await interrupted(Number.POSITIVE_INFINITY);
    const ats = Array.from({ length: moments - heardAt + 1 }, (_, more) => heardAt + more);
    for (const [at, { end, orphans }] of (await Promise.all(ats.map(interrupted))).entries()) {
      expect(end, `killed at ${ats[at]}`).toMatchObject({ failure: { class: "conflict" } });
      // One that had forgotten the id before it was stopped goes on with another one.
      expect(orphans[0], `killed at ${ats[at]}`).toMatchObject({
        instanceOsbId: "osb-db",
        state: "held",
        isConflict: true,
      });
    }
  },
);

/** The bind of an id that another has at the broker, which answers it with 409. */
async function conflictingBind(dieAt: number, isUnbound: boolean) {
  let unbound = "";
  const lab = await executionLab({
    dieAt,
    ...(isUnbound && {
      whenDead: async (dead) => {
        // Its broker is taken away and comes back: only that ends a bind that was sent.
        await dead.cancelAll("db", cancelReasons.unmanaged);
        unbound = await dead.accept("db", "unbind", { binding: "app" });
      },
    }),
  });
  await lab.ended("db", await lab.create("db"));
  const { id: plan_id } = lab.planRef();
  const offering = (await lab.data("db"))?.offering.id ?? "";
  await brokerClient(lab.broker.url, 5_000).bind("osb-db", "osb-db-app", { service_id: offering, plan_id });
  lab.broker.setRules([{ call: "bind", do: "409" }]);
  lab.arm();
  const end = await lab.ended("db", await lab.bind("db", "app"));
  lab.disarm();
  await lab.data("db");
  if (unbound !== "") await lab.ended("db", unbound);
  await lab.quiet();
  const credentials = (await lab.binding("db", "app"))?.answer ?? null;
  return { moments: lab.moments(), end, credentials, orphans: await lab.orphans(), deletes: deletes(lab) };
}

test("E10-63: a bind that was answered 409, wherever the platform was killed, does not take another's credentials for its own", async () => {
  const { moments } = await conflictingBind(Number.POSITIVE_INFINITY, false);
  const ats = Array.from({ length: moments - heardAt + 1 }, (_, more) => heardAt + more);
  const ends = await Promise.all(ats.map((at) => conflictingBind(at, false)));
  for (const [at, { end, credentials, orphans }] of ends.entries()) {
    expect(end, `killed at ${ats[at]}`).toMatchObject({ failure: { class: "conflict", uncertain: false } });
    expect(credentials, `killed at ${ats[at]}`).toBeNull();
    expect(orphans, `killed at ${ats[at]}`).toMatchObject([{ state: "held", isConflict: true }]);
  }
});

test("E10-63: an unbind after a bind was answered 409 is not sent, wherever that bind was interrupted", async () => {
  const { moments } = await conflictingBind(Number.POSITIVE_INFINITY, true);
  const ats = Array.from({ length: moments - heardAt + 1 }, (_, more) => heardAt + more);
  const ends = await Promise.all(ats.map((at) => conflictingBind(at, true)));
  for (const [at, { deletes: sent, orphans }] of ends.entries()) {
    expect(sent, `killed at ${ats[at]}`).toEqual([]);
    expect(orphans, `killed at ${ats[at]}`).toMatchObject([{ state: "held", isConflict: true }]);
  }
  expect(ends.some(({ end }) => end.kind === "cancelled")).toBe(true);
});

test("E10-63: a bind that was lost, met a busy broker and is then answered 409 may be another's: it is not deleted", async () => {
  const lab = await executionLab({
    offering: "unfetchable",
    rules: [
      { call: "bind", do: ["reset", "concurrency", "409"] },
      { call: "poll-binding", do: { status: 200, body: { state: "succeeded" } } },
    ],
  });
  await lab.ended("db", await lab.create("db"));
  expect(await lab.ended("db", await lab.bind("db", "app"))).toMatchObject({ failure: { class: "conflict" } });
  await lab.quiet();
  expect(deletes(lab)).toEqual([]);
  expect(await lab.orphans()).toMatchObject([{ state: "held", isConflict: true, bindingOsbId: "osb-db-app" }]);
});

test("E10-63: what was answered 409 and turned out to be its own is deleted as any other", async () => {
  const lab = await executionLab({
    offering: "unfetchable",
    rules: [
      { call: "provision", do: ["done-500", "409"] },
      { call: "poll", do: { status: 200, body: { state: "succeeded" } } },
    ],
  });
  expect(await lab.ended("db", await lab.create("db"))).toMatchObject({ kind: "succeeded" });
  expect(await lab.ended("db", await lab.delete("db"))).toMatchObject({ kind: "succeeded", result: { asked: true } });
  expect(lab.broker.state().instances).toEqual([]);
});
