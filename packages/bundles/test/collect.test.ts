import { describe, expect, test } from "vitest";
import { hold, withdraw } from "../src/reconcile/admin-decisions.js";
import { type CollectedSource, collect, collectable, defaultCollectRules, type Use } from "../src/reconcile/collect.js";
import { mergeSources } from "../src/reconcile/merge-sources.js";
import type { RevisionPart } from "../src/reconcile/records.js";
import { bundle, bundles, dayMs, hourMs, type Seen, SourceLab } from "./source-lab.js";

/** A source of which all was read, and `left` is there still: the rest has retired an hour ago. */
function retired(seen: Seen, left: Seen = { stays: bundle({ name: "stays" }) }): SourceLab {
  const lab = new SourceLab();
  lab.read({ ...seen, ...left });
  for (let run = 0; run < 3; run++) lab.read(left);
  lab.now += hourMs;
  return lab;
}

function source(lab: SourceLab): CollectedSource {
  const revisions = [...lab.revisions].map(([part, { readAt }]) => [part as RevisionPart, readAt] as const);
  return { ...lab.stored, revisions: new Map(revisions) };
}

/** A pass in which everything is unused that is not named. */
function pass(
  lab: SourceLab,
  {
    services = {},
    revisions = {},
    rules = {},
  }: { services?: Record<string, Use>; revisions?: Record<string, Use>; rules?: object } = {},
) {
  const all = { ...defaultCollectRules, ...rules };
  const asked = collectable(source(lab), all, lab.now);
  const use = {
    services: new Map(asked.services.map((id) => [id, services[id] ?? "unused"] as const)),
    revisions: new Map(asked.revisions.map((id) => [id, revisions[id] ?? "unused"] as const)),
  };
  return collect(source(lab), use, all, lab.now);
}

describe("collection", () => {
  test("F5-53: what has retired and is not used is deleted with its revisions, and leaves its ids", () => {
    const lab = retired({ a: bundle() });
    const { serviceId } = lab.service("a");
    const collection = pass(lab);
    expect(collection).toMatchObject({ deleted: ["a"], more: false });
    lab.commit(collection.change);
    expect(lab.spec("a")).toMatchObject({ kind: "deleted", serviceId });
    expect([...lab.revisions.keys()].some((part) => part.startsWith("revision/a@"))).toBe(false);
    lab.read({ a: bundle(), stays: bundle({ name: "stays" }) });
    expect(lab.service("a").serviceId).toBe(serviceId);
  });

  test("F5-80: a deletion is a new snapshot, since the name that it had is free for others", () => {
    const lab = retired({ a: bundle() }, { b: bundle({ version: "2.0.0" }) });
    const shown = () => mergeSources([{ stored: lab.stored, priority: 0, failover: false }]).entries[0]?.name;
    expect(shown()).toBe("database-hub");
    const { snapshot } = lab.data;
    lab.commit(pass(lab).change);
    expect(shown()).toBe("database");
    expect(lab.data.snapshot).toBe(snapshot + 1);
  });

  test("F5-53: it is not deleted before its time", () => {
    const lab = retired({ a: bundle() });
    lab.now -= 1;
    expect(pass(lab).deleted).toEqual([]);
  });

  test("F5-53: a dry run is a pass that nobody commits; it says what would go", () => {
    const lab = retired({ a: bundle() });
    const before = lab.stored;
    pass(lab);
    expect(lab.stored).toBe(before);
  });

  test("F5-53: a pass removes so much and no more, and the next goes on", () => {
    const lab = retired(bundles(3));
    lab.rules = { ...lab.rules };
    const first = pass(lab, { rules: { mostPerPass: 2 } });
    expect(first).toMatchObject({ deleted: ["b00", "b01"], more: true });
    lab.commit(first.change);
    expect(pass(lab, { rules: { mostPerPass: 2 } })).toMatchObject({ deleted: ["b02"], more: false });
  });

  test("F5-53: those that are used for ever do not keep later ones from being asked for", () => {
    const lab = retired(bundles(3));
    const rules = { ...defaultCollectRules, mostPerPass: 2 };
    const asked = [0, 1, 2].map((number) => collectable(source(lab), rules, lab.now, number).services);
    expect(asked.map(({ length }) => length)).toEqual([2, 1, 2]);
    expect(new Set(asked.flat()).size).toBe(3);
    expect(asked[2]).toEqual(asked[0]);
  });

  test("F5-53: revisions that nothing refers to go after their time; the current one never does", () => {
    const lab = new SourceLab();
    for (const version of ["1.0.0", "1.1.0", "1.2.0"]) lab.read({ a: bundle({ version }) });
    expect(pass(lab).revisions).toEqual([]);
    lab.now += hourMs;
    const pinned = [...lab.revisions.keys()][0] ?? "";
    const collection = pass(lab, { revisions: { [pinned]: "used" } });
    expect(collection.revisions).toHaveLength(1);
    lab.commit(collection.change);
    expect(lab.service("a").history.map(({ version }) => version)).toEqual(["1.2.0", "1.0.0"]);
    expect(collection.change.catalogChanged).toBe(false);
  });

  test("F5-53, F5-74: a revision that was written just now stays, though no spec names it yet: a reading may be about to", () => {
    const lab = new SourceLab();
    lab.read({ a: bundle() });
    lab.now += 2 * hourMs;
    const next = lab.decide({ a: bundle({ version: "2.0.0" }), b: bundle({ name: "b" }) });
    for (const [part, record] of next.revisions) if (record !== null) lab.revisions.set(part, record);
    expect(lab.revisions.size).toBe(3);
    lab.now += hourMs - 1;
    expect(pass(lab).revisions).toEqual([]);
    lab.now += 1;
    expect(pass(lab).revisions).toHaveLength(2);
  });

  test("F5-53: ids of what was deleted are forgotten after 90 days", () => {
    const lab = retired({ a: bundle() });
    lab.commit(pass(lab).change);
    lab.now += 90 * dayMs - 1;
    expect(pass(lab).forgotten).toEqual([]);
    lab.now += 1;
    lab.commit(pass(lab).change);
    expect(lab.state("a")).toBe("unknown");
  });

  test("F5-54: what cannot be found out keeps its own spec and no other", () => {
    const lab = retired({ a: bundle(), b: bundle({ name: "b" }) });
    const collection = pass(lab, { services: { [lab.service("a").serviceId]: "unknown" } });
    expect(collection.deleted).toEqual(["b"]);
    expect(collection.kept).toEqual([{ what: "a", why: expect.stringContaining("could not be found out") }]);
  });

  test("F5-55: what has an instance, however that is, is never deleted", () => {
    const lab = retired({ a: bundle() });
    lab.now += 1_000 * dayMs;
    expect(pass(lab, { services: { [lab.service("a").serviceId]: "used" } })).toMatchObject({ deleted: [] });
  });

  test("F5-56: a revision that a running operation has keeps its spec", () => {
    const lab = retired({ a: bundle() });
    const part = `revision/a@${lab.service("a").current.digest}` as RevisionPart;
    const use = {
      services: new Map([[lab.service("a").serviceId, "unused" as const]]),
      revisions: new Map([[part, "used" as const]]),
    };
    expect(collect(source(lab), use, defaultCollectRules, lab.now).deleted).toEqual([]);
  });

  test("what nobody asked for is not removed", () => {
    const lab = retired({ a: bundle() });
    const nothing = { services: new Map(), revisions: new Map() };
    expect(collect(source(lab), nothing, defaultCollectRules, lab.now)).toMatchObject({ deleted: [], more: true });
  });

  test("what a person has withdrawn or holds stays: deleted, the next reading would bring it back", () => {
    const lab = new SourceLab();
    lab.read({ a: bundle(), b: bundle() });
    const by = { by: "anna", why: "CVE", now: lab.now };
    for (const decide of [
      () => withdraw(lab.stored, "a", by),
      () => withdraw(lab.stored, "b", by),
      () => hold(lab.stored, "b", by),
    ]) {
      const decision = decide();
      if (decision.kind === "changed") lab.commit(decision.change);
    }
    lab.now += 1_000 * dayMs;
    expect(pass(lab).deleted).toEqual([]);
  });
});
