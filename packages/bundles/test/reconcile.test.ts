import { describe, expect, test } from "vitest";
import { knownDigests } from "../src/reconcile/known-digests.js";
import { isOffered, isStale, newSource, type ServiceRecord } from "../src/reconcile/records.js";
import { defaultRules } from "../src/reconcile/rules.js";
import {
  bundle,
  bundles,
  codes,
  dayMs,
  digestOf,
  hourMs,
  minuteMs,
  planSpec,
  revisionOf,
  SourceLab,
} from "./source-lab.js";

const unreadable = { kind: "unreadable", why: "503 Service Unavailable" } as const;
const absent = { kind: "absent" } as const;
const filtered = { kind: "filtered", why: "black_list: ^a$" } as const;
const invalid = (content: number) =>
  ({
    kind: "invalid",
    digest: digestOf(content),
    problems: [{ path: "plans[0].name", message: "is missing", line: 4, advice: false }],
  }) as const;
const notBundle = (content: number) => ({ kind: "not a bundle", digest: digestOf(content), why: "no label" }) as const;
const same = (lab: SourceLab, id: string) => ({ kind: "same", digest: lab.service(id).current.digest }) as const;

/** A source with one spec, `a`, that has been read once. */
function one(rules = {}): SourceLab {
  const lab = new SourceLab(rules);
  lab.read({ a: bundle() });
  return lab;
}

describe("the life cycle (F2)", () => {
  test("a bundle that is found becomes active, with ids and a revision", () => {
    const lab = new SourceLab();
    const change = lab.read({ a: bundle() });
    const { serviceId, current, history } = lab.service("a");
    expect(lab.state("a")).toBe("active");
    expect(serviceId).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    expect(current.version).toBe("1.0.0");
    expect(history).toHaveLength(1);
    expect([...lab.revisions.keys()]).toEqual([`revision/a@${current.digest}`]);
    expect(codes(change)).toEqual(["spec.added"]);
    expect(change.catalogChanged).toBe(true);
    expect(lab.data).toMatchObject({ snapshot: 1, counts: { active: 1 } });
  });

  test("F5-80: a reading that finds everything as it was has nothing to write, and the snapshot stays", () => {
    const lab = one();
    for (const seen of [same(lab, "a"), bundle()]) {
      const change = lab.read({ a: seen });
      expect(change).toMatchObject({ quiet: true, catalogChanged: false, events: [], specs: new Map() });
      expect(change.data.snapshot).toBe(1);
    }
  });

  test("F5-80: stale and missing leave the snapshot number as it is", () => {
    const lab = one();
    lab.read({ a: unreadable });
    lab.read({});
    lab.read({ a: bundle() });
    expect(lab.data.snapshot).toBe(1);
  });

  test("new content is a new revision; the old one is kept", () => {
    const lab = one();
    const change = lab.read({ a: bundle({ version: "1.1.0" }) });
    expect(lab.service("a").current.version).toBe("1.1.0");
    expect(lab.service("a").history.map(({ version }) => version)).toEqual(["1.1.0", "1.0.0"]);
    expect(lab.revisions.size).toBe(2);
    expect(codes(change)).toEqual(["spec.updated"]);
    expect(lab.data.snapshot).toBe(2);
  });

  test("a spec that is not listed is missing, stays in the catalog, and retires after three readings and 15 minutes", () => {
    const lab = one();
    lab.read({});
    expect(lab.service("a").state).toMatchObject({ kind: "missing", reason: "absent", count: 1, agedMs: 0 });
    expect(isOffered(lab.data, lab.service("a"))).toBe(true);
    lab.read({});
    expect(lab.state("a")).toBe("missing");
    const change = lab.read({});
    expect(lab.service("a").state).toMatchObject({ kind: "retired", reason: "absent" });
    expect(codes(change)).toEqual(["spec.retired"]);
    expect(lab.data.snapshot).toBe(2);
  });

  test("three quick readings are not 15 minutes", () => {
    const lab = one();
    for (let run = 0; run < 15; run++) lab.read({}, { afterMs: minuteMs });
    expect(lab.service("a").state).toMatchObject({ kind: "missing", count: 15, agedMs: 14 * minuteMs });
    lab.read({}, { afterMs: minuteMs });
    expect(lab.state("a")).toBe("retired");
  });

  test("15 minutes are not three readings", () => {
    const lab = one();
    lab.read({});
    lab.read({}, { afterMs: dayMs });
    expect(lab.state("a")).toBe("missing");
  });

  test("what is missing and found again has nothing counted against it", () => {
    const lab = one();
    lab.read({});
    lab.read({});
    expect(codes(lab.read({ a: bundle() }))).toEqual(["spec.returned"]);
    lab.read({});
    expect(lab.service("a").state).toMatchObject({ kind: "missing", count: 1, agedMs: 0 });
    expect(lab.data.snapshot).toBe(1);
  });

  test("while the source fails, neither count nor age of what is missing grows", () => {
    const lab = one();
    lab.read({});
    lab.read({});
    lab.fail("timeout", { afterMs: dayMs });
    lab.read({}, { afterMs: dayMs });
    expect(lab.service("a").state).toMatchObject({ kind: "missing", count: 3, agedMs: 10 * minuteMs });
    lab.read({}, { afterMs: 5 * minuteMs });
    expect(lab.state("a")).toBe("retired");
  });

  test("while it cannot be read itself, neither count nor age of what is missing grows", () => {
    const lab = one();
    lab.read({});
    lab.read({});
    lab.read({ a: unreadable }, { afterMs: dayMs });
    lab.read({ a: absent }, { afterMs: dayMs });
    expect(lab.service("a").state).toMatchObject({ kind: "missing", count: 3, agedMs: 10 * minuteMs });
  });

  test("what has retired and is found again is active, with the ids it had", () => {
    const lab = one();
    const { serviceId, current } = lab.service("a");
    for (let run = 0; run < 3; run++) lab.read({});
    const change = lab.read({ a: same(lab, "a") });
    expect(lab.service("a")).toMatchObject({ serviceId, state: { kind: "active" }, current: { plans: current.plans } });
    expect(codes(change)).toEqual(["spec.returned"]);
    expect(lab.data.snapshot).toBe(3);
  });

  test("what was deleted and is found again is active, with the ids it had; a digest alone does not bring it back", () => {
    const lab = one();
    const { serviceId, current, ref, idFrom, knownPlans } = lab.service("a");
    const specs = new Map([
      ["a", { kind: "deleted", ref, serviceId, idFrom, knownPlans, deletedAt: lab.now } as const],
    ]);
    lab.stored = { ...lab.stored, specs };
    expect(lab.read({ a: { kind: "same", digest: current.digest } }).specs.size).toBe(0);
    lab.read({ a: bundle() });
    expect(lab.service("a")).toMatchObject({ serviceId, current: { plans: current.plans } });
  });

  test("an observation of another configuration is not taken in", () => {
    const lab = one();
    expect(lab.read({}, { generation: "g0" })).toMatchObject({
      quiet: true,
      data: { readableAt: lab.now - 10 * minuteMs },
    });
    expect(lab.state("a")).toBe("active");
  });
});

describe("connection and partial failure", () => {
  test("F5-1: a source that is down makes its specs stale, writes none of them, and changes no catalog", () => {
    const lab = one();
    const change = lab.fail();
    expect(change).toMatchObject({ catalogChanged: false, specs: new Map() });
    expect(isStale(lab.data, lab.service("a"))).toBe(true);
    expect(codes(change)).toEqual(["source.failing"]);
    expect(codes(lab.read({ a: bundle() }))).toEqual(["source.recovered"]);
    expect(isStale(lab.data, lab.service("a"))).toBe(false);
  });

  test("F0, F5-2, F5-3: a source that stays down for a year removes nothing", () => {
    const lab = one();
    for (let day = 0; day < 365; day++) lab.fail("connection refused", { afterMs: dayMs });
    expect(lab.state("a")).toBe("active");
    expect(lab.data).toMatchObject({ snapshot: 1, health: { consecutiveFailures: 365 } });
  });

  test("F5-4: as long as no list was read to its end, nobody knows what there is", () => {
    const lab = new SourceLab();
    lab.fail();
    expect(lab.data.firstComplete).toBeNull();
    lab.read({ a: bundle() }, { completeness: "failed" });
    expect(lab.data.firstComplete).toBeNull();
    lab.read({ a: unreadable, b: unreadable });
    expect(lab.data.firstComplete).toBeNull();
    lab.read({ a: unreadable, b: bundle() });
    expect(lab.data.firstComplete).toBe(lab.now);
  });

  test("F5-4: an empty source that was read is known to be empty, and that is a new snapshot", () => {
    const lab = new SourceLab();
    expect(lab.read({}).catalogChanged).toBe(true);
    expect(lab.data).toMatchObject({ snapshot: 1, firstComplete: lab.now });
  });

  test("F5-5: failures are counted, with the time of the first, and the error is told", () => {
    const lab = one();
    lab.fail("no route to host");
    const firstFailureAt = lab.now;
    lab.fail("timeout");
    expect(lab.data.health).toMatchObject({ consecutiveFailures: 2, firstFailureAt, lastError: "timeout" });
  });

  test("F5-5: hideAfter hides all specs, and shows them with the next reading", () => {
    const lab = one({ onUnreachable: { kind: "hide after", ms: 7 * dayMs } });
    lab.fail();
    lab.fail("down", { afterMs: 7 * dayMs - 1 });
    expect(isOffered(lab.data, lab.service("a"))).toBe(true);
    expect(codes(lab.fail("down", { afterMs: 1 }))).toEqual(["source.hidden"]);
    expect(isOffered(lab.data, lab.service("a"))).toBe(false);
    expect(lab.state("a")).toBe("active");
    expect(lab.data.snapshot).toBe(2);
    expect(codes(lab.read({ a: same(lab, "a") }))).toEqual(["source.recovered", "source.shown"]);
    expect(lab.data.snapshot).toBe(3);
  });

  test("F5-5: retireAfter retires all specs; they come back with the source", () => {
    const lab = one({ onUnreachable: { kind: "retire after", ms: 30 * dayMs } });
    lab.fail();
    lab.fail("down", { afterMs: 30 * dayMs });
    expect(lab.service("a").state).toMatchObject({ kind: "retired", reason: "unreachable" });
    lab.read({ a: same(lab, "a") });
    expect(lab.state("a")).toBe("active");
  });

  test("F5-5: neither is ever shorter than an hour", () => {
    for (const kind of ["hide after", "retire after"] as const) {
      const lab = one({ onUnreachable: { kind, ms: 0 } });
      lab.fail();
      lab.fail("down", { afterMs: hourMs - 1 });
      expect(isOffered(lab.data, lab.service("a"))).toBe(true);
      lab.fail("down", { afterMs: 1 });
      expect(isOffered(lab.data, lab.service("a"))).toBe(false);
    }
  });

  test("F5-5: deleteAfterFailures takes what has no instances, as the seed had it", () => {
    const lab = new SourceLab({ deleteAfterFailures: 3 });
    lab.read({ used: bundle(), unused: bundle() });
    const servicesInUse = [lab.service("used").serviceId];
    for (let run = 0; run < 2; run++) lab.fail("down", { servicesInUse });
    expect(lab.states).toEqual({ used: "active", unused: "active" });
    lab.fail("down", { servicesInUse });
    expect(lab.states).toEqual({ used: "active", unused: "retired" });
  });

  test("F5-6: one that fails every second time has no long row of failures, and a ratio that shows it", () => {
    const lab = one();
    for (let run = 0; run < 30; run++) {
      lab.fail();
      expect(lab.data.health.consecutiveFailures).toBe(1);
      lab.read({ a: same(lab, "a") });
    }
    expect(lab.data.health.recent).toBe("fc".repeat(10));
  });

  test("F5-7: one unreadable image is stale, the others go on", () => {
    const lab = new SourceLab();
    lab.read({ a: bundle(), b: bundle() });
    const change = lab.read({ a: unreadable, b: bundle({ version: "2.0.0" }), c: bundle() });
    expect(lab.states).toEqual({ a: "active", b: "active", c: "active" });
    expect(lab.service("a").stale?.why).toBe("503 Service Unavailable");
    expect(lab.service("b").current.version).toBe("2.0.0");
    expect(change.events.map(({ code, spec }) => [code, spec])).toEqual([
      ["spec.stale", "a"],
      ["spec.updated", "b"],
      ["spec.added", "c"],
    ]);
    expect(lab.read({ a: unreadable, b: same(lab, "b"), c: same(lab, "c") }).quiet).toBe(true);
    expect(codes(lab.read({ a: same(lab, "a"), b: same(lab, "b"), c: same(lab, "c") }))).toEqual(["spec.fresh"]);
  });

  test("F5-8: an image that was never read is pending, without effect on the catalog, and read later", () => {
    const lab = one();
    const change = lab.read({ a: same(lab, "a"), b: unreadable });
    expect(lab.state("b")).toBe("pending");
    expect(change.catalogChanged).toBe(false);
    expect(lab.read({ a: same(lab, "a"), b: unreadable }).quiet).toBe(true);
    lab.read({ a: same(lab, "a"), b: bundle() });
    expect(lab.state("b")).toBe("active");
  });

  test("F5-8: a pending image that is not listed any more is forgotten", () => {
    const lab = one();
    lab.read({ a: same(lab, "a"), b: unreadable });
    lab.fail();
    expect(lab.state("b")).toBe("pending");
    lab.read({ a: same(lab, "a") });
    expect(lab.state("b")).toBe("unknown");
  });

  test("F5-9: an image that lost its label is absent with grace; the digest is not read again and counts all the same", () => {
    const lab = one();
    lab.read({ a: notBundle(1) });
    expect(lab.service("a").state).toMatchObject({ kind: "missing", reason: "not a bundle", why: "no label" });
    expect(knownDigests(lab.service("a"), { parserVersion: 1 })).toContain(digestOf(1));
    lab.read({ a: { kind: "same", digest: digestOf(1) } });
    lab.read({ a: { kind: "same", digest: digestOf(1) } });
    expect(lab.service("a").state).toMatchObject({ kind: "retired", reason: "not a bundle" });
  });

  test("F5-9: a good rebuild brings it back", () => {
    const lab = one();
    lab.read({ a: notBundle(1) });
    lab.read({ a: bundle({ version: "1.0.1" }) });
    expect(lab.service("a")).toMatchObject({ state: { kind: "active" }, refused: null, current: { version: "1.0.1" } });
  });

  test("F5-10: content that is invalid is set aside with its paths; the last good revision stays", () => {
    const lab = one();
    const { current } = lab.service("a");
    const change = lab.read({ a: invalid(1) });
    expect(lab.service("a")).toMatchObject({ current, refused: { code: "invalid", digest: digestOf(1) } });
    expect(change.events).toMatchObject([{ code: "spec.degraded", why: "plans[0].name: is missing" }]);
    expect(change.catalogChanged).toBe(false);
    expect(lab.read({ a: { kind: "same", digest: digestOf(1) } }).quiet).toBe(true);
    expect(codes(lab.read({ a: same(lab, "a") }))).toEqual(["spec.recovered"]);
    expect(lab.service("a").refused).toBeNull();
  });

  test("F5-10: without a good revision it is rejected, and not read again", () => {
    const lab = one();
    lab.read({ a: same(lab, "a"), b: invalid(1) });
    expect(lab.state("b")).toBe("rejected");
    expect(knownDigests(lab.spec("b") as ServiceRecord, { parserVersion: 1 })).toEqual([digestOf(1)]);
    expect(lab.read({ a: same(lab, "a"), b: { kind: "same", digest: digestOf(1) } }).quiet).toBe(true);
    lab.read({ a: same(lab, "a"), b: bundle() });
    expect(lab.state("b")).toBe("active");
  });

  test("F5-10: invalid content does not bring back what has retired", () => {
    const lab = one();
    for (let run = 0; run < 3; run++) lab.read({});
    lab.read({ a: invalid(1) });
    lab.read({ a: { kind: "same", digest: digestOf(1) } });
    expect(lab.state("a")).toBe("retired");
  });

  test("F5-11, F5-12: half a list adds and changes, and removes nothing", () => {
    const lab = new SourceLab();
    lab.read(bundles(10));
    for (let run = 0; run < 10; run++)
      lab.read(
        { b00: bundle({ name: "b00", version: "2.0.0" }), new: bundle(), b01: absent },
        { completeness: "failed" },
      );
    expect(lab.data.counts).toMatchObject({ active: 11, missing: 0, retired: 0 });
    expect(lab.service("b00").current.version).toBe("2.0.0");
  });

  test("F5-13: an empty list where there was something is held", () => {
    const lab = new SourceLab();
    lab.read(bundles(2));
    expect(codes(lab.read({}))).toEqual(["guard.tripped"]);
    expect(lab.data.counts.active).toBe(2);
  });

  test("F5-14: a repository without tags is absent alone", () => {
    const lab = new SourceLab();
    lab.read(bundles(4));
    lab.read({ ...bundles(4), b00: absent });
    expect(lab.states).toMatchObject({ b00: "missing", b01: "active", b02: "active", b03: "active" });
  });

  test("F5-15: what a partial reading says is absent goes missing, too", () => {
    const lab = new SourceLab();
    lab.read(bundles(4));
    lab.read({ ...bundles(4), b00: absent, b01: unreadable });
    expect(lab.states).toMatchObject({ b00: "missing", b01: "active" });
  });

  test("a name that no store could keep is left out and told, however it looks", () => {
    const lab = new SourceLab();
    lab.read({ [`a${"b".repeat(500)}`]: bundle(), "nul\0": bundle(), ok: bundle() });
    expect(Object.keys(lab.states)).toEqual(["ok"]);
    expect(lab.data.unkeepable).toHaveLength(2);
  });
});

describe("the guard against mass removal", () => {
  const lost = (lab: SourceLab, count: number) => lab.read(bundles(10 - count, count));
  const ten = (rules = {}) => {
    const lab = new SourceLab(rules);
    lab.read(bundles(10));
    return lab;
  };

  test.each([
    { active: 10, lost: 3, held: false },
    { active: 10, lost: 4, held: true },
    { active: 20, lost: 6, held: false },
    { active: 20, lost: 7, held: true },
    { active: 4, lost: 3, held: false },
    { active: 3, lost: 3, held: true },
    { active: 2, lost: 2, held: true },
    { active: 1, lost: 1, held: false },
  ])("F5-17: of $active active specs, $lost are missing: held $held", ({ active, lost: count, held }) => {
    const lab = new SourceLab();
    lab.read(bundles(active));
    lab.read(bundles(active - count, count));
    expect(lab.data.guard !== null).toBe(held);
    expect(lab.data.counts.missing).toBe(held ? 0 : count);
  });

  test("F5-17: what is added and changed commits while a removal is held", () => {
    const lab = ten();
    const change = lab.read({ b09: bundle({ name: "b09", version: "2.0.0" }), new: bundle() });
    expect(codes(change)).toEqual(["spec.updated", "spec.added", "guard.tripped"]);
    expect(lab.data.counts.active).toBe(11);
    expect(lab.data.guard).toMatchObject({ count: 9, of: 10, observation: "run-2" });
    expect(lab.data.guard?.specs).toHaveLength(9);
  });

  test("F5-17: what was missing before neither counts on nor grows older while a removal is held", () => {
    const lab = ten();
    lost(lab, 1);
    const before = lab.service("b00").state;
    for (let run = 0; run < 5; run++) lost(lab, 6);
    expect(lab.service("b00").state).toEqual(before);
    lost(lab, 1);
    expect(lab.service("b00").state).toMatchObject({ count: 2, agedMs: 10 * minuteMs });
  });

  test("F5-17a: a confirmed removal goes with the next reading that says the same, with the usual grace", () => {
    const lab = ten();
    lost(lab, 5);
    lab.stored = { ...lab.stored, data: { ...lab.data, guard: confirmedGuard(lab) } };
    expect(codes(lost(lab, 5))).toEqual(["guard.released", ...Array(5).fill("spec.missing")]);
    expect(lab.data.guard).toBeNull();
    lost(lab, 5);
    lost(lab, 5);
    expect(lab.data.counts).toMatchObject({ active: 5, retired: 5 });
  });

  test("F5-17a: who confirmed five has confirmed four of them, and not six", () => {
    const fewer = ten();
    lost(fewer, 5);
    fewer.stored = { ...fewer.stored, data: { ...fewer.data, guard: confirmedGuard(fewer) } };
    lost(fewer, 4);
    expect(fewer.data.counts.missing).toBe(4);
    const more = ten();
    lost(more, 5);
    more.stored = { ...more.stored, data: { ...more.data, guard: confirmedGuard(more) } };
    expect(codes(lost(more, 6))).toEqual(["guard.tripped"]);
    expect(more.data.counts.missing).toBe(0);
  });

  test("F5-17b: the same in three complete readings over an hour is believed, unless all are gone", () => {
    const part = ten();
    lost(part, 5);
    lost(part, 5);
    lost(part, 5);
    expect(part.data.counts.missing).toBe(0);
    part.read(bundles(5, 5), { afterMs: hourMs });
    expect(part.data.counts.missing).toBe(5);
    const all = ten();
    for (let run = 0; run < 20; run++) all.read({}, { afterMs: hourMs });
    expect(all.data.counts.active).toBe(10);
  });

  test("F5-17b: autoConfirm `always` believes that all are gone, `never` believes nothing", () => {
    const always = ten({ guard: { ...defaultRules.guard, autoConfirm: "always" } });
    const never = ten({ guard: { ...defaultRules.guard, autoConfirm: "never" } });
    for (let run = 0; run < 3; run++) always.read({}, { afterMs: hourMs });
    for (let run = 0; run < 20; run++) never.read(bundles(5, 5), { afterMs: hourMs });
    expect(always.data.counts.missing).toBe(10);
    expect(never.data.counts.active).toBe(10);
  });

  test("F5-17b: partial readings, and such that say something else, do not count", () => {
    const lab = ten();
    for (let run = 0; run < 6; run++) {
      lab.read({ ...bundles(4, 5), b09: unreadable }, { afterMs: hourMs });
      lost(lab, run % 2 === 0 ? 5 : 6);
    }
    expect(lab.data.counts.active).toBe(10);
  });

  test("F5-17c: a list that is as it was clears the guard", () => {
    const lab = ten();
    lost(lab, 5);
    lab.fail();
    expect(lab.data.guard).not.toBeNull();
    expect(codes(lab.read(bundles(10)))).toEqual(["guard.cleared", "source.recovered"]);
    expect(lab.data.guard).toBeNull();
  });

  test("F5-19: a revision that drops more than half of the plans in use waits for a word", () => {
    const lab = new SourceLab();
    lab.read({ a: bundle({ plans: ["s", "m", "l"] }) });
    const [s, m] = lab.service("a").current.plans;
    const plansInUse = [s?.id ?? "", m?.id ?? ""];
    const next = bundle({ plans: ["l"], version: "2.0.0" });
    const change = lab.read({ a: next }, { plansInUse });
    expect(lab.service("a")).toMatchObject({ current: { version: "1.0.0" }, refused: { code: "plans in use" } });
    expect(change.events[0]?.why).toContain("plan s");
    // Their instances may go: it is looked at again, and is no news until then.
    expect(knownDigests(lab.service("a"), { parserVersion: 1 })).not.toContain(next.revision.digest);
    expect(lab.read({ a: next }, { plansInUse }).quiet).toBe(true);
    lab.read({ a: next }, { plansInUse: [] });
    expect(lab.service("a")).toMatchObject({ current: { version: "2.0.0" }, refused: null });
  });

  test("F5-19: half of them may go, and with a word all", () => {
    const half = new SourceLab();
    half.read({ a: bundle({ plans: ["s", "m"] }) });
    const used = half.service("a").current.plans.map(({ id }) => id);
    half.read({ a: bundle({ plans: ["s"], version: "2.0.0" }) }, { plansInUse: used });
    expect(half.service("a").current.version).toBe("2.0.0");
    const all = new SourceLab();
    all.read({ a: bundle({ plans: ["s", "m"] }) });
    const next = bundle({ plans: ["x"], version: "2.0.0" });
    const record = { ...all.service("a"), confirmed: next.revision.digest };
    all.stored = { ...all.stored, specs: new Map([["a", record]]) };
    all.read({ a: next }, { plansInUse: used });
    expect(all.service("a")).toMatchObject({ current: { version: "2.0.0" }, confirmed: null });
  });

  test("F5-21: what a narrower filter excludes is missing by configuration, and the guard applies", () => {
    const lab = ten();
    lab.read({ ...bundles(10), b00: filtered });
    expect(lab.service("b00").state).toMatchObject({ kind: "missing", reason: "config", why: "black_list: ^a$" });
    const narrowed = Object.fromEntries(Object.keys(bundles(10)).map((name) => [name, filtered]));
    expect(codes(lab.read(narrowed))).toEqual(["guard.tripped"]);
  });

  test("F5-21: with a grace of nothing it retires at once", () => {
    const lab = ten({ config: { runs: 0, ms: 0 } });
    expect(codes(lab.read({ ...bundles(10), b00: filtered }))).toEqual(["spec.retired"]);
  });

  test("F5-21: what was counted for the configuration is not counted for the registry", () => {
    const lab = ten();
    lab.read({ ...bundles(10), b00: filtered });
    lab.read({ ...bundles(10), b00: filtered });
    lab.read({ ...bundles(10), b00: absent });
    expect(lab.service("b00").state).toMatchObject({ kind: "missing", reason: "absent", count: 1, agedMs: 0 });
  });

  function confirmedGuard(lab: SourceLab) {
    if (lab.data.guard === null) throw new Error("nothing is held");
    return { ...lab.data.guard, confirmed: { by: "anna", at: lab.now } };
  }
});

describe("content and versions", () => {
  for (const { name, versions, last, told } of [
    { name: "F5-30: a higher version", versions: ["1.0.0", "1.1.0"], last: "1.1.0", told: ["spec.updated"] },
    {
      name: "F5-31: the same version",
      versions: ["1.2.0", "1.2.0"],
      last: /^1\.2\.0\+[0-9a-f]{12}$/,
      told: ["spec.updated", "version.unchanged"],
    },
    {
      name: "F5-31: the same version with build metadata",
      versions: ["1.2.0+b.1", "1.2.0+b.1"],
      last: /^1\.2\.0\+b\.1\.[0-9a-f]{12}$/,
      told: ["spec.updated", "version.unchanged"],
    },
    {
      name: "F5-32: a lower version",
      versions: ["2.0.0", "1.0.0"],
      last: "1.0.0",
      told: ["spec.updated", "version.downgraded"],
    },
    {
      name: "F5-33: no version",
      versions: ["1.0.0", null],
      last: /^0\.0\.0\+[0-9a-f]{12}$/,
      told: ["spec.updated", "version.downgraded"],
    },
    { name: "F5-33: a version that is none", versions: ["1.0.0", "new"], last: "1.0.0", told: ["spec.degraded"] },
  ])
    test(name, () => {
      const lab = new SourceLab();
      let change = lab.read({});
      for (const [build, version] of versions.entries()) change = lab.read({ a: bundle({ version, build }) });
      expect(lab.service("a").current.version).toMatch(last);
      expect(codes(change)).toEqual(told);
    });

  test("F5-31: three contents of one version have three versions; each keeps its own when it comes back", () => {
    const lab = new SourceLab();
    const versions: string[] = [];
    for (const build of [0, 1, 2, 0, 1, 2]) {
      lab.read({ a: bundle({ build }) });
      versions.push(lab.service("a").current.version);
    }
    expect(new Set(versions).size).toBe(3);
    expect(versions.slice(3)).toEqual(versions.slice(0, 3));
    expect(lab.revisions.size).toBe(3);
  });

  test("F5-26: a registry that moved has the same digests, and nothing changes", () => {
    const lab = one();
    lab.stored = { ...lab.stored, data: { ...lab.data, generation: "g2" } };
    expect(lab.read({ a: same(lab, "a") }).quiet).toBe(true);
  });

  test("F5-27, F5-69: another tag of the same channel is a new revision of the same spec", () => {
    const lab = new SourceLab();
    lab.read({ "a#v1": bundle(), "a:^1#1.0.0": bundle() });
    const ids = [lab.service("a").serviceId, lab.service("a:^1").serviceId];
    lab.read({ "a#v2": bundle({ version: "2.0.0" }), "a:^1#1.1.0": bundle({ version: "1.1.0" }) });
    expect([lab.service("a").serviceId, lab.service("a:^1").serviceId]).toEqual(ids);
    expect(lab.service("a")).toMatchObject({ ref: { tag: "v2" }, current: { version: "2.0.0" } });
    expect(lab.service("a:^1")).toMatchObject({ ref: { tag: "1.1.0" }, current: { version: "1.1.0" } });
  });

  test("F5-27: a tag that moved to a digest that is known is kept, too", () => {
    const lab = new SourceLab();
    lab.read({ "a#v1": bundle() });
    lab.read({ "a#v2": same(lab, "a") });
    expect(lab.service("a").ref.tag).toBe("v2");
  });

  test("F5-28: a disabled source takes in no reading; its specs are stale, not missing", () => {
    const lab = one();
    lab.stored = { ...lab.stored, data: { ...lab.data, mode: "disabled" } };
    expect(lab.read({}).quiet).toBe(true);
    expect(lab.state("a")).toBe("active");
    expect(isStale(lab.data, lab.service("a"))).toBe(true);
  });

  test("F5-77: what a newer parser has refused, an older one does not let in; a newer one reads it again", () => {
    const lab = one();
    const content = revisionOf({ version: "2.0.0" });
    lab.read({ a: { kind: "invalid", digest: content.digest, problems: [] } }, { parserVersion: 2 });
    expect(knownDigests(lab.service("a"), { parserVersion: 1 })).toContain(content.digest);
    expect(knownDigests(lab.service("a"), { parserVersion: 3 })).not.toContain(content.digest);
    lab.read({ a: { kind: "read", revision: content } });
    expect(lab.service("a").current.version).toBe("1.0.0");
    lab.read({ a: { kind: "read", revision: { ...content, parserVersion: 3 } } }, { parserVersion: 3 });
    expect(lab.service("a").current.version).toBe("2.0.0");
  });

  test("an author who changes the id of a service is told; the service keeps the one that platforms know", () => {
    const lab = new SourceLab();
    lab.read({ a: bundle({ id: "6b8d5a3e-5f1e-4a38-9c53-2d9f3f1f0a01" }) });
    lab.read({ a: bundle({ id: "6b8d5a3e-5f1e-4a38-9c53-2d9f3f1f0a02", version: "2.0.0" }) });
    expect(lab.service("a")).toMatchObject({
      serviceId: "6b8d5a3e-5f1e-4a38-9c53-2d9f3f1f0a01",
      current: { version: "1.0.0" },
      refused: { code: "id changed" },
    });
  });
});

describe("plans", () => {
  const planIds = (lab: SourceLab) =>
    Object.fromEntries(lab.service("a").current.plans.map(({ name, id }) => [name, id]));

  test("F5-39: a plan that nobody has leaves with the new revision; one that comes back has its id again", () => {
    const lab = new SourceLab();
    lab.read({ a: bundle({ plans: ["s", "m"] }) });
    const { s, m } = planIds(lab);
    lab.read({ a: bundle({ plans: ["m"], version: "1.1.0" }) });
    expect(planIds(lab)).toEqual({ m });
    lab.read({ a: bundle({ plans: ["s", "m"], version: "1.2.0" }) });
    expect(planIds(lab)).toEqual({ s, m });
  });

  test("F5-40: a plan with instances leaves the catalog, and stays in the revision that they are pinned to", () => {
    const lab = new SourceLab();
    lab.read({ a: bundle({ plans: ["s", "m"] }) });
    const { s, m } = planIds(lab);
    const pinned = lab.service("a").current.digest;
    lab.read({ a: bundle({ plans: ["m"], version: "1.1.0" }) }, { plansInUse: [s ?? "", m ?? ""] });
    expect(planIds(lab)).toEqual({ m });
    expect(lab.revisions.get(`revision/a@${pinned}`)?.plans).toContainEqual({ name: "s", id: s });
  });

  test("F5-41: a renamed plan keeps its id by its earlier name, also over two renamings; without, it is another plan", () => {
    const lab = new SourceLab();
    lab.read({ a: bundle({ plans: ["s"] }) });
    const { s } = planIds(lab);
    lab.read({ a: bundle({ plans: [planSpec("small", { previousNames: ["s"] })], version: "1.1.0" }) });
    expect(planIds(lab)).toEqual({ small: s });
    lab.read({ a: bundle({ plans: [planSpec("tiny", { previousNames: ["small"] })], version: "1.2.0" }) });
    expect(planIds(lab)).toEqual({ tiny: s });
    lab.read({ a: bundle({ plans: ["other"], version: "1.3.0" }) });
    expect(planIds(lab)).not.toEqual({ other: s });
  });

  test("F5-41: a plan whose author gives it an id later keeps the one that platforms know, and the author is told", () => {
    const lab = new SourceLab();
    lab.read({ a: bundle({ plans: ["s"] }) });
    const { s = "" } = planIds(lab);
    lab.read({ a: bundle({ plans: [planSpec("s", { id: "p1" })], version: "1.1.0" }) });
    expect(planIds(lab)).toEqual({ s });
    expect(lab.service("a")).toMatchObject({ current: { version: "1.0.0" }, refused: { code: "id changed" } });
    expect(lab.service("a").refused?.problems).toMatchObject([{ path: "plans.s.id" }]);
    lab.read({ a: bundle({ plans: [planSpec("s", { id: s })], version: "1.2.0" }) });
    expect(lab.service("a")).toMatchObject({ current: { version: "1.2.0" }, refused: null });
  });

  test("F5-41: a plan that is renamed and given an id in one go keeps the id that platforms know, too", () => {
    const lab = new SourceLab();
    lab.read({ a: bundle({ plans: ["s"] }) });
    const { s = "" } = planIds(lab);
    const renamed = (id: string | null) => planSpec("small", { id, previousNames: ["s"] });
    lab.read({ a: bundle({ plans: [renamed("p1")], version: "1.1.0" }) });
    expect(planIds(lab)).toEqual({ s });
    expect(lab.service("a")).toMatchObject({ current: { version: "1.0.0" }, refused: { code: "id changed" } });
    expect(lab.service("a").refused?.problems).toMatchObject([{ path: "plans.small.id" }]);
    lab.read({ a: bundle({ plans: [renamed(s)], version: "1.2.0" }) });
    expect(planIds(lab)).toEqual({ small: s });
    expect(lab.service("a")).toMatchObject({ current: { version: "1.2.0" }, refused: null });
  });

  test("F5-41: a new plan may have an id of its own beside the one that has its earlier name again", () => {
    const lab = new SourceLab();
    lab.read({ a: bundle({ plans: ["s"] }) });
    const { s = "" } = planIds(lab);
    lab.read({ a: bundle({ plans: ["s", planSpec("small", { id: "p1", previousNames: ["s"] })], version: "1.1.0" }) });
    expect(planIds(lab)).toEqual({ s, small: "p1" });
  });

  test("F5-41: plans that change their names are known by their ids", () => {
    const lab = new SourceLab();
    lab.read({ a: bundle({ plans: [planSpec("s", { id: "p1" }), planSpec("m", { id: "p2" })] }) });
    lab.read({ a: bundle({ plans: [planSpec("m", { id: "p1" }), planSpec("s", { id: "p2" })], version: "1.1.0" }) });
    expect(planIds(lab)).toEqual({ m: "p1", s: "p2" });
  });

  test("F5-43: two plans of one id are refused with both names", () => {
    const lab = new SourceLab();
    lab.read({ a: bundle({ plans: [planSpec("s", { id: "p1" }), planSpec("m", { id: "p1" })] }) });
    expect(lab.state("a")).toBe("rejected");
    expect(lab.events.at(-1)?.why).toMatch(/plans s and m would both have the id p1/);
  });

  test("F5-43: a plan with the id of its service is refused", () => {
    const lab = new SourceLab();
    lab.read({ a: bundle({ id: "one", plans: [planSpec("s", { id: "one" })] }) });
    expect(lab.state("a")).toBe("rejected");
    expect(lab.events.at(-1)?.why).toMatch(/plan s would have the id of the service itself/);
  });

  test("F5-43: a new plan under the old name of a renamed one does not take its id", () => {
    const lab = new SourceLab();
    lab.read({ a: bundle({ plans: ["s"] }) });
    lab.read({ a: bundle({ plans: [planSpec("small", { previousNames: ["s"] })], version: "1.1.0" }) });
    lab.read({ a: bundle({ plans: [planSpec("small", { previousNames: ["s"] }), "s"], version: "1.2.0" }) });
    expect(lab.service("a")).toMatchObject({ current: { version: "1.1.0" }, refused: { code: "plan id twice" } });
  });

  test("F5-44: content without a plan is refused, and the old stays", () => {
    const lab = one();
    lab.read({ a: bundle({ plans: [], version: "2.0.0" }) });
    expect(lab.service("a")).toMatchObject({ current: { version: "1.0.0" }, refused: { code: "no plans" } });
  });

  test("plans with the names of what every object has are plans like others", () => {
    const lab = new SourceLab();
    lab.read({ a: bundle({ plans: ["__proto__", "constructor", "toString"] }) });
    const ids = lab.service("a").current.plans.map(({ id }) => id);
    expect(new Set(ids).size).toBe(3);
    for (const id of ids) expect(id).toMatch(/^[0-9a-f-]{36}$/);
  });
});

describe("identity and tags", () => {
  test("F5-57: an id that the author gives counts; else it comes from source, repository and channel, for ever", () => {
    const lab = new SourceLab();
    lab.read({ a: bundle({ id: "given" }), b: bundle(), "b:v1": bundle() });
    expect(lab.service("a")).toMatchObject({ serviceId: "given", idFrom: "spec" });
    const derived = [lab.service("b").serviceId, lab.service("b:v1").serviceId];
    const other = new SourceLab({}, newSource("quay", "g1"));
    other.read({ b: bundle() });
    expect(new Set([...derived, other.service("b").serviceId]).size).toBe(3);
    // Platforms keep them: whoever changes how they are made breaks every installation.
    expect(derived).toEqual(["9e8450d2-19e0-5f50-b7f1-9b64610dca35", "12e9f03c-2b77-5677-a31b-7b2ff8e1767b"]);
  });

  test("F5-57: the legacy scheme gives the ids of the Ansible Service Broker", () => {
    const lab = new SourceLab({ identity: { ...defaultRules.identity, scheme: "legacy" } }, newSource("dh", "g1"));
    lab.read({ "org/postgresql-apb": bundle({ name: "postgresql-apb", plans: ["dev"] }) });
    const { serviceId, current } = lab.service("org/postgresql-apb");
    // echo -n dh-postgresql-apb | md5sum, and with -dev behind.
    expect(serviceId).toBe("1dda1477cace09730bd8ed7a6505607e");
    expect(current).toMatchObject({ name: "dh-postgresql-apb", plans: [{ name: "dev" }] });
  });

  test("F5-61: one digest in two repositories is two specs", () => {
    const lab = new SourceLab();
    lab.read({ a: bundle(), b: bundle() });
    expect(lab.service("a").serviceId).not.toBe(lab.service("b").serviceId);
    expect(lab.service("a").current.digest).toBe(lab.service("b").current.digest);
  });

  test("F5-63: two forms of one letter are one name", () => {
    const lab = new SourceLab();
    lab.read({ "caf\u00e9": bundle() });
    lab.read({ "cafe\u0301": bundle() });
    expect(Object.keys(lab.states)).toEqual(["caf\u00e9"]);
  });

  test("F5-64: what was pushed never goes missing; the next push adds, and removes nothing", () => {
    const lab = new SourceLab({}, newSource("push", "g1", { listing: false }));
    lab.read({ a: bundle() });
    for (let run = 0; run < 10; run++) lab.read({ b: bundle({ build: run }) });
    expect(lab.states).toEqual({ a: "active", b: "active" });
  });

  test("F5-66: naming tags keeps the id of the default tag", () => {
    const lab = one();
    const { serviceId } = lab.service("a");
    lab.read({ a: bundle(), "a:v1": bundle({ version: "0.9.0" }), "a:v2": bundle({ version: "2.0.0" }) });
    expect(lab.service("a").serviceId).toBe(serviceId);
    expect(new Set(["a", "a:v1", "a:v2"].map((id) => lab.service(id).serviceId)).size).toBe(3);
  });

  test("repositories without the tag that is read are told once, and again when there are more or fewer", () => {
    const lab = new SourceLab();
    const told = (change: ReturnType<SourceLab["read"]>) =>
      change.events.filter(({ code }) => code === "source.untagged").map(({ why }) => why);
    expect(told(lab.read({ a: bundle(), b: absent, c: absent }))).toEqual([
      "2 repositories without the tag latest: b, c",
    ]);
    expect(lab.read({ a: bundle(), b: absent, c: absent }).quiet).toBe(true);
    // One that could not be read may have it, or not.
    expect(told(lab.read({ a: bundle(), b: unreadable, c: absent }))).toEqual([]);
    expect(lab.data.untagged).toBe(2);
    expect(told(lab.read({ a: bundle(), b: bundle({ name: "b" }), c: absent }))).toEqual([
      "1 repository without the tag latest: c",
    ]);
    // What was offered is missing, and that is told on its own; so is a tag that was named for one repository.
    expect(told(lab.read({ a: absent, "a:v1": absent, b: same(lab, "b"), c: absent }))).toEqual([]);
    expect(told(lab.read({ a: bundle(), b: same(lab, "b"), "c#": absent, "d#stable": absent }))).toEqual([
      "2 repositories without the tag that is read of them: c, d",
    ]);
    const many = Object.fromEntries(Array.from({ length: 40 }, (_, at) => [`r${at}`, absent]));
    expect(told(lab.read({ a: bundle(), b: same(lab, "b"), ...many }))[0]).toMatch(/^40 repositories .* r9, …$/);
    expect(told(lab.read({ a: bundle(), b: same(lab, "b") }))).toEqual([
      "every repository has the tag that is read of it",
    ]);
  });

  test("F5-67: a named tag that is not there is absent alone", () => {
    const lab = new SourceLab();
    lab.read({ a: bundle(), "a:v1": bundle(), "a:v2": bundle() });
    lab.read({ a: bundle(), "a:v1": absent, "a:v2": bundle() });
    expect(lab.states).toEqual({ a: "active", "a:v1": "missing", "a:v2": "active" });
  });

  test("F5-68: two tags of one digest are two refs; a tag that leaves the configuration is missing for that reason", () => {
    const lab = new SourceLab();
    lab.read({ a: bundle(), "a:v1": bundle() });
    lab.read({ a: bundle(), "a:v1": { kind: "filtered", why: "the tag is not configured" } });
    expect(lab.service("a:v1").state).toMatchObject({ kind: "missing", reason: "config" });
    expect(lab.state("a")).toBe("active");
  });
});

test("F4: a reading that is decided again, because it was overtaken between two commits, counts what is missing once", () => {
  const lab = new SourceLab({ missing: { runs: 2, ms: 0 }, guard: { ...defaultRules.guard, least: 1_000, share: 1 } });
  const b = bundle({ name: "b" });
  lab.read({ a: bundle(), b });
  const observation = lab.observation({ b });
  const { specs } = lab.decideOn(observation);
  const missing = specs.get("a");
  if (missing == null) throw new Error("nothing is missing");
  // The commit of this spec was made; the last one, with the source's data, was not.
  lab.stored = { ...lab.stored, specs: new Map([...lab.stored.specs, ["a", missing]]) };
  lab.commit(lab.decideOn(observation));
  expect(lab.service("a").state).toMatchObject({ kind: "missing", count: 1 });
  lab.read({ b });
  expect(lab.service("a").state).toMatchObject({ kind: "retired" });
});
