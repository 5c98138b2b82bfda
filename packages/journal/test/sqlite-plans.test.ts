import Database from "better-sqlite3";
import { afterAll, expect, test } from "vitest";
import { claimSql } from "../src/stores/sqlite/claim.js";
import { leaseSql } from "../src/stores/sqlite/leases.js";
import { readSql } from "../src/stores/sqlite/reader.js";
import { replaceSql } from "../src/stores/sqlite/replace-texts.js";
import { migrate } from "../src/stores/sqlite/schema.js";

const database = new Database(":memory:");
migrate(database);
afterAll(() => database.close());

const byKey = "SEARCH resource USING INDEX sqlite_autoindex_resource_1";
const idByKey = "SEARCH resource USING COVERING INDEX sqlite_autoindex_resource_1 (key=?)";

/** J10: what each statement may touch. A scan or a sort would show as SCAN or TEMP B-TREE. */
const plans: Readonly<Record<string, readonly [sql: string, ...steps: string[]]>> = {
  "claim, next lane": [claimSql.lane, "SEARCH resource USING COVERING INDEX resource_due (lane>?)"],
  "claim, due in a lane": [claimSql.due, "SEARCH resource USING INDEX resource_due (lane=? AND due_at<?)"],
  "claim, next due in a lane": [
    claimSql.next,
    "SEARCH resource USING COVERING INDEX resource_due (lane=? AND due_at>?)",
  ],
  "claim, record": [claimSql.record, "SEARCH resource USING INTEGER PRIMARY KEY (rowid=?)"],
  "claim, take": [claimSql.take, "SEARCH resource USING INTEGER PRIMARY KEY (rowid=?)"],
  "renew and release": [leaseSql.held, `${byKey} (key=?)`],
  "reap, next owner": [leaseSql.owner, "SEARCH resource USING COVERING INDEX resource_lease (lease_owner>?)"],
  "reap, free": [leaseSql.free, "SEARCH resource USING INDEX resource_lease (lease_owner=?)"],
  "read, record": [readSql.record, `${byKey} (key=?)`],
  "read, number": [readSql.id, idByKey],
  "read, version": [readSql.version, `${byKey} (key=?)`],
  "read, part": [readSql.part, "SEARCH part USING PRIMARY KEY (resource=? AND id=?)"],
  "entries by number": [readSql.entry, "SEARCH entry USING PRIMARY KEY (resource=? AND seq=?)"],
  "entries after": [
    readSql.entriesAfter,
    "SEARCH entry USING PRIMARY KEY (resource=? AND seq>?)",
    "SCALAR SUBQUERY 1",
    idByKey,
  ],
  "entries before": [
    readSql.entriesBefore,
    "SEARCH entry USING PRIMARY KEY (resource=? AND seq<?)",
    "SCALAR SUBQUERY 1",
    idByKey,
  ],
  "end of an operation": [
    readSql.settled,
    "SEARCH entry USING INDEX entry_settled (resource=? AND operation=?)",
    "SCALAR SUBQUERY 1",
    idByKey,
  ],
  parts: [readSql.parts, "SEARCH part USING PRIMARY KEY (resource=? AND id>?)", "SCALAR SUBQUERY 1", idByKey],
  "parts with a prefix": [
    readSql.partsUpTo,
    "SEARCH part USING PRIMARY KEY (resource=? AND id>? AND id<?)",
    "SCALAR SUBQUERY 1",
    idByKey,
  ],
  "replace the state": [replaceSql.state, `${byKey} (key=?)`],
  "replace a part": [
    replaceSql.part,
    "SEARCH part USING PRIMARY KEY (resource=? AND id=?)",
    "SCALAR SUBQUERY 1",
    idByKey,
  ],
  "replace an entry": [
    replaceSql.entry,
    "SEARCH entry USING PRIMARY KEY (resource=? AND seq=?)",
    "SCALAR SUBQUERY 1",
    idByKey,
  ],
  find: [readSql.find, `${byKey} (key>?)`],
  "find by prefix": [readSql.findUpTo, `${byKey} (key>? AND key<?)`],
  "backlog, next lane": [readSql.nextLane, "SEARCH resource USING COVERING INDEX resource_due (lane>?)"],
  "backlog, due in a lane": [
    readSql.countDue,
    "CO-ROUTINE (subquery-1)",
    "SEARCH resource USING COVERING INDEX resource_due (lane=? AND due_at<?)",
    "SCAN (subquery-1)",
  ],
  "backlog, due later in a lane": [
    readSql.countLater,
    "CO-ROUTINE (subquery-1)",
    "SEARCH resource USING COVERING INDEX resource_due (lane=? AND due_at>?)",
    "SCAN (subquery-1)",
  ],
  "backlog, leased": [
    readSql.countLeased,
    "CO-ROUTINE (subquery-1)",
    "SEARCH resource USING COVERING INDEX resource_lease (lease_owner>?)",
    "SCAN (subquery-1)",
  ],
  "held by an owner": [
    readSql.heldBy,
    "SEARCH resource USING INDEX resource_lease (lease_owner=?)",
    "USE TEMP B-TREE FOR ORDER BY",
  ],
  "backlog, earliest due": [readSql.earliestDue, "SEARCH resource USING INDEX resource_due (lane=? AND due_at>?)"],
  "find by label": [
    readSql.findLabelled,
    "SEARCH label USING COVERING INDEX label_find (name=? AND value=? AND key>?)",
    "SEARCH resource USING INTEGER PRIMARY KEY (rowid=?)",
  ],
  "find by label and prefix": [
    readSql.findLabelledUpTo,
    "SEARCH label USING COVERING INDEX label_find (name=? AND value=? AND key>? AND key<?)",
    "SEARCH resource USING INTEGER PRIMARY KEY (rowid=?)",
  ],
  "find work": [
    readSql.findWork,
    "SEARCH resource USING INDEX resource_due ((lane,due_at)>(?,?))",
    "USE TEMP B-TREE FOR LAST TERM OF ORDER BY",
  ],
  "find work of a lane": [
    readSql.findWorkOfLane,
    "SEARCH resource USING INDEX resource_due (lane=? AND due_at>?)",
    "USE TEMP B-TREE FOR LAST TERM OF ORDER BY",
  ],
};

for (const [name, [sql, ...steps]] of Object.entries(plans)) {
  test(`J10: ${name} walks along an index and reads nothing else`, () => {
    const parameters = sql
      .split("?")
      .slice(1)
      .map(() => null);
    const rows = database.prepare(`explain query plan ${sql}`).all(...parameters) as { detail: string }[];
    expect(rows.map(({ detail }) => detail)).toEqual(steps);
  });
}

test("every statement of claims and reads is among them", () => {
  const looked = new Set(Object.values(plans).map(([sql]) => sql));
  expect(
    [claimSql, leaseSql, readSql].flatMap((table) => Object.values(table)).filter((sql) => !looked.has(sql)),
  ).toEqual([]);
});
