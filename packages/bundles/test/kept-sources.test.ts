import { openJournal } from "@osbert/journal";
import { memoryStore } from "@osbert/journal/memory";
import { expect, onTestFinished, test } from "vitest";
import { neighbouringRevisions } from "../src/catalog/kept-sources.js";
import { sourceResource } from "../src/catalog/source-resource.js";
import {
  newSource,
  type RevisionPart,
  type RevisionRecord,
  revisionPart,
  sourceKey,
} from "../src/reconcile/records.js";
import { bundle, digestOf } from "./source-lab.js";

const by = { actor: { type: "system", subject: "test" } } as const;
const key = sourceKey("hub");

/** Some bundles with so many revisions each, in a journal; and those parts, of each bundle one, in their order. */
async function stored({ bundles, revisions }: { readonly bundles: number; readonly revisions: number }) {
  const journal = await openJournal({ store: memoryStore(), kinds: {} });
  onTestFinished(() => journal.stop());
  const { revision } = bundle();
  const parts: Record<RevisionPart, RevisionRecord> = {};
  const newest: RevisionPart[] = [];
  for (let at = 0; at < bundles; at++) {
    const spec = `team/bundle-${String(at).padStart(4, "0")}`;
    for (let number = 0; number < revisions; number++) {
      const digest = digestOf([spec, number]);
      const ref = { repository: spec, channel: "", tag: "latest" };
      const facts = { ref, serviceId: spec, version: `1.${number}.0`, plans: [], fingerprint: "f", readAt: number };
      parts[revisionPart(spec, digest)] = { ...revision, ...facts, digest };
      if (number === revisions - 1) newest.push(revisionPart(spec, digest));
    }
  }
  await journal.transact(
    key,
    sourceResource.decide(() => ({ result: null, change: { data: newSource("hub", "g"), parts } })),
    { by },
  );
  const asked = { walks: 0, lookedUp: 0 };
  const watched: typeof journal = Object.create(journal, {
    parts: {
      value: (...args: Parameters<typeof journal.parts>) => {
        asked.walks += 1;
        return journal.parts(...args);
      },
    },
    read: {
      value: (of: string, ids: readonly string[] = []) => {
        asked.lookedUp += ids.length;
        return journal.read(of, ids);
      },
    },
  });
  return { journal: watched, parts, newest, asked };
}

test.each([1, 2, 7])(
  "of bundles with %d revisions each, those that are wanted are read, whatever lies between them",
  async (revisions) => {
    const { journal, parts, newest } = await stored({ bundles: 40, revisions });
    const read = neighbouringRevisions(journal, key);
    for (let from = 0; from < newest.length; from += 10) {
      const wanted = newest.slice(from, from + 10);
      const found = await read(wanted);
      expect([...found.keys()].sort()).toEqual(wanted);
      for (const part of wanted) expect(found.get(part)).toEqual(parts[part]);
    }
  },
);

test("revisions that lie side by side are read in walks, and those with others between them are looked up", async () => {
  const alone = await stored({ bundles: 40, revisions: 1 });
  const readAlone = neighbouringRevisions(alone.journal, key);
  for (let from = 0; from < 40; from += 10) await readAlone(alone.newest.slice(from, from + 10));
  expect(alone.asked).toEqual({ walks: 3, lookedUp: 10 });
  const old = await stored({ bundles: 40, revisions: 7 });
  const readOld = neighbouringRevisions(old.journal, key);
  for (let from = 0; from < 40; from += 10) await readOld(old.newest.slice(from, from + 10));
  expect(old.asked.walks).toBe(1);
});

test("revisions that are asked for out of their order, or are not there, are told as what they are", async () => {
  const { journal, newest } = await stored({ bundles: 10, revisions: 1 });
  const read = neighbouringRevisions(journal, key);
  const backwards = [...newest].reverse();
  const gone = revisionPart("team/gone", digestOf("gone"));
  expect((await read(backwards.slice(0, 5))).size).toBe(5);
  expect([...(await read([...backwards.slice(5), gone])).keys()].sort()).toEqual(newest.slice(0, 5));
});
