import { openJournal } from "@osbert/journal";
import { memoryStore } from "@osbert/journal/memory";
import { expect, test } from "vitest";
import { changedEntry, SourceCopy } from "../src/catalog/source-copy.js";
import { changedKind, sourceResource } from "../src/catalog/source-resource.js";
import { type WriteSource, writeSource } from "../src/catalog/write-source.js";
import { reconcile } from "../src/reconcile/next-state.js";
import type { Observation } from "../src/reconcile/observation.js";
import { newSource, revisionPart, type SourceData, sourceKey, specState } from "../src/reconcile/records.js";
import { defaultRules } from "../src/reconcile/rules.js";
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
  /** `cutAfter`: so many commits succeed, and then the process is gone. */
  const take = async (observation: Observation, cutAfter = Number.POSITIVE_INFINITY) => {
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
  return { take, kept, hasRevision };
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
  expect(Math.min(...commits), "the changes take several commits").toBeGreaterThan(3);
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
