import { describe, expect, test } from "vitest";
import {
  type AdminDecision,
  configure,
  confirmContent,
  confirmRemoval,
  disable,
  drain,
  enable,
  hold,
  release,
  removePushed,
  restore,
  withdraw,
} from "../src/reconcile/admin-decisions.js";
import { identifySources } from "../src/reconcile/identify-sources.js";
import { drainedObservation } from "../src/reconcile/next-state.js";
import { isOffered, isStale, newSource } from "../src/reconcile/records.js";
import { bundle, bundles, codes, dayMs, hourMs, SourceLab } from "./source-lab.js";

const anna = (lab: SourceLab, why = "because") => ({ by: "anna", why, now: lab.now });

function done(lab: SourceLab, decision: AdminDecision) {
  if (decision.kind === "refused") throw new Error(decision.why);
  return lab.commit(decision.change);
}

function labOf(seen = bundles(10)): SourceLab {
  const lab = new SourceLab();
  lab.read(seen);
  return lab;
}

describe("specs", () => {
  test("F2: a spec that is held neither goes, nor retires, nor takes new content, until it is released", () => {
    const lab = labOf({ a: bundle(), b: bundle() });
    done(lab, hold(lab.stored, "a", anna(lab)));
    const held = lab.service("a");
    for (let run = 0; run < 5; run++) lab.read({ b: bundle() });
    lab.read({ a: bundle({ version: "2.0.0" }), b: bundle() });
    expect(lab.service("a")).toEqual(held);
    done(lab, release(lab.stored, "a", anna(lab)));
    lab.read({ a: bundle({ version: "2.0.0" }), b: bundle() });
    expect(lab.service("a").current.version).toBe("2.0.0");
  });

  test("F5-18: a withdrawal bypasses the guard, is immediate, and stays whatever readings find", () => {
    const lab = labOf();
    for (const spec of Object.keys(lab.states)) done(lab, withdraw(lab.stored, spec, anna(lab, "CVE-2026-1")));
    expect(lab.data).toMatchObject({ guard: null, counts: { retired: 10 } });
    lab.read(bundles(10));
    lab.read({ b00: bundle({ name: "b00", version: "9.0.0" }) });
    expect(lab.data.counts.retired).toBe(10);
    expect(lab.service("b00").state).toMatchObject({ reason: "withdrawn", why: "CVE-2026-1" });
  });

  test("F5-85: what was withdrawn or has retired is restored at once, and is counted anew", () => {
    const lab = labOf({ a: bundle() });
    done(lab, withdraw(lab.stored, "a", anna(lab)));
    const snapshot = lab.data.snapshot;
    expect(codes(done(lab, restore(lab.stored, "a", anna(lab))))).toEqual(["spec.restored"]);
    expect(isOffered(lab.data, lab.service("a"))).toBe(true);
    expect(lab.data.snapshot).toBe(snapshot + 1);
    lab.read({});
    expect(lab.service("a").state).toMatchObject({ kind: "missing", count: 1 });
  });

  test("F5-19: content that lacks plans in use is confirmed by its digest", () => {
    const lab = labOf({ a: bundle({ plans: ["s"] }) });
    const plansInUse = lab.service("a").current.plans.map(({ id }) => id);
    const next = bundle({ plans: ["m"], version: "2.0.0" });
    lab.read({ a: next }, { plansInUse });
    done(lab, confirmContent(lab.stored, "a", next.revision.digest, anna(lab)));
    lab.read({ a: next }, { plansInUse });
    expect(lab.service("a").current.version).toBe("2.0.0");
  });

  test("every refusal is a sentence that says what is the matter", () => {
    const lab = labOf({ a: bundle(), bad: bundle({ plans: [] }) });
    const { stored } = lab;
    const by = anna(lab);
    const held = {
      ...stored,
      specs: new Map([["a", { ...lab.service("a"), held: { since: 0, by: "bo", why: "test" } }]]),
    };
    const sentences: readonly [AdminDecision, RegExp][] = [
      [hold(stored, "x", by), /there is no spec x in hub/],
      [hold(stored, "bad", by), /has never been offered/],
      [hold(held, "a", by), /held already, by bo: test/],
      [release(stored, "a", by), /is not held/],
      [restore(stored, "a", by), /a is active; only what has retired/],
      [confirmRemoval(stored, "run-9", by), /no removal is held in hub/],
      [confirmContent(stored, "a", "sha256:0", by), /nothing of a waits/],
      [enable(stored, by), /active already/],
      [removePushed(stored, "all", by, { servicesInUse: new Set(), force: true }), /read from a registry/],
    ];
    for (const [decision, sentence] of sentences)
      expect(decision).toEqual({ kind: "refused", why: expect.stringMatching(sentence) });
  });
});

describe("sources", () => {
  test("F5-17a: a held removal is confirmed by its observation, and by no other", () => {
    const lab = labOf();
    lab.read({});
    expect(confirmRemoval(lab.stored, "run-1", anna(lab))).toMatchObject({ kind: "refused" });
    done(lab, confirmRemoval(lab.stored, "run-2", anna(lab)));
    expect(lab.data.counts.active).toBe(10);
    lab.read({});
    expect(lab.data.counts.missing).toBe(10);
  });

  test("F5-23: a source that left the configuration drains under the guard; confirmed, its specs retire", () => {
    const lab = labOf();
    done(lab, drain(lab.stored, { by: null, why: "not configured" }));
    const run = (id: string) => {
      lab.now += hourMs;
      return lab.commit(lab.decideOn(drainedObservation(lab.data, id)));
    };
    expect(codes(run("d1"))).toEqual(["guard.tripped"]);
    run("d2");
    run("d3");
    run("d4");
    expect(lab.data.counts.active).toBe(10);
    done(lab, confirmRemoval(lab.stored, "d1", anna(lab)));
    for (const id of ["d5", "d6", "d7"]) run(id);
    expect(lab.data.counts.retired).toBe(10);
    expect(lab.service("b00").state).toMatchObject({ reason: "config", why: "its source has left the configuration" });
  });

  test("F5-23: what a person drains is not held, and comes back with the configuration", () => {
    const lab = labOf();
    done(lab, drain(lab.stored, { by: "anna", why: "moved" }));
    for (const id of ["d1", "d2", "d3"]) {
      lab.now += hourMs;
      lab.commit(lab.decideOn(drainedObservation(lab.data, id)));
    }
    expect(lab.data.counts.retired).toBe(10);
    done(lab, configure(lab.stored, { ...lab.data, generation: "g2" }, { by: "anna" }));
    lab.read(bundles(10));
    expect(lab.data.counts.active).toBe(10);
  });

  test("F5-23: what a person drains stays so when a process starts with the same settings", () => {
    const lab = labOf();
    done(lab, drain(lab.stored, { by: "anna", why: "moved" }));
    expect(codes(done(lab, configure(lab.stored, lab.data, { by: "the configuration" })))).toEqual([]);
    expect(lab.data).toMatchObject({ mode: "draining", drainedBy: "anna" });
    done(lab, configure(lab.stored, { ...lab.data, name: "docker" }, { by: "the configuration" }));
    expect(lab.data).toMatchObject({ name: "docker", mode: "draining", drainedBy: "anna" });
    done(lab, enable(lab.stored, anna(lab)));
    expect(lab.data).toMatchObject({ mode: "active", drainedBy: null });
  });

  test("F5-23: what the configuration has lacked comes back when it has it again, with the same settings", () => {
    const lab = labOf();
    done(lab, drain(lab.stored, { by: null, why: "not configured" }));
    done(lab, configure(lab.stored, lab.data, { by: "the configuration" }));
    expect(lab.data).toMatchObject({ mode: "active", drainedBy: null });
  });

  test("F5-28: a disabled source is read again when it is enabled, and time did not pass for what is missing", () => {
    const lab = labOf();
    lab.read(bundles(9, 1));
    done(lab, disable(lab.stored, anna(lab)));
    expect(isStale(lab.data, lab.service("b01"))).toBe(true);
    lab.now += 100 * dayMs;
    done(lab, enable(lab.stored, anna(lab)));
    lab.read(bundles(9, 1));
    expect(lab.service("b00").state).toMatchObject({ kind: "missing", count: 2, agedMs: 0 });
  });

  test("F5-64: pushed specs go when they are removed, or when a reading finds them taken back, and come back with a push", () => {
    const lab = new SourceLab({}, newSource("push", "g1", { listing: false }));
    lab.read({ a: bundle(), b: bundle() });
    done(lab, removePushed(lab.stored, ["a"], anna(lab), { servicesInUse: new Set(), force: false }));
    expect(lab.states).toEqual({ a: "retired", b: "active" });
    lab.read({ b: { kind: "removed", why: "its time was over" } });
    expect(lab.states).toEqual({ a: "retired", b: "retired" });
    expect(lab.service("b").state).toMatchObject({ reason: "removed", why: "its time was over" });
    lab.read({ a: bundle() });
    expect(lab.states).toEqual({ a: "active", b: "retired" });
  });

  test("F5-65: all pushed specs are not removed while there are instances, and with force they retire", () => {
    const lab = new SourceLab({}, newSource("push", "g1", { listing: false }));
    lab.read({ a: bundle(), b: bundle() });
    const servicesInUse = new Set([lab.service("b").serviceId]);
    const gently = removePushed(lab.stored, "all", anna(lab), { servicesInUse, force: false });
    expect(gently).toEqual({ kind: "refused", why: expect.stringContaining("there are instances of b") });
    done(lab, removePushed(lab.stored, "all", anna(lab), { servicesInUse, force: true }));
    expect(lab.states).toEqual({ a: "retired", b: "retired" });
  });
});

describe("F5-24: names of sources", () => {
  const known = (identityName: string, name = identityName) => ({ identityName, name });
  const source = (name: string, ...previousNames: string[]) => ({ name, previousNames });

  test.each([
    { what: "a new one", configured: [source("a")], kept: [], ids: { a: "a" }, left: [] },
    { what: "a known one", configured: [source("a")], kept: [known("a")], ids: { a: "a" }, left: [] },
    { what: "one that left", configured: [], kept: [known("a")], ids: {}, left: ["a"] },
    { what: "renamed with a word", configured: [source("b", "a")], kept: [known("a")], ids: { b: "a" }, left: [] },
    { what: "renamed without", configured: [source("b")], kept: [known("a")], ids: { b: "b" }, left: ["a"] },
    { what: "renamed long ago", configured: [source("b")], kept: [known("a", "b")], ids: { b: "a" }, left: [] },
    {
      what: "a new one under the old name",
      configured: [source("a"), source("b")],
      kept: [known("a", "b")],
      ids: { a: "a~2", b: "a" },
      left: [],
    },
    {
      what: "two that swap their names",
      configured: [source("a", "b"), source("b", "a")],
      kept: [known("a"), known("b")],
      ids: { a: "a", b: "b" },
      left: [],
    },
    {
      what: "two that claim one",
      configured: [source("b", "a"), source("c", "a")],
      kept: [known("a")],
      ids: { b: "a", c: "c" },
      left: [],
    },
  ])("$what", ({ configured, kept, ids, left }) => {
    const found = identifySources(configured, kept);
    expect(Object.fromEntries(found.identities)).toEqual(ids);
    expect(found.left).toEqual(left);
  });

  test("a renamed source gives what it finds the ids that it would have had", () => {
    const lab = labOf({ a: bundle() });
    const renamed = new SourceLab();
    renamed.read({});
    done(renamed, configure(renamed.stored, { ...renamed.data, name: "docker", generation: "g2" }, { by: "anna" }));
    renamed.read({ a: bundle() });
    expect(renamed.data.name).toBe("docker");
    expect(renamed.service("a").serviceId).toBe(lab.service("a").serviceId);
  });
});
