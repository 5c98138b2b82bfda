import fc from "fast-check";
import { expect, test } from "vitest";
import type { Change } from "../src/store.js";
import { putChange, takeChange } from "../src/stores/sqlite/change-cells.js";
import { textRange } from "../src/stores/sqlite/text-range.js";

const text = fc.string({ unit: "binary", maxLength: 8 });
const count = fc.nat(10);
const labels = fc.array(fc.record({ name: text, value: text }), { maxLength: 3 });
const change: fc.Arbitrary<Omit<Change, "wake">> = fc.record({
  key: text,
  expected: fc.option(fc.record({ seq: count, epoch: count })),
  token: text,
  state: text,
  lane: text,
  epoch: count,
  lease: fc.oneof(
    fc.constant("keep" as const),
    fc.constant(null),
    fc.record({ owner: fc.oneof(text, fc.constant("keep")), until: count }),
  ),
  dueAt: fc.oneof(fc.constant("keep" as const), fc.constant(null), count),
  entries: fc.array(fc.record({ kind: text, operation: fc.option(text), body: text }), { maxLength: 3 }),
  putParts: fc.array(fc.record({ id: text, body: text }), { maxLength: 3 }),
  deleteParts: fc.array(text, { maxLength: 3 }),
  addLabels: labels,
  removeLabels: labels,
  deleteEntries: fc.array(count, { maxLength: 3 }),
});

test("changes come out of the cells as they went in, one after the other", () => {
  fc.assert(
    fc.property(fc.array(change, { maxLength: 4 }), (changes) => {
      const cells: (string | number | null)[] = [];
      for (const one of changes) putChange(cells, one);
      const taken: unknown[] = [];
      for (let at = 0; at < cells.length; ) {
        const next = takeChange(cells, at);
        taken.push(next.change);
        at = next.end;
      }
      expect(taken).toEqual(changes);
    }),
  );
});

test("a change may delete more entries and parts than a call takes arguments", () => {
  const many = Array.from({ length: 300_000 }, (_, n) => n);
  const [one] = fc.sample(change, 1) as [Omit<Change, "wake">];
  const cells: (string | number | null)[] = [];
  putChange(cells, { ...one, deleteEntries: many, deleteParts: many.map(String) });
  expect(takeChange(cells, 0).change.deleteEntries).toHaveLength(300_000);
});

const bytes = (value: string) => Buffer.from(value);
const wellFormed = fc.string({
  unit: fc.oneof(
    fc.constantFrom("a", "b", "\u0000", "\u007f", "\ud7ff", "\ue000", "\uffff", "😀", "\u{10ffff}"),
    fc.string({ unit: "binary", minLength: 1, maxLength: 1 }),
  ),
  maxLength: 4,
});

test("the range of a prefix holds exactly the texts that start with it and come after", () => {
  fc.assert(
    fc.property(wellFormed, fc.option(wellFormed), wellFormed, fc.boolean(), (prefix, after, other, isExtension) => {
      const value = isExtension ? prefix + other : other;
      const { from, to } = textRange(prefix, after);
      const isInside =
        Buffer.compare(bytes(value), bytes(from)) >= 0 && (to === null || Buffer.compare(bytes(value), bytes(to)) < 0);
      const isWanted = value.startsWith(prefix) && (after === null || Buffer.compare(bytes(value), bytes(after)) > 0);
      expect(isInside).toBe(isWanted);
    }),
    { numRuns: 2_000 },
  );
});
