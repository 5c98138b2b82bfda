import { describe, expect, test } from "vitest";
import { backlogStatements, countsValues } from "../src/stores/postgres/backlog.js";
import { claimQuery, claimStatements } from "../src/stores/postgres/claim.js";
import { commitQuery, commitStatements } from "../src/stores/postgres/commit.js";
import {
  heldByStatement,
  heldByValues,
  reapStatement,
  releaseStatement,
  releaseValues,
  renewStatement,
  renewValues,
} from "../src/stores/postgres/leases.js";
import { entriesQuery, findQuery, listStatements, partsValues } from "../src/stores/postgres/lists.js";
import {
  entriesStatement,
  entriesValues,
  readQuery,
  readStatements,
  versionsStatement,
  versionsValues,
} from "../src/stores/postgres/read.js";
import { replaceTextsStatement, replaceTextsValues } from "../src/stores/postgres/replace-texts.js";
import { schemaOf } from "../src/stores/postgres/schema.js";
import { Session, type Statement, type Value } from "../src/stores/postgres/session.js";
import { removeStatement, restoreStatement, setAsideStatement } from "../src/stores/postgres/upkeep.js";
import { change, PostgresPlace, postgresUrl } from "./postgres-support.js";

describe.skipIf(postgresUrl === null)("the plans of the statements", () => {
  const analyze = ({ schema }: PostgresPlace) =>
    `analyze ${["resource", "entry", "part", "label"].map((name) => `${schema}.${name}`)}`;
  test.each<[string, (place: PostgresPlace) => string]>([
    ["the tables were new", () => "select"],
    ["the server had just counted that there is nothing", analyze],
    ["the server had just counted one row", (place) => `${rows(place, 1, 1)}; ${analyze(place)}`],
    ["the server had just counted a few rows", (place) => `${rows(place, 1, 60)}; ${analyze(place)}`],
    ["the server had just counted many rows", (place) => `${rows(place, 1, 40_000)}; ${analyze(place)}`],
  ])("J10: read little of large tables, though they were made when %s", (_, before) =>
    PostgresPlace.use(async (place) => {
      await place.store();
      await place.pool.query(before(place));
      const session = await sessionOf(place);
      await prepare(session, statements(place));
      await place.pool.query(rows(place, 1, 40_000));
      const wide: string[] = [];
      for (const { statement, values } of statements(place)) {
        const plan = await explain(session, statement, values);
        for (const scan of scansOf(plan)) wide.push(`${statement.name}: ${scan}`);
        if (plan.pages > 200) wide.push(`${statement.name}: ${plan.pages} pages`);
      }
      expect(wide).toEqual([]);
    }),
  );

  describe.each([
    [20_000, 5],
    [2_000, 50],
    [50, 1_000],
  ])(
    "J10: with %i resources of %i parts, entries and labels each, every scan of these names the resource",
    (resources, each) => {
      test.each<[string, readonly ("prepare" | "fill" | "analyze")[]]>([
        ["prepared on new tables", ["prepare", "fill"]],
        ["prepared on tables that were counted while empty", ["analyze", "prepare", "fill"]],
        ["prepared on full tables that were counted", ["fill", "analyze", "prepare"]],
        ["prepared on new tables, and planned again when they were full and counted", ["prepare", "fill", "analyze"]],
      ])("%s", (_, before) =>
        PostgresPlace.use(async (place) => {
          await place.store();
          // Every use of a plan as the store's sessions have it, and plans for one set of values, which others may make.
          const sessions = [await sessionOf(place), await sessionOf(place, "force_custom_plan")];
          const steps = {
            fill: () => place.pool.query(evenRows(place, resources, each)),
            analyze: () => place.pool.query(analyze(place)),
            prepare: async () => {
              for (const session of sessions) await prepare(session, statements(place));
            },
          };
          for (const step of before) await steps[step]();
          const wide: string[] = [];
          for (const session of sessions) {
            for (const { statement, values } of statements(place)) {
              for (const scan of unboundedScansOf(statement, await plannedNodes(session, statement, values))) {
                wide.push(`${statement.name}: ${scan}`);
              }
            }
          }
          expect(wide).toEqual([]);
        }),
      );
    },
  );

  test("J10: a claim reads nothing of a backlog in a lane without room", () =>
    PostgresPlace.use(async (place) => {
      const store = await place.store();
      await place.pool.query(rows(place, 1, 40_000));
      const session = await sessionOf(place);
      const request = { owner: "o", leaseMs: 1_000, limit: 10, laneRoom: 5, rooms: new Map([["backlog", 0]]) };
      const use = claimQuery(claimStatements(schemaOf(place.schema)), request, undefined, null);
      await prepare(session, [use]);
      const plan = await explain(session, use.statement, use.values);
      expect(plan.rows).toBeLessThan(100);
      expect(plan.pages).toBeLessThan(100);
      // The backlog is there.
      const { claimed } = await store.claim({ ...request, rooms: new Map() });
      expect(claimed.map(({ lane }) => lane)).toEqual(Array.from({ length: 5 }, () => "backlog"));
    }));
});

async function sessionOf(place: PostgresPlace, planCacheMode?: string): Promise<Session> {
  const session = await Session.open(place.newPool(), 60_000);
  place.atEnd(() => session.end());
  if (planCacheMode !== undefined) await session.script(`set plan_cache_mode = ${planCacheMode}`);
  return session;
}

interface Use {
  readonly statement: Statement;
  readonly values: Value[];
}

/** Statements that are there twice, with other values, are prepared once. */
async function prepare(session: Session, uses: readonly Use[]): Promise<void> {
  const prepared = new Set<string>();
  for (const { statement, values } of uses) {
    if (!prepared.has(statement.name)) await session.script(`prepare "${statement.name}" as ${statement.text}`);
    prepared.add(statement.name);
    await session.script(`explain ${execution(statement, values)}`); // Makes the plan that is kept.
  }
}

/** Every statement of the store, with values that find something in the filled tables. */
function statements(place: PostgresPlace): Use[] {
  const schema = schemaOf(place.schema);
  const lists = listStatements(schema);
  const commits = commitStatements(schema);
  const claims = claimStatements(schema);
  const claim = { owner: "o", leaseMs: 9, limit: 5, laneRoom: 5, rooms: new Map() };
  const at = { expected: { seq: 1, epoch: 0 } };
  const held = { key: "k5", epoch: 0, seq: 1, dueAt: null };
  const label = { name: "n", value: "v" };
  const removed = { removeLabels: [{ name: "n", value: "w" }], deleteEntries: [1] };
  const parts = { putParts: [{ id: "p", body: "1" }], deleteParts: ["q"], addLabels: [label], ...removed };
  const wideAt = { expected: { seq: 100_000, epoch: 0 } };
  const wide = { ...parts, deleteParts: ["p1", "p20000", "p39999"], deleteEntries: [3, 20_000, 39_999] };
  const page = { after: null, limit: 5 };
  return [
    readQuery(readStatements(schema), [{ key: "k1", parts: [] }]),
    readQuery(readStatements(schema), [{ key: "k1", parts: ["p1", "p2"] }]),
    { statement: versionsStatement(schema), values: versionsValues(["k1", "k2", "no such key"]) },
    { statement: entriesStatement(schema), values: entriesValues([{ key: "k1", seqs: [1, 2] }]) },
    entriesQuery(lists, "k1", { kind: "after", after: 10, limit: 5 }),
    entriesQuery(lists, "k1", { kind: "before", before: 1_000, limit: 5 }),
    entriesQuery(lists, "k1", { kind: "settled", operation: "7-x" }),
    { statement: lists.parts, values: partsValues("k1", { prefix: "p", ...page }) },
    findQuery(lists, { ...page, prefix: "k" }),
    findQuery(lists, { ...page, label, prefix: "k" }),
    findQuery(lists, { ...page, work: { lane: null, after: { lane: "backlog", dueAt: 20_000, key: "k" } } }),
    findQuery(lists, { ...page, work: { lane: "backlog", after: null } }),
    commitQuery(commits, [change("k2", null, at), change("new", null)], null),
    commitQuery(commits, [change("k3", null, { ...at, ...parts })], null),
    // Of a resource with much beside it, and others.
    commitQuery(commits, [change("k1", null, { ...wideAt, ...wide }), change("k8", null, { ...at, ...parts })], null),
    claimQuery(claims, claim, undefined, null),
    claimQuery(claims, claim, { lanes: new Map([["backlog", 10]]), dueAts: [], forMs: 1 }, null),
    { statement: backlogStatements(schema).counts, values: countsValues({ limit: 5, sample: 5 }, null) },
    { statement: backlogStatements(schema).samples, values: [5] },
    { statement: heldByStatement(schema), values: heldByValues("one process", { after: null, limit: 10 }) },
    { statement: renewStatement(schema), values: renewValues("o", [held], 1_000, null) },
    { statement: releaseStatement(schema), values: releaseValues("o", [held], null) },
    { statement: reapStatement(schema), values: [null, "o"] },
    { statement: removeStatement(schema), values: ["k6", 1, 0] },
    { statement: setAsideStatement(schema), values: ["k7"] },
    { statement: restoreStatement(schema), values: ["k7", null] },
    {
      statement: replaceTextsStatement(schema),
      values: replaceTextsValues("k1", [
        { place: { kind: "state", seq: 1 }, from: "{}", to: "[]" },
        { place: { kind: "part", id: "p1" }, from: "{}", to: "[]" },
        { place: { kind: "entry", seq: 1 }, from: "{}", to: "[]" },
      ]),
    },
  ];
}

/**
 * Resources of which half are due in one lane and half wait in others, some leased. The first has many entries and
 * parts.
 */
function rows({ schema }: PostgresPlace, first: number, last: number): string {
  const numbers = `generate_series(${first}, ${last}) as i`;
  return `
    insert into ${schema}.resource (id, key, seq, epoch, lane, due_at, state, lease_owner, lease_until)
    select
      i, 'k' || i, case when i = 1 then 100000 else 1 end, 0, case when i % 2 = 0 then 'backlog' else 'lane ' || i % 10 end, case when i % 2 = 0 then i else 2e15 end, '{}',
      case when i % 20 = 5 then 'o' when i % 5000 = 9 then 'one process' end, case when i % 20 = 5 or i % 5000 = 9 then 2e15 end
    from ${numbers} on conflict do nothing;
    insert into ${schema}.entry select i, 1, 1, 'noted', null, 'token', '{}' from ${numbers} on conflict do nothing;
    insert into ${schema}.entry select 1, i + 1, 1, 'noted', null, 'token', '{}' from ${numbers} on conflict do nothing;
    insert into ${schema}.entry select 1, 1e9 + i, 1, 'settled', i || '-x', 'token', '{}' from ${numbers} on conflict do nothing;
    insert into ${schema}.part select 1, 'p' || i, '{}' from ${numbers} on conflict do nothing;
    insert into ${schema}.part select i, 'q', '{}' from ${numbers} on conflict do nothing;
    insert into ${schema}.label select i, 'n', 'v', 'k' || i from ${numbers} on conflict do nothing;
    insert into ${schema}.owner select 'owner ' || i, i from generate_series(1, 3) as i on conflict do nothing;
    select setval('${schema}.resource_id', 1000000)`;
}

/** Resources with the same number of parts, entries and labels each. */
function evenRows({ schema }: PostgresPlace, resources: number, each: number): string {
  const numbers = `generate_series(1, ${resources}) as i`;
  const all = `${numbers}, generate_series(1, ${each}) as n`;
  return `
    insert into ${schema}.resource (id, key, seq, epoch, lane, due_at, state) select i, 'k' || i, 1, 0, 'lane', i, '{}' from ${numbers};
    insert into ${schema}.entry select i, n, 1, 'noted', null, 'token', '{}' from ${all};
    insert into ${schema}.part select i, 'p' || n, '{}' from ${all};
    insert into ${schema}.label select i, 'n' || n, 'v', 'k' || i from ${all};
    select setval('${schema}.resource_id', 1000000)`;
}

interface PlanNode {
  readonly "Node Type": string;
  readonly "Relation Name"?: string;
  readonly "Index Cond"?: string;
}

interface Plan {
  readonly nodes: readonly PlanNode[];
  /** Read from tables and indexes. */
  readonly rows: number;
  readonly pages: number;
}

function execution({ name }: Statement, values: readonly Value[]): string {
  const literals = values.map((value) =>
    typeof value === "string" ? `'${value.replaceAll("'", "''")}'` : String(value),
  );
  return `execute "${name}" (${literals.join(", ")})`;
}

async function explain(session: Session, statement: Statement, values: readonly Value[]): Promise<Plan> {
  const rows = await session.script(`explain (analyze, buffers, format json) ${execution(statement, values)}`);
  const [{ Plan: root }] = JSON.parse(rows[0]?.[0] ?? "");
  const nodes = flatten(root);
  return {
    nodes,
    rows: nodes
      .filter((node) => node["Relation Name"] !== undefined && node["Node Type"].includes("Scan"))
      .reduce(
        (sum, node) => sum + (node["Actual Rows"] + (node["Rows Removed by Filter"] ?? 0)) * node["Actual Loops"],
        0,
      ),
    pages: root["Shared Hit Blocks"] + root["Shared Read Blocks"],
  };
}

async function plannedNodes(
  session: Session,
  statement: Statement,
  values: readonly Value[],
): Promise<readonly PlanNode[]> {
  const rows = await session.script(`explain (format json) ${execution(statement, values)}`);
  return flatten(JSON.parse(rows[0]?.[0] ?? "")[0].Plan);
}

/** Scans of parts, entries and labels that are not of one resource; one statement is there to look for labels by name and value. */
function unboundedScansOf(statement: Statement, nodes: readonly PlanNode[]): readonly string[] {
  const names = statement.name === "osbert find labelled" ? ["name", "value"] : ["resource_id"];
  return nodes.flatMap((node) => {
    const table = node["Relation Name"];
    if (!node["Node Type"].includes("Scan") || !["part", "entry", "label"].includes(table ?? "")) return [];
    const condition = node["Index Cond"] ?? "";
    return names.every((name) => new RegExp(`\\b${name}\\b`).test(condition))
      ? []
      : [`${node["Node Type"]} of ${table} with (${condition})`];
  });
}

/** Scans of whole tables; that of the owners may be one, who are few. */
function scansOf(plan: Plan): readonly string[] {
  return plan.nodes
    .filter(
      (node) =>
        ["Seq Scan", "Hash Join", "Merge Join"].includes(node["Node Type"]) && node["Relation Name"] !== "owner",
    )
    .map((node) => `${node["Node Type"]} ${node["Relation Name"]}`);
}

// biome-ignore lint/suspicious/noExplicitAny: PostgreSQL's own JSON.
function flatten(node: any): any[] {
  return [node, ...(node.Plans ?? []).flatMap(flatten)];
}
