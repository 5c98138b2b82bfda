import { expect, test } from "vitest";
import { OfferedBundles } from "../src/catalog/offered-bundles.js";
import type { CatalogEntry } from "../src/reconcile/merge-sources.js";
import { type RevisionPart, type RevisionRecord, revisionPart } from "../src/reconcile/records.js";
import { bundle } from "./source-lab.js";

/** Bundles that are offered at a version, and what is read of them. */
function lab() {
  const stored = new Map<RevisionPart, RevisionRecord>();
  const read: RevisionPart[] = [];
  const superseded = new Set<RevisionPart>();
  const leftOut: string[] = [];
  let held: Promise<void> | undefined;
  const entry = (serviceId: string, version = "1.0.0"): CatalogEntry => {
    const { revision } = bundle({ name: serviceId, version });
    const plans = revision.spec.plans.map(({ name }) => ({ id: `${serviceId}-${name}`, name }));
    const facts = { version, plans, fingerprint: "f" };
    const ref = { repository: serviceId, channel: "", tag: "latest" };
    stored.set(revisionPart(serviceId, revision.digest), { ...revision, ...facts, serviceId, ref, readAt: 0 });
    const current = { ...facts, digest: revision.digest, at: 0, name: serviceId };
    return { serviceId, name: serviceId, source: "hub", spec: serviceId, current, state: "active" };
  };
  const unused = () => Promise.reject(new Error("it is not run here"));
  const offered = new OfferedBundles({
    revisions: () => async (parts) => {
      read.push(...parts);
      await held;
      return new Map([...stored].filter(([part]) => parts.includes(part)));
    },
    named: async (_, { spec, current }) => {
      const part = revisionPart(spec, current.digest);
      return { isNamed: !superseded.has(part), revision: stored.get(part) };
    },
    leftOut: ({ spec }) => void leftOut.push(spec),
    render: () => undefined,
    actions: () => ({
      ...{ runner: undefined as never, fetch: unused, limits: undefined as never, orphans: undefined as never },
      ...{ secrets: () => ({}), everGiven: () => [], tell: () => undefined },
    }),
  });
  /** The next reading waits until this is called. */
  const hold = () => {
    let release: () => void = () => undefined;
    held = new Promise((resolve) => {
      release = resolve;
    });
    return () => {
      held = undefined;
      release();
    };
  };
  return { entry, offered, read, hold, stored, superseded, leftOut };
}

test("what has not changed is the same object, whatever comes and goes around it, and nothing of it is read", async () => {
  const { entry, offered, read } = lab();
  const [a, b, c, d] = [entry("a"), entry("b"), entry("c"), entry("d")] as const;
  const [first, second] = await offered.services([b, c]);
  read.length = 0;
  const all = await offered.services([a, { ...b }, c, d]);
  expect(all.map(({ id }) => id)).toEqual(["a", "b", "c", "d"]);
  expect([all[1], all[2]]).toEqual([first, second]);
  expect(all[1] === first && all[2] === second).toBe(true);
  expect(read).toHaveLength(2);
  const less = await offered.services([a, entry("c", "2.0.0"), d]);
  expect([less[0] === all[0], less[1] === second, less[2] === all[3]]).toEqual([true, false, true]);
  expect(read).toHaveLength(3);
});

test("F5-83: secrets that are exchanged while bundles are read hide nothing of the catalog, and all are made anew the next time", async () => {
  const { entry, offered, hold } = lab();
  const entries = [entry("a"), entry("b"), entry("c")];
  const before = await offered.services(entries.slice(0, 2));
  const release = hold();
  const making = offered.services(entries);
  offered.forget();
  release();
  const made = await making;
  expect(made.map(({ id }) => id)).toEqual(["a", "b", "c"]);
  const after = await offered.services(entries);
  expect(after.map(({ id }) => id)).toEqual(["a", "b", "c"]);
  expect(after.filter((service) => before.includes(service) || made.includes(service))).toEqual([]);
});

test("one bundle whose revision is not stored is left out and told once, and keeps no other from being offered", async () => {
  const { entry, offered, stored, leftOut } = lab();
  const entries = [entry("a"), entry("b"), entry("c")];
  const [part, lost] = [...stored][1] ?? [];
  if (part === undefined || lost === undefined) throw new Error("no revision");
  stored.delete(part);
  for (let times = 0; times < 2; times++)
    expect((await offered.services(entries)).map(({ id }) => id)).toEqual(["a", "c"]);
  expect(leftOut).toEqual(["b"]);
  const [a] = await offered.services(entries);
  stored.set(part, lost);
  const all = await offered.services(entries);
  expect(all.map(({ id }) => id)).toEqual(["a", "b", "c"]);
  expect(all[0] === a).toBe(true);
  expect(leftOut).toEqual(["b"]);
});

test("F5-48: a process that stood still until a revision was superseded and removed leaves nothing out; it waits for what has changed", async () => {
  const { entry, offered, stored, superseded, leftOut } = lab();
  const entries = [entry("a"), entry("b")];
  const [part] = stored.keys();
  if (part === undefined) throw new Error("no revision");
  stored.delete(part);
  superseded.add(part);
  await expect(offered.services(entries)).rejects.toThrow("not the current one any more");
  expect(leftOut).toEqual([]);
});
