import { defaultRules } from "@osbert/bundles";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Application, ApplicationService } from "../src/applications/application.js";
import { emptyCatalog, grantPart, presentServices, type StoredCatalog } from "../src/applications/catalog-records.js";
import {
  type CatalogChange,
  reconcileApplications,
  removedApplication,
  type Seen,
  type SeenApplication,
} from "../src/applications/reconcile-applications.js";

const rules = { guard: defaultRules.guard, retiredMs: 1_000 };

function service(id: string): ApplicationService {
  return {
    ...{ id, name: id, displayName: id, description: id, provider: null, longDescription: null, labels: {}, tags: [] },
    ...{ events: true, apis: [], parameters: null },
  };
}

function seenApplication(name: string, { services = ["s"], uid = "u", generation = 1 } = {}): SeenApplication {
  const application: Application = {
    ...{ name, uid, kind: "kyma", displayName: name, provider: "", description: name, longDescription: null },
    ...{ labels: {}, tags: [], externalId: null, services: services.map((id) => service(`${name}-${id}`)) },
  };
  return { kind: "kyma", name, uid, generation, application, findings: [] };
}

function seen(
  applications: readonly SeenApplication[],
  { isComplete = true, grants = [] as readonly string[] } = {},
): Seen {
  const kinds = new Set(isComplete ? (["kyma", "osbert"] as const) : []);
  return {
    ...{ complete: { applications: kinds, grants: kinds }, isSettled: isComplete, applications },
    grants: grants.map((namespace) => ({
      grant: { namespace, name: "a", uid: "u", kind: "kyma", application: "a", services: null },
      ...{ generation: 1, findings: [] },
    })),
  };
}

const empty: StoredCatalog = { data: emptyCatalog, applications: new Map(), grants: new Map() };

/** As the operation writes it, if the API server says of all that is missing that it is gone. */
function after(stored: StoredCatalog, change: CatalogChange | null, now: number): StoredCatalog {
  if (change === null) return stored;
  const applications = new Map([...stored.applications, ...change.applications]);
  for (const record of change.missing.applications)
    applications.set(record.application.name, removedApplication(record, now));
  const grants = new Map([...stored.grants, ...change.grants]);
  for (const { grant } of change.missing.grants) grants.delete(grantPart(grant));
  return { data: { ...stored.data, held: change.held, isKnown: change.isKnown }, applications, grants };
}

function step(stored: StoredCatalog, next: Seen, now: number): StoredCatalog {
  return after(stored, reconcileApplications(stored, next, rules, now), now);
}

const present = ({ applications }: StoredCatalog) =>
  [...applications.values()]
    .filter(({ removedAt }) => removedAt === null)
    .map(({ application }) => application.name)
    .sort();
const many = Array.from({ length: 10 }, (_, at) => seenApplication(`a${at}`));

describe("what is kept of applications", () => {
  test("a run that sees nothing new writes nothing", () => {
    const stored = step(empty, seen(many, { grants: ["x"] }), 1);
    expect(reconcileApplications(stored, seen(many, { grants: ["x"] }), rules, 2)).toBe(null);
  });

  test("before all was listed once, nothing is known; afterwards it is, whatever happens", () => {
    expect(step(empty, seen(many, { isComplete: false }), 1).data.isKnown).toBe(false);
    const stored = step(empty, seen([]), 1);
    expect(stored.data.isKnown).toBe(true);
    expect(step(stored, seen([], { isComplete: false }), 2).data.isKnown).toBe(true);
  });

  test("what a list lacks that is not complete is not missing", () => {
    const stored = step(empty, seen(many, { grants: ["x"] }), 1);
    expect(reconcileApplications(stored, seen([], { isComplete: false }), rules, 2)).toBe(null);
  });

  test("an empty list is held, and forgotten when what was missing is back", () => {
    const stored = step(empty, seen(many, { grants: ["x", "y"] }), 1);
    const held = step(stored, seen([]), 2);
    expect(present(held)).toEqual(present(stored));
    expect(held.grants.size).toBe(2);
    expect(held.data.held).toMatchObject({ applications: { count: 10, of: 10 }, grants: { count: 2, of: 2 } });
    // All of them are never believed without a person.
    expect(present(step(step(held, seen([]), 3), seen([]), 100_000_000))).toEqual(present(stored));
    expect(step(held, seen(many, { grants: ["x", "y"] }), 3).data.held).toEqual({ applications: null, grants: null });
  });

  test("what is held has another name when it is not the same any more, so that nobody confirms what he has not seen", () => {
    const held = step(step(empty, seen(many), 1), seen(many.slice(5)), 2);
    const observation = held.data.held.applications?.observation;
    expect(step(held, seen(many.slice(5)), 3).data.held.applications?.observation).toBe(observation);
    expect(step(held, seen(many.slice(6)), 3).data.held.applications?.observation).not.toBe(observation);
  });

  test("what a person has confirmed goes", () => {
    const held = step(step(empty, seen(many), 1), seen([]), 2);
    const { applications } = held.data.held;
    const confirmed = {
      ...held.data.held,
      applications: applications && { ...applications, confirmed: { by: "me", at: 3 } },
    };
    expect(present(step({ ...held, data: { ...held.data, held: confirmed } }, seen([]), 4))).toEqual([]);
  });

  test("one that goes alone goes, and its services are remembered for their instances", () => {
    const stored = step(step(empty, seen(many), 1), seen(many.slice(1)), 2);
    expect(present(stored).length).toBe(9);
    const record = stored.applications.get("a0");
    expect(record).toMatchObject({ removedAt: 2, services: [{ service: { id: "a0-s" }, removedAt: 2 }] });
    // It is asked whether there are instances when its time is over, and not before.
    expect(reconcileApplications(stored, seen(many.slice(1)), rules, 1_001)).toBe(null);
    expect(reconcileApplications(stored, seen(many.slice(1)), rules, 1_002)?.expired).toEqual([record]);
  });

  test("a service that an application drops is remembered, and new again if it comes back", () => {
    const one = step(empty, seen([seenApplication("a", { services: ["s", "t"] })]), 1);
    const two = step(one, seen([seenApplication("a", { services: ["s"], generation: 2 })]), 2);
    const record = two.applications.get("a");
    expect(record && presentServices(record).map((kept) => kept.service.id)).toEqual(["a-s"]);
    expect(record?.services[1]).toMatchObject({ service: { id: "a-t" }, removedAt: 2 });
    const three = step(two, seen([seenApplication("a", { services: ["s", "t"], generation: 3 })]), 3);
    expect(three.applications.get("a")?.services.map(({ since, removedAt }) => [since, removedAt])).toEqual([
      [1, null],
      [3, null],
    ]);
  });

  test("a process that lags behind changes nothing back", () => {
    const stored = step(empty, seen([seenApplication("a", { services: ["s", "t"], generation: 5 })]), 1);
    expect(reconcileApplications(stored, seen([seenApplication("a", { generation: 4 })]), rules, 2)).toBe(null);
  });

  test("of one that has become unreadable, what was offered stays, with the finding", () => {
    const stored = step(empty, seen([seenApplication("a")]), 1);
    const findings = [{ level: "warning" as const, path: "spec", message: "must be an object" }];
    const broken = { ...seenApplication("a", { generation: 2 }), application: null, findings };
    const next = step(stored, seen([broken]), 2);
    expect(next.applications.get("a")).toMatchObject({ removedAt: null, findings, services: [{ removedAt: null }] });
    expect(reconcileApplications(empty, seen([broken]), rules, 1)?.applications.size).toBe(0);
  });
});

test("whatever is seen: what was written is not written again, and nothing goes that is seen or that nobody could see", () => {
  const names = fc.uniqueArray(fc.constantFrom("a", "b", "c", "d", "e", "f"), { maxLength: 6 });
  const steps = fc.array(fc.record({ names, isComplete: fc.boolean(), generation: fc.nat(3) }), { maxLength: 8 });
  fc.assert(
    fc.property(steps, (drawn) => {
      let stored = empty;
      for (const [at, { names: there, isComplete, generation }] of drawn.entries()) {
        const now = at + 1;
        const next = seen(
          there.map((name) => seenApplication(name, { generation })),
          { isComplete },
        );
        const before = present(stored);
        stored = step(stored, next, now);
        const isPresent = new Set(present(stored));
        for (const name of there) expect(isPresent.has(name)).toBe(true);
        if (!isComplete) for (const name of before) expect(isPresent.has(name)).toBe(true);
        const again = reconcileApplications(stored, next, rules, now);
        if (stored.data.held.applications === null) expect(again).toBe(null);
      }
    }),
  );
});
