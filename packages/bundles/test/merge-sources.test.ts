import { performance } from "node:perf_hooks";
import { describe, expect, test } from "vitest";
import { withdraw } from "../src/reconcile/admin-decisions.js";
import { incrementalMerge } from "../src/reconcile/incremental-merge.js";
import { mergeSources, type RankedSource } from "../src/reconcile/merge-sources.js";
import { newSource, type SpecRecord } from "../src/reconcile/records.js";
import { defaultRules } from "../src/reconcile/rules.js";
import { type BundleFacts, bundle, bundles, planSpec, type Seen, SourceLab } from "./source-lab.js";

const id = "6b8d5a3e-5f1e-4a38-9c53-2d9f3f1f0a01";

/** Sources by name, read one minute after the other. */
function labs(seen: Readonly<Record<string, Seen>>, rules = {}): Record<string, SourceLab> {
  return Object.fromEntries(
    Object.entries(seen).map(([name, found], index) => {
      const lab = new SourceLab(rules, newSource(name, "g1"));
      lab.now += index * 60_000;
      lab.read(found);
      return [name, lab];
    }),
  );
}

function ranked(lab: SourceLab | undefined, more: Partial<RankedSource> = {}): RankedSource {
  if (lab === undefined) throw new Error("no such source");
  return { stored: lab.stored, priority: 0, failover: false, ...more };
}

const explicit = (facts: BundleFacts = {}) => bundle({ id, ...facts });

describe("one catalog of all sources", () => {
  test("services are sorted by id, whatever the order of sources and specs", () => {
    const { one, two } = labs({ one: bundles(5), two: bundles(5, 5) });
    const merged = mergeSources([ranked(one), ranked(two)]);
    const ids = merged.entries.map(({ serviceId }) => serviceId);
    expect(ids).toEqual([...ids].sort());
    expect(ids).toHaveLength(10);
    const reversed = new Map([...(two?.stored.specs ?? new Map<string, SpecRecord>())].reverse());
    const other = { ...ranked(two), stored: { data: ranked(two).stored.data, specs: reversed } };
    expect(mergeSources([other, ranked(one)])).toEqual(merged);
  });

  test("F5-4: a source whose list was never read to its end gives nothing", () => {
    const lab = new SourceLab();
    lab.read({ a: bundle() }, { completeness: "failed" });
    expect(mergeSources([ranked(lab)]).entries).toEqual([]);
  });

  test("F5-43: a plan id that another service has is not taken from it", () => {
    const { one, two } = labs({
      one: { a: bundle({ name: "a", plans: [planSpec("s", { id: "p1" })] }) },
      two: { b: bundle({ name: "b", plans: [planSpec("m", { id: "p1" })] }) },
    });
    const { entries, conflicts } = mergeSources([ranked(two), ranked(one)]);
    expect(entries.map(({ spec }) => spec)).toEqual(["a"]);
    expect(conflicts).toMatchObject([{ kind: "plan id taken", spec: "b", by: { source: "one", spec: "a" } }]);
  });

  test("F5-43, F5-60: what services in code have is theirs, whoever was there first", () => {
    const { one } = labs({
      one: {
        a: bundle({ name: "a" }),
        b: bundle({ name: "b", plans: [planSpec("m", { id: "p1" })] }),
        c: explicit({ name: "c" }),
      },
    });
    const inCode = { names: ["a"], ids: [id, "p1"] };
    const { entries, conflicts } = mergeSources([ranked(one)], inCode);
    expect(entries.map(({ name }) => name)).toEqual(["a-one"]);
    expect(Object.fromEntries(conflicts.map(({ spec, kind, by }) => [spec, [kind, by]]))).toEqual({
      a: ["renamed", "code"],
      b: ["plan id taken", "code"],
      c: ["shadowed", "code"],
    });
    const merge = incrementalMerge([ranked(one)], inCode);
    one?.read({ a: bundle({ name: "a", version: "2.0.0" }), d: bundle({ name: "a", version: "2.0.0" }) });
    merge.change(ranked(one), ["a", "d"]);
    expect(merge.catalog).toEqual(mergeSources([ranked(one)], inCode));
  });

  test("F5-43: an id is of one service or of one plan, not of both", () => {
    const { one, two } = labs({
      one: { a: explicit({ name: "a" }) },
      two: { b: bundle({ name: "b", plans: [planSpec("m", { id })] }) },
    });
    expect(mergeSources([ranked(one), ranked(two)]).entries.map(({ spec }) => spec)).toEqual(["a"]);
    expect(mergeSources([ranked(one), ranked(two, { priority: 1 })]).entries.map(({ spec }) => spec)).toEqual(["b"]);
  });

  test("F5-58: of two specs with one id, the source of the higher priority has it; else who was there first", () => {
    const { one, two } = labs({ one: { a: explicit() }, two: { b: explicit() } });
    const first = mergeSources([ranked(two), ranked(one)]);
    expect(first.entries).toMatchObject([{ source: "one", spec: "a" }]);
    expect(first.conflicts).toMatchObject([{ kind: "shadowed", source: "two", by: { source: "one" } }]);
    expect(mergeSources([ranked(one), ranked(two, { priority: 1 })]).entries).toMatchObject([{ source: "two" }]);
  });

  test("F5-58: who writes last wins nothing", () => {
    const { one, two } = labs({ one: { a: explicit() }, two: { b: explicit() } });
    one?.read({ a: explicit({ version: "1.1.0" }) });
    two?.read({ b: explicit({ version: "9.0.0" }) });
    expect(mergeSources([ranked(one), ranked(two)]).entries).toMatchObject([{ source: "one" }]);
  });

  test("F5-59: a copy takes over what has retired only with failover and equal content", () => {
    const { one, two } = labs({ one: { a: explicit() }, two: { b: explicit() } });
    for (let run = 0; run < 3; run++) one?.read({});
    expect(mergeSources([ranked(one), ranked(two)]).entries).toEqual([]);
    expect(mergeSources([ranked(one), ranked(two, { failover: true })]).entries).toMatchObject([{ source: "two" }]);
    two?.read({ b: explicit({ version: "2.0.0" }) });
    expect(mergeSources([ranked(one), ranked(two, { failover: true })]).entries).toEqual([]);
  });

  test("F5-59: what a person has withdrawn does not come back by a copy", () => {
    const { one, two } = labs({ one: { a: explicit() }, two: { b: explicit() } });
    if (one === undefined) throw new Error("no such source");
    const decision = withdraw(one.stored, "a", { by: "anna", why: "CVE", now: one.now });
    if (decision.kind === "changed") one.commit(decision.change);
    expect(mergeSources([ranked(one), ranked(two, { failover: true })]).entries).toEqual([]);
  });

  test("F5-60: of two services with one name, the second has its source's name behind", () => {
    const { one, two } = labs({ one: { a: bundle(), b: bundle() }, two: { c: bundle() } });
    const { entries, conflicts } = mergeSources([ranked(two), ranked(one)]);
    expect(Object.fromEntries(entries.map(({ spec, name }) => [spec, name]))).toEqual({
      a: "database",
      b: "database-one",
      c: "database-two",
    });
    expect(conflicts.map(({ kind }) => kind)).toEqual(["renamed", "renamed"]);
  });

  test("F5-60: a third of the same name in one source has a name of its own, too", () => {
    const { one } = labs({ one: { a: bundle(), b: bundle(), c: bundle() } });
    const names = mergeSources([ranked(one)]).entries.map(({ name }) => name);
    expect(new Set(names).size).toBe(3);
  });

  test("F5-60: a bundle that is called what another would be called takes no name twice", () => {
    const { one } = labs({ one: { a: bundle(), b: bundle(), c: bundle() } });
    const whole =
      mergeSources([ranked(one)])
        .entries.map(({ name }) => name)
        .find((name) => name.length > 20) ?? "";
    const serviceId = whole.replace("database-one-", "");
    const called = [whole, `database-${serviceId}`, `${whole}-2`].map(
      (name, at) => [`b${at}`, bundle({ name })] as const,
    );
    const { one: other } = labs({
      one: Object.fromEntries([["a", bundle()], ["b", bundle()], ...called, ["c", bundle()]]),
    });
    const merge = incrementalMerge([ranked(other)]);
    const names = merge.catalog.entries.map(({ name }) => name);
    expect(names).toContain(whole);
    expect(new Set(names).size).toBe(names.length);
  });

  test("F5-60: a name stays with what has retired, so that nobody is called something else meanwhile", () => {
    const { one } = labs({ one: { a: bundle(), b: bundle() } });
    for (let run = 0; run < 3; run++) one?.read({ b: bundle() });
    expect(mergeSources([ranked(one)]).entries).toMatchObject([{ spec: "b", name: "database-one" }]);
  });

  test("F5-62: legacy names that are alike after cutting are told with both names; the first keeps its id", () => {
    const legacy = { identity: { ...defaultRules.identity, scheme: "legacy" as const } };
    const { one } = labs({ one: { a: bundle({ name: "a.b-apb" }), b: bundle({ name: "a-b-apb" }) } }, legacy);
    const { entries, conflicts } = mergeSources([ranked(one)]);
    expect(entries).toMatchObject([{ spec: "a" }]);
    expect(conflicts).toMatchObject([
      { kind: "legacy names alike", spec: "b", why: expect.stringMatching(/b in one.*a in one/) },
    ]);
  });

  test("F5-63: names are compared as the letters that they are", () => {
    const { one } = labs({ one: { a: bundle({ name: "caf\u00e9" }), b: bundle({ name: "cafe\u0301" }) } });
    expect(new Set(mergeSources([ranked(one)]).entries.map(({ name }) => name.normalize("NFC"))).size).toBe(2);
  });

  test("of 15,000 specs, one that changes is put into its place, and the catalog is as if all were merged", () => {
    const [one] = Object.values(labs({ one: bundles(1) }));
    const record = one?.service("b00");
    if (one === undefined || record === undefined) throw new Error("no record");
    const specs = new Map<string, SpecRecord>();
    for (let index = 0; index < 15_000; index++) {
      const serviceId = `s${(index * 7919) % 15_000}`;
      const plans = [{ id: `p${index}`, name: "small" }];
      specs.set(`r${index}`, { ...record, serviceId, current: { ...record.current, name: `n${index}`, plans } });
    }
    const source = (kept: Map<string, SpecRecord>) => ({ ...ranked(one), stored: { data: one.data, specs: kept } });
    const told = (what: string, act: () => void) => {
      const began = performance.now();
      act();
      if (process.env.OSBERT_TELL_TIMES !== undefined) console.log(`${what}: ${performance.now() - began} ms`);
    };
    told("merge of 15,000, cold", () => mergeSources([source(specs)]));
    told("merge of 15,000", () => expect(mergeSources([source(specs)]).entries).toHaveLength(15_000));
    const merge = incrementalMerge([source(specs)]);
    const changed = new Map(specs);
    changed.set("r5", {
      ...record,
      serviceId: "new",
      current: { ...record.current, name: "new", plans: [{ id: "new", name: "s" }] },
    });
    changed.delete("r7");
    told("one of 15,000", () => merge.change(source(changed), ["r5", "r7"]));
    expect(merge.catalog).toEqual(mergeSources([source(changed)]));
    expect(merge.catalog.entries).toHaveLength(14_999);
  });

  test("one that comes to share a name, and one that ceases to, are seen to change the others", () => {
    const { one, two } = labs({ one: { a: bundle({ name: "a" }) }, two: { b: bundle({ name: "b" }) } });
    const merge = incrementalMerge([ranked(one), ranked(two)]);
    const names = () => merge.catalog.entries.map(({ name }) => name).sort();
    two?.read({ b: bundle({ name: "a", version: "2.0.0" }) });
    merge.change(ranked(two), ["b"]);
    expect(names()).toEqual(["a", "a-two"]);
    one?.read({ a: bundle({ name: "c", version: "2.0.0" }) });
    merge.change(ranked(one), ["a"]);
    expect(names()).toEqual(["a", "c"]);
    merge.remove("one");
    expect(names()).toEqual(["a"]);
  });
});
