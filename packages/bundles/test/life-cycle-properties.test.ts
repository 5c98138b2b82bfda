import fc from "fast-check";
import { expect, test } from "vitest";
import { propertySeed } from "../../../tools/property-seed.js";
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
  restore,
  withdraw,
} from "../src/reconcile/admin-decisions.js";
import { type CollectedSource, collect, collectable, defaultCollectRules } from "../src/reconcile/collect.js";
import { incrementalMerge } from "../src/reconcile/incremental-merge.js";
import { knownDigests } from "../src/reconcile/known-digests.js";
import { type CatalogEntry, mergeSources, type RankedSource } from "../src/reconcile/merge-sources.js";
import { drainedObservation } from "../src/reconcile/next-state.js";
import type { Observation, RefSeen } from "../src/reconcile/observation.js";
import { newSource, type RevisionPart, revisionPart, type SpecRecord, specState } from "../src/reconcile/records.js";
import { defaultRules } from "../src/reconcile/rules.js";
import type { SourceChange } from "../src/reconcile/source-change.js";
import { bundle, digestOf, minuteMs, planSpec, SourceLab } from "./source-lab.js";

/*
 * Random lives of two sources: readings of every kind, what operators do, instances that are made and go, passes of collection, kills (a
 * result that nobody commits), changed configurations, and a clock that jumps. What is promised is looked at after every step.
 */

const repositories = ["a", "b", "c", "d", "e"];
const names = ["one", "two"] as const;

type Verdict =
  | {
      readonly kind: "bundle";
      readonly version: string | null;
      readonly plans: readonly string[];
      readonly explicit: boolean;
      readonly build: number;
    }
  | { readonly kind: "same" | "absent" | "unreadable" | "filtered" | "not listed" }
  | { readonly kind: "invalid" | "not a bundle" | "unsigned"; readonly content: number }
  /** What is offered has lost its signature. */
  | { readonly kind: "unsigned now" };

const present: fc.Arbitrary<Verdict> = fc.record({
  kind: fc.constant("bundle" as const),
  version: fc.constantFrom("1.0.0", "1.1.0", "2.0.0", null, "no version"),
  plans: fc.subarray(["s", "m", "l", "shared"]),
  explicit: fc.boolean(),
  build: fc.nat(2),
});

const verdict: fc.Arbitrary<Verdict> = fc.oneof(
  { weight: 3, arbitrary: present },
  { weight: 6, arbitrary: fc.constant({ kind: "same" as const }) },
  {
    weight: 6,
    arbitrary: fc.record({ kind: fc.constantFrom("absent", "unreadable", "filtered", "not listed", "not listed") }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constantFrom("invalid", "not a bundle", "unsigned"), content: fc.nat(1) }),
  },
  { weight: 1, arbitrary: fc.constant({ kind: "unsigned now" as const }) },
);

const sourceName = fc.constantFrom(...names);
const repository = fc.constantFrom(...repositories);

const action = fc.oneof(
  {
    weight: 12,
    arbitrary: fc.record({
      act: fc.constant("read" as const),
      source: sourceName,
      verdicts: fc.tuple(verdict, verdict, verdict, verdict, verdict),
      failed: fc.nat(4).map((n) => n === 0),
      killed: fc.nat(4).map((n) => n === 0),
      /** Found as before, so that most of the list is there most of the time. */
      calm: fc.boolean(),
      minutes: fc.constantFrom(1, 7, 10, 30),
      times: fc.constantFrom(1, 1, 1, 3),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      act: fc.constantFrom("hold", "release", "withdraw", "restore", "confirm content"),
      source: sourceName,
      repository,
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      act: fc.constantFrom("confirm", "drain", "left out", "disable", "enable", "configure"),
      source: sourceName,
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({ act: fc.constant("provision" as const), pick: fc.nat(100), snapshot: fc.nat(5) }),
  },
  { weight: 3, arbitrary: fc.record({ act: fc.constant("deprovision" as const), pick: fc.nat(100) }) },
  {
    weight: 3,
    arbitrary: fc.record({ act: fc.constant("collect" as const), killed: fc.boolean(), late: fc.boolean() }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ act: fc.constant("wait" as const), minutes: fc.constantFrom(5, 61, 100 * 24 * 60) }),
  },
);

type Action = typeof action extends fc.Arbitrary<infer Value> ? Value : never;

/** The longest that a replica serves an old catalog here; less than what has retired is kept for. */
const oldestSnapshotMs = 30 * minuteMs;

class World {
  readonly labs = {
    one: new SourceLab({}, newSource("one", "g1")),
    two: new SourceLab({}, newSource("two", "g1")),
  };
  now = 1_000_000;
  readonly instances: {
    readonly source: "one" | "two";
    readonly spec: string;
    readonly entry: CatalogEntry;
    readonly planId: string;
  }[] = [];
  snapshots: { readonly at: number; readonly entries: readonly CatalogEntry[] }[] = [];
  /** Ids as they were first given, until they are forgotten. */
  readonly #ids = new Map<string, string>();
  /** What speaks for retiring a spec, counted apart from the code. */
  readonly #absences = new Map<string, { count: number; ms: number }>();
  readonly #listedAt = new Map<string, number>();
  readonly #merge = incrementalMerge([]);
  readonly #followed = new Map<string, ReadonlyMap<string, SpecRecord>>();
  #runs = 0;

  act(step: Action): void {
    for (const lab of Object.values(this.labs)) lab.now = this.now;
    switch (step.act) {
      case "read":
        for (let time = 0; time < step.times; time++) this.#read(step);
        break;
      case "wait":
        this.now += step.minutes * minuteMs;
        break;
      case "provision": {
        const served = this.#served();
        const { entries } = served.at(-1 - step.snapshot) ?? served.at(-1) ?? { entries: [] };
        const entry = entries[step.pick % Math.max(1, entries.length)];
        if (entry !== undefined) this.#provision(entry);
        break;
      }
      case "deprovision":
        if (this.instances.length > 0) this.instances.splice(step.pick % this.instances.length, 1);
        break;
      case "collect":
        for (const name of names) this.#collect(name, step.killed);
        // A replica that is behind makes an instance of each service of its old catalog.
        if (step.late) for (const entry of this.#served()[0]?.entries ?? []) this.#provision(entry);
        break;
      case "hold":
      case "release":
      case "withdraw":
      case "restore":
      case "confirm content":
        this.#decideOnSpec(step.act, step.source, step.repository);
        break;
      case "confirm":
      case "drain":
      case "left out":
      case "disable":
      case "enable":
      case "configure":
        this.#decideOnSource(step.act, step.source);
    }
    this.#look();
  }

  /** Catalogs that some replica may serve still, the oldest first. */
  #served(): World["snapshots"] {
    this.snapshots = this.snapshots.filter(({ at }) => this.now - at <= oldestSnapshotMs);
    return this.snapshots;
  }

  #provision(entry: CatalogEntry): void {
    const planId = entry.current.plans[0]?.id ?? "";
    this.instances.push({ source: entry.source as "one" | "two", spec: entry.spec, entry, planId });
  }

  #read(step: Action & { readonly act: "read" }): void {
    this.now += step.minutes * minuteMs;
    const lab = this.labs[step.source];
    lab.now = this.now;
    this.#runs += 1;
    const observation = this.#observe(lab, step);
    const inUse = {
      plansInUse: this.instances.map(({ planId }) => planId),
      servicesInUse: this.instances.map(({ entry }) => entry.serviceId),
    };
    const before = lab.stored;
    const change = lab.decideOn(observation, inUse);
    this.#checkCatalogChanged(lab, change);
    // A result that was lost with its process: everything is as it was, and the next run begins anew.
    if (step.killed) return;
    this.#countAbsences(step.source, lab, observation);
    lab.commit(change);
    for (const [spec, record] of before.specs) {
      const after = lab.spec(spec);
      if (record.kind !== "service") continue;
      // What a person holds or has withdrawn, no reading touches.
      if (record.held !== null || (record.state.kind === "retired" && record.state.reason === "withdrawn"))
        expect(after).toEqual(record);
      if (observation.completeness === "failed" && after !== undefined)
        // A failed reading removes nothing.
        expect(rank(specState(after))).toBeLessThanOrEqual(rank(specState(record)));
      if (after?.kind === "service" && after.state.kind === "retired" && record.state.kind !== "retired") {
        expect(["absent", "not a bundle", "config"]).toContain(after.state.reason);
        if (after.state.reason === "config") continue;
        const absences = this.#absences.get(`${step.source}/${spec}`);
        expect(absences?.count).toBeGreaterThanOrEqual(defaultRules.missing.runs);
        expect(absences?.ms).toBeGreaterThanOrEqual(defaultRules.missing.ms);
      }
    }
    // By the many they go only if somebody, or an hour of the same, has said so (F5-17).
    const active = [...before.specs].filter(
      ([, record]) => record.kind === "service" && record.state.kind === "active" && record.held === null,
    );
    const went = active.filter(([spec]) => lab.state(spec) !== "active").length;
    if (went > Math.max(3, 0.3 * active.length) || (went === active.length && went >= 2))
      expect(
        before.data.drainedBy ?? before.data.guard?.confirmed ?? (before.data.guard?.times ?? 0) >= 2,
      ).toBeTruthy();
    // Taken in once more, it changes nothing at all.
    expect(lab.decideOn(observation, inUse)).toMatchObject({ quiet: true, data: lab.data });
    // And what finds everything as it is has nothing to write.
    const found = [...lab.stored.specs].flatMap(([spec, record]) =>
      record.kind === "service" && record.state.kind === "active" && record.refused === null && record.stale === null
        ? [[spec, { kind: "same", digest: record.current.digest }] as const]
        : [],
    );
    const { mode, guard, health, firstComplete, untagged = 0 } = lab.data;
    const readable = health.consecutiveFailures === 0 && firstComplete !== null;
    const calm = mode === "active" && guard === null && readable && untagged === 0;
    if (found.length === lab.stored.specs.size && calm) expect(lab.decide(Object.fromEntries(found)).quiet).toBe(true);
  }

  #observe(lab: SourceLab, step: Action & { readonly act: "read" }): Observation {
    if (lab.data.mode === "draining") return drainedObservation(lab.data, `run-${this.#runs}`);
    const seen: Record<string, RefSeen> = {};
    for (const [index, name] of repositories.entries()) {
      const given = step.verdicts[index] ?? { kind: "same" as const };
      const calm = step.calm && index !== this.#runs % repositories.length;
      const record = lab.spec(name);
      const digest = record === undefined ? undefined : knownDigests(record, { parserVersion: 1 })[0];
      const asBefore: RefSeen = digest === undefined ? bundle({ name, plans: ["s", "m"] }) : { kind: "same", digest };
      if (calm || given.kind === "same") seen[name] = asBefore;
      else if (given.kind === "unsigned now")
        seen[name] = digest === undefined ? asBefore : { kind: "unsigned", digest, why: "it is not signed" };
      else if (given.kind !== "not listed") seen[name] = seenAs(given, name);
    }
    const options = step.failed ? ({ completeness: "failed", error: "down" } as const) : {};
    return { ...lab.observation(seen, options), id: `run-${this.#runs}` };
  }

  #countAbsences(source: string, lab: SourceLab, { completeness, refs }: Observation): void {
    if (lab.data.mode === "disabled") return;
    const listedAt = this.#listedAt.get(source);
    if (completeness === "failed") this.#listedAt.delete(source);
    else this.#listedAt.set(source, this.now);
    for (const spec of repositories) {
      const key = `${source}/${spec}`;
      const seen = refs.get(spec)?.seen;
      const record = lab.spec(spec);
      const refused = record?.kind === "service" ? record.refused : null;
      const isNoBundle = seen?.kind === "same" && refused?.digest === seen.digest && refused.code === "not a bundle";
      if (completeness === "failed") {
        if (seen !== undefined && !isNoBundle && ["same", "read", "invalid", "unsigned"].includes(seen.kind))
          this.#absences.delete(key);
      } else if (seen === undefined || seen.kind === "absent" || seen.kind === "not a bundle" || isNoBundle) {
        const before = this.#absences.get(key);
        const ms = before === undefined || listedAt === undefined ? 0 : this.now - listedAt;
        this.#absences.set(key, { count: (before?.count ?? 0) + 1, ms: (before?.ms ?? 0) + ms });
        // What is filtered says nothing of whether it is there.
      } else if (seen.kind !== "unreadable" && seen.kind !== "filtered") this.#absences.delete(key);
    }
  }

  #collect(source: "one" | "two", killed: boolean): void {
    const lab = this.labs[source];
    const revisions = [...lab.revisions].map(([part, { readAt }]) => [part as RevisionPart, readAt] as const);
    const stored: CollectedSource = { ...lab.stored, revisions: new Map(revisions) };
    const asked = collectable(stored, defaultCollectRules, this.now);
    const pinned = new Set(this.instances.map(({ spec, entry }) => revisionPart(spec, entry.current.digest)));
    const services = new Set(this.instances.map(({ entry }) => entry.serviceId));
    const use = {
      services: new Map(asked.services.map((id) => [id, services.has(id) ? "used" : "unused"] as const)),
      revisions: new Map(asked.revisions.map((part) => [part, pinned.has(part) ? "used" : "unused"] as const)),
    };
    const { change, forgotten } = collect(stored, use, defaultCollectRules, this.now);
    this.#checkCatalogChanged(lab, change);
    if (killed) return;
    lab.commit(change);
    for (const spec of forgotten)
      for (const key of this.#ids.keys()) if (key.startsWith(`${source}/${spec}/`)) this.#ids.delete(key);
  }

  #decideOnSpec(act: string, source: "one" | "two", spec: string): void {
    const lab = this.labs[source];
    const by = { by: "anna", why: "a test", now: this.now };
    const record = lab.spec(spec);
    const refused = record?.kind === "service" ? record.refused : null;
    const decisions: Record<string, () => AdminDecision> = {
      hold: () => hold(lab.stored, spec, by),
      release: () => release(lab.stored, spec, by),
      withdraw: () => withdraw(lab.stored, spec, by),
      restore: () => restore(lab.stored, spec, by),
      "confirm content": () => confirmContent(lab.stored, spec, refused?.digest ?? digestOf(0), by),
    };
    const decision = decisions[act]?.();
    // Restored by a person, it is counted anew.
    if (act === "restore" && decision?.kind === "changed") this.#absences.delete(`${source}/${spec}`);
    this.#commit(lab, decision);
  }

  #decideOnSource(act: string, source: "one" | "two"): void {
    const lab = this.labs[source];
    const by = { by: "anna", why: "a test", now: this.now };
    const generation = `g${this.#runs}-${this.now}`;
    const decisions: Record<string, () => AdminDecision> = {
      confirm: () => confirmRemoval(lab.stored, lab.data.guard?.observation ?? "", by),
      drain: () => drain(lab.stored, by),
      "left out": () => drain(lab.stored, { by: null, why: "not configured" }),
      disable: () => disable(lab.stored, by),
      enable: () => enable(lab.stored, by),
      configure: () => configure(lab.stored, { ...lab.data, generation }, by),
    };
    const decision = decisions[act]?.();
    const stops = act === "drain" || act === "left out" || act === "disable";
    if (stops && decision?.kind === "changed") this.#listedAt.delete(source);
    this.#commit(lab, decision);
  }

  #commit(lab: SourceLab, decision: AdminDecision | undefined): void {
    if (decision?.kind !== "changed") return;
    this.#checkCatalogChanged(lab, decision.change);
    lab.commit(decision.change);
  }

  /** Whoever sees another catalog sees another snapshot number. */
  #checkCatalogChanged(lab: SourceLab, change: SourceChange): void {
    const specs = new Map(lab.stored.specs);
    for (const [id, record] of change.specs) {
      if (record === null) specs.delete(id);
      else specs.set(id, record);
    }
    const shown = (source: RankedSource) =>
      mergeSources([source]).entries.map(({ serviceId, name, current }) => [
        serviceId,
        name,
        current.version,
        current.plans,
      ]);
    const before = shown(ranked(lab));
    const after = shown({ ...ranked(lab), stored: { data: change.data, specs } });
    if (JSON.stringify(before) !== JSON.stringify(after)) expect(change.catalogChanged).toBe(true);
    expect(change.data.snapshot).toBe(lab.data.snapshot + (change.catalogChanged ? 1 : 0));
  }

  #look(): void {
    for (const { source, spec, entry } of this.instances) {
      // Never deleted with instances, and what they are pinned to is there.
      expect(this.labs[source].spec(spec)).toMatchObject({ kind: "service", serviceId: entry.serviceId });
      expect(this.labs[source].revisions.has(revisionPart(spec, entry.current.digest))).toBe(true);
    }
    for (const name of names) this.#lookAtSource(name);
    const sources = names.map((name) => ranked(this.labs[name]));
    const merged = mergeSources(sources);
    const reversed = [...sources].reverse().map((source) => ({
      ...source,
      stored: { ...source.stored, specs: new Map([...source.stored.specs].reverse()) },
    }));
    expect(mergeSources(reversed)).toEqual(merged);
    // Whoever follows the changes has the same catalog as whoever merges all.
    for (const source of sources) {
      const before = this.#followed.get(source.stored.data.identityName) ?? new Map<string, SpecRecord>();
      const ids = new Set([...before.keys(), ...source.stored.specs.keys()]);
      const changed = [...ids].filter((id) => before.get(id) !== source.stored.specs.get(id));
      this.#followed.set(source.stored.data.identityName, source.stored.specs);
      this.#merge.change(source, changed);
    }
    expect(this.#merge.catalog).toEqual(merged);
    const plans = merged.entries.flatMap(({ current }) => current.plans.map(({ id }) => id));
    for (const ids of [merged.entries.map(({ serviceId }) => serviceId), merged.entries.map(({ name }) => name), plans])
      expect(new Set(ids).size).toBe(ids.length);
    this.snapshots.push({ at: this.now, entries: merged.entries });
  }

  #lookAtSource(source: "one" | "two"): void {
    const lab = this.labs[source];
    const counts: Record<string, number> = { pending: 0, rejected: 0, active: 0, missing: 0, retired: 0, deleted: 0 };
    for (const [spec, record] of lab.stored.specs) {
      counts[specState(record)] = (counts[specState(record)] ?? 0) + 1;
      if (record.kind === "candidate") continue;
      this.#stays(`${source}/${spec}/`, record.serviceId);
      for (const plan of record.knownPlans) this.#stays(`${source}/${spec}/plan ${plan.name}`, plan.id);
      if (record.kind === "deleted") continue;
      for (const { digest } of record.history) expect(lab.revisions.has(revisionPart(spec, digest))).toBe(true);
      expect(record.history[0]?.digest).toBe(record.current.digest);
      const versions = record.history.map(({ version }) => version);
      expect(new Set(versions).size).toBe(versions.length);
    }
    expect(lab.data.counts).toEqual(counts);
  }

  #stays(key: string, id: string): void {
    expect(this.#ids.get(key) ?? id).toBe(id);
    this.#ids.set(key, id);
  }
}

function ranked(lab: SourceLab): RankedSource {
  return { stored: lab.stored, priority: 0, failover: lab.data.name === "two" };
}

function rank(state: string): number {
  return ["pending", "rejected", "active", "missing", "retired", "deleted"].indexOf(state);
}

function seenAs(given: Verdict, name: string): RefSeen {
  switch (given.kind) {
    case "bundle": {
      const { version, build } = given;
      // One plan has an id of its author's, the same wherever it is.
      const plans = given.plans.map((plan) => (plan === "shared" ? planSpec(plan, { id: "shared" }) : plan));
      // Both sources may give one service of the same id, and all services are called the same.
      return bundle({ name: "database", version, plans, build, id: given.explicit ? `id-${name}` : null });
    }
    case "unreadable":
      return { kind: "unreadable", why: "503" };
    case "filtered":
      return { kind: "filtered", why: "not wanted" };
    case "invalid":
      return { kind: "invalid", digest: digestOf(given.content), problems: [] };
    case "not a bundle":
      return { kind: "not a bundle", digest: digestOf(10 + given.content), why: "no label" };
    case "unsigned":
      return { kind: "unsigned", digest: digestOf(20 + given.content), why: "it is not signed" };
    case "absent":
    case "same":
    case "unsigned now":
    case "not listed":
      return { kind: "absent" };
  }
}

test("F6: whatever happens, nothing is deleted with instances, retires without evidence, or changes its id", () => {
  const runs = Number(process.env.OSBERT_PROPERTY_RUNS ?? 100);
  fc.assert(
    fc.property(fc.array(action, { minLength: 1, maxLength: 60, size: "max" }), (steps) => {
      const world = new World();
      for (const step of steps) world.act(step);
    }),
    { ...propertySeed(), numRuns: runs },
  );
}, 120_000);
