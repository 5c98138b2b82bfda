import { describe, expect, test } from "vitest";
import { withdraw } from "../src/reconcile/admin-decisions.js";
import { mergeSources } from "../src/reconcile/merge-sources.js";
import { type CatalogView, planChangeProblem, provisionable, whenMissing } from "../src/reconcile/provisionable.js";
import { bundle, planSpec, SourceLab } from "./source-lab.js";

/** A source with `a`, that has the plans s and m, from s one may change to m. */
function labOf(): SourceLab {
  const lab = new SourceLab();
  lab.read({ a: bundle({ plans: [planSpec("s", { updatesTo: ["m"] }), "m"] }) });
  return lab;
}

function view(lab: SourceLab, unread: readonly string[] = []): CatalogView {
  const { entries } = mergeSources([{ stored: lab.stored, priority: 0, failover: false }]);
  const record = lab.spec("a");
  return { entry: entries[0], record: record?.kind === "service" ? record : undefined, unread };
}

const planOf = (lab: SourceLab, name: string) =>
  [...lab.revisions.values()].flatMap(({ plans }) => plans).find((plan) => plan.name === name)?.id ?? "";

describe("a provision at a bad moment", () => {
  test("F5-45: what the committed snapshot offers is offered, whatever runs", () => {
    const lab = labOf();
    const before = view(lab);
    lab.decide({});
    expect(provisionable(before, planOf(lab, "s"))).toEqual({ kind: "yes" });
  });

  test("F5-46: an id that nobody knows waits while a source has not been read, a minute at most", () => {
    const lab = new SourceLab();
    expect(provisionable(view(lab, ["hub"]), "p")).toMatchObject({
      kind: "not known yet",
      waitMs: 60_000,
      retryAfterSeconds: 10,
    });
  });

  test("F5-46: what is known does not wait for a source that has not been read", () => {
    const lab = labOf();
    expect(provisionable(view(lab, ["quay"]), planOf(lab, "s"))).toEqual({ kind: "yes" });
  });

  test("F5-47: an id that is unknown when all were read is refused", () => {
    expect(provisionable(view(new SourceLab()), "p")).toMatchObject({ kind: "refused", error: null });
  });

  test("F5-47: what has retired is refused with ServiceRetired, and the platform is told to read the catalog", () => {
    const lab = labOf();
    for (let run = 0; run < 3; run++) lab.read({});
    expect(provisionable(view(lab), planOf(lab, "s"))).toEqual({
      kind: "refused",
      error: "ServiceRetired",
      why: "database is not offered any more; read the catalog again",
    });
  });

  test("F5-47: what was withdrawn is refused with the reason", () => {
    const lab = labOf();
    const decision = withdraw(lab.stored, "a", { by: "anna", why: "CVE-2026-1", now: lab.now });
    if (decision.kind === "changed") lab.commit(decision.change);
    expect(provisionable(view(lab), planOf(lab, "s"))).toMatchObject({ why: expect.stringContaining("CVE-2026-1") });
  });

  test("F5-47: what is missing can be provisioned if its digest is still there, and else not", () => {
    const lab = labOf();
    lab.read({});
    expect(provisionable(view(lab), planOf(lab, "s"))).toMatchObject({
      kind: "ask the source",
      source: "hub",
      repository: "a",
      digest: lab.service("a").current.digest,
    });
    expect(whenMissing("there", "database")).toEqual({ kind: "yes" });
    expect(whenMissing("gone", "database")).toEqual({
      kind: "refused",
      error: "ServiceRetired",
      // Nobody is sent to a catalog that still has it.
      why: "the content of database is gone from its registry; it leaves the catalog when it retires",
    });
    expect(whenMissing("unreadable", "database")).toMatchObject({ kind: "not known yet" });
  });

  test("F5-40: a plan that has left is refused by its name; one that never was is not a plan", () => {
    const lab = labOf();
    const s = planOf(lab, "s");
    lab.read({ a: bundle({ plans: ["m"], version: "1.1.0" }) });
    expect(provisionable(view(lab), s)).toMatchObject({
      kind: "refused",
      why: expect.stringContaining("plan s has left"),
    });
    expect(provisionable(view(lab), "x")).toMatchObject({
      kind: "refused",
      why: "plan_id is not a plan of this service",
    });
  });
});

describe("F5-40, F5-50: an update of an instance that is pinned to a revision", () => {
  test("parameters alone are never asked about, whatever became of the plan and the service", () => {
    const lab = labOf();
    const s = planOf(lab, "s");
    for (let run = 0; run < 3; run++) lab.read({});
    expect(planChangeProblem(view(lab), s, s)).toBeNull();
  });

  test("away from a plan that has left, to one that is offered still", () => {
    const lab = labOf();
    const [s, m] = [planOf(lab, "s"), planOf(lab, "m")];
    lab.read({ a: bundle({ plans: ["m"], version: "1.1.0" }) });
    expect(planChangeProblem(view(lab), s, m)).toBeNull();
    lab.read({ a: bundle({ plans: ["l"], version: "1.2.0" }) });
    expect(planChangeProblem(view(lab), s, m)).toMatch(/not a plan of this service any more/);
  });

  test("not onto a plan that has left, nor of a service that has retired", () => {
    const lab = labOf();
    const [s, m] = [planOf(lab, "s"), planOf(lab, "m")];
    for (let run = 0; run < 3; run++) lab.read({});
    expect(planChangeProblem(view(lab), s, m)).toMatch(/has retired/);
  });
});
