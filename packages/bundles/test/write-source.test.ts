import { openJournal } from "@osbert/journal";
import { memoryStore } from "@osbert/journal/memory";
import { expect, test } from "vitest";
import { collectSource } from "../src/catalog/collect-sources.js";
import { changedEntry, SourceCopy } from "../src/catalog/source-copy.js";
import { changedKind, sourceResource } from "../src/catalog/source-resource.js";
import { type WriteSource, writeAs, writeSource } from "../src/catalog/write-source.js";
import { defaultCollectRules } from "../src/reconcile/collect.js";
import { reconcile } from "../src/reconcile/next-state.js";
import type { Observation } from "../src/reconcile/observation.js";
import {
  digestOfRevision,
  newSource,
  revisionPart,
  type SourceData,
  sourceKey,
  specPart,
  specState,
} from "../src/reconcile/records.js";
import { defaultRules } from "../src/reconcile/rules.js";
import { draftOf } from "../src/reconcile/source-change.js";
import { bundle, type Seen, SourceLab } from "./source-lab.js";

const by = { actor: { type: "system", subject: "test" } } as const;
const key = sourceKey("hub");
const rules = {
  ...defaultRules,
  missing: { runs: 1, ms: 0 },
  guard: { ...defaultRules.guard, least: 1_000, share: 1 },
};

class Cut extends Error {}

/** A source in a journal. */
async function source() {
  const journal = await openJournal({ store: memoryStore(), kinds: {} });
  const begin = sourceResource.decide(() => ({ result: null, change: { data: newSource("hub", "g1") } }));
  await journal.transact(key, begin, { by });
  /** `cutAfter`: so many commits succeed, and then the process is gone. `between`: what others do after each. */
  const take = async (
    observation: Observation,
    cutAfter = Number.POSITIVE_INFINITY,
    between: () => Promise<void> = async () => undefined,
  ) => {
    let commits = 0;
    const write: WriteSource = async (decide, parts) => {
      if (commits >= cutAfter) throw new Cut();
      await journal.transact(
        key,
        sourceResource.decide((resource) =>
          resource === undefined ? { result: null } : { result: null, change: decide(resource) },
        ),
        { by, parts },
      );
      commits += 1;
      await between();
    };
    const inUse = { services: new Set<string>(), plans: new Set<string>() };
    const decide = (stored: Parameters<typeof reconcile>[0]) =>
      reconcile(stored, observation, { rules, now: 1_000_000, inUse });
    await writeSource(new SourceCopy(journal, key), write, decide).catch((error: unknown) => {
      if (!(error instanceof Cut)) throw error;
    });
    return commits;
  };
  const kept = async () => {
    const stored = await new SourceCopy(journal, key).refresh();
    if (stored === undefined) throw new Error("no source");
    const entries = (await journal.entries(key, { limit: 1_000 })).filter(({ kind }) => kind === changedKind);
    const told = entries.map(({ payload }) => changedEntry(payload));
    const events = told.flatMap((entry) => entry.events.map(({ code, spec }) => `${code} ${spec}`));
    return { ...stored, events, snapshots: told.map(({ snapshot }) => snapshot) };
  };
  const hasRevision = async (spec: string, digest: `sha256:${string}`) => {
    const part = revisionPart(spec, digest);
    return (await journal.read(key, [part]))?.parts.has(part) === true;
  };
  return { journal, take, kept, hasRevision };
}

/** First 450 bundles; then of these some have new content, some are gone, and some are new. */
function readings(): readonly [Observation, Observation] {
  const lab = new SourceLab(rules);
  const name = (index: number) => `b${String(index).padStart(3, "0")}`;
  const seen = (from: number, to: number, version: string): Seen =>
    Object.fromEntries(
      Array.from({ length: to - from }, (_, at) => [name(from + at), bundle({ name: name(from + at), version })]),
    );
  return [
    lab.observation(seen(0, 450, "1.0.0")),
    lab.observation({ ...seen(0, 230, "2.0.0"), ...seen(230, 420, "1.0.0"), ...seen(450, 480, "1.0.0") }),
  ];
}

const ofSource = ({ counts, firstComplete, health, mode, guard }: SourceData) => ({
  ...{ counts, firstComplete, mode, guard, consecutiveFailures: health.consecutiveFailures },
});

test("F4, F5-75: killed after any commit of a change, the next reading comes to the same as one that was not", async () => {
  const [first, second] = readings();
  const whole = await source();
  const commits = [await whole.take(first), await whole.take(second)] as const;
  expect(Math.min(...commits), "the changes take several commits").toBeGreaterThan(2);
  const expected = await whole.kept();
  for (const [reading, of] of commits.entries()) {
    for (let cut = 0; cut < of; cut++) {
      const story = await source();
      for (const [index, observation] of [first, second].entries()) {
        if (index === reading) {
          await story.take(observation, cut);
          const { data, specs } = await story.kept();
          const states = [...specs.values()].map(specState);
          for (const [state, count] of Object.entries(data.counts))
            expect(states.filter((each) => each === state).length, `${state}, cut after ${cut}`).toBe(count);
        }
        await story.take({ ...observation, id: `${observation.id}-again` });
      }
      const { data, specs, events, snapshots } = await story.kept();
      expect(ofSource(data)).toEqual(ofSource(expected.data));
      expect(Object.fromEntries(specs)).toEqual(Object.fromEntries(expected.specs));
      // Whatever changes the catalog has another number than what was before it, and nothing happens that nobody is told of.
      expect(snapshots).toEqual([...snapshots].sort((one, other) => one - other));
      expect(data.snapshot).toBeGreaterThanOrEqual(expected.data.snapshot);
      expect([...events].sort()).toEqual([...expected.events].sort());
      for (const [spec, record] of specs)
        if (record.kind === "service") expect(await story.hasRevision(spec, record.current.digest)).toBe(true);
    }
  }
});

test("F5-53, F5-74: collection between any two commits of a reading takes nothing that the reading names", async () => {
  const { journal, take, kept, hasRevision } = await source();
  const write = () => writeAs(journal, key, by);
  const ports = { journal: () => journal, write, collected: () => undefined, changed: () => undefined };
  // Whatever it finds is old enough: also with clocks that are not alike.
  const collecting = { ...ports, rules: { ...defaultCollectRules, retiredMs: 0 } };
  const walk = () => collectSource(collecting, new SourceCopy(journal, key), { pass: 0, dryRun: false });
  for (const observation of readings()) await take(observation, undefined, async () => void (await walk()));
  const { specs } = await kept();
  for (const [spec, record] of specs)
    if (record.kind === "service") expect(await hasRevision(spec, record.current.digest), spec).toBe(true);
});

test("F5-74: a revision that a spec has come to name since is not removed", async () => {
  const { journal, take, kept, hasRevision } = await source();
  const lab = new SourceLab(rules);
  await take(lab.observation({ a: bundle() }));
  const next = lab.observation({ a: bundle({ version: "2.0.0" }) });
  const before = await kept();
  const facts = { rules, now: 1_000_000, inUse: { services: new Set<string>(), plans: new Set<string>() } };
  const taken = reconcile(before, next, facts);
  const parts = Object.fromEntries([...taken.specs].map(([spec, record]) => [specPart(spec), record]));
  const revisions = Object.fromEntries(taken.revisions);
  const put = (change: object) =>
    journal.transact(
      key,
      sourceResource.decide(() => ({ result: null, change })),
      { by },
    );
  await put({ parts: revisions });
  const [orphan] = taken.revisions.keys();
  if (orphan === undefined) throw new Error("no revision");
  let looks = 0;
  await writeSource(new SourceCopy(journal, key), writeAs(journal, key, by), async (stored) => {
    looks += 1;
    const record = stored.specs.get("a");
    if (record?.kind !== "service") throw new Error("no service");
    const isNamed = revisionPart("a", record.current.digest) === orphan;
    // What changes the spec leaves the source's data as they are, as in a source that is hidden.
    const payload = { snapshot: stored.data.snapshot, specs: ["a"], events: [], eventCount: 0 };
    if (looks === 1) await put({ parts, entries: [{ kind: changedKind, payload }] });
    const draft = draftOf(stored);
    if (!isNamed) draft.removeRevision(orphan);
    return draft.finish(stored.data);
  });
  expect(looks).toBe(2);
  expect(await hasRevision("a", digestOfRevision(orphan))).toBe(true);
});
