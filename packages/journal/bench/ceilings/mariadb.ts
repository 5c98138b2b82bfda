import { randomUUID } from "node:crypto";
import mysql from "mysql2/promise";
import type { Change } from "../operations.js";
import { type MariadbPlace, makeTables } from "../places.js";
import type { Ceiling } from "./ceiling.js";
import { type Stage, stagesOf } from "./stage.js";

/** Connections of the ways to group, and of the one without grouping. */
const connectionCounts = [1, 2, 4];
const mostConnections = 10;
/** Stands for "not due" in the store's tables. */
const never = Number.MAX_SAFE_INTEGER;

/** Rows of many values, prepared, between "start transaction" and "commit". */
export async function mariadbCeiling(place: MariadbPlace, changes: readonly Change[], group: number): Promise<Ceiling> {
  await makeTables(place);
  const connections = await Promise.all(
    Array.from({ length: mostConnections }, () => mysql.createConnection({ uri: place.url })),
  );
  for (const connection of connections)
    await connection.query("set session transaction isolation level read committed");
  const stages = stagesOf(changes);
  let lastId = 0;

  const run = async (ms: number, count: number, size: number) => {
    const texts = stages.map((stage) => textsOf(stage, place.prefix, size));
    const started = performance.now();
    let done = 0;
    const go = async (connection: mysql.Connection) => {
      while (performance.now() - started < ms) {
        const keys = Array.from({ length: size }, () => Buffer.from(randomUUID()));
        const ids = keys.map(() => ++lastId);
        for (const [index, stage] of stages.entries()) {
          await connection.query("start transaction");
          await connection.execute(texts[index]?.records ?? "", recordsOf(stage, keys, ids));
          await connection.execute(texts[index]?.entries ?? "", entriesOf(stage, ids));
          await connection.query("commit");
        }
        done += size;
      }
    };
    await Promise.all(connections.slice(0, count).map(go));
    return (done * 1000) / (performance.now() - started);
  };
  const ways = (counts: readonly number[], sizeOf: (count: number) => number) =>
    Object.fromEntries(
      counts.map((count) => [
        `${count} × transactions of ${sizeOf(count)}`,
        (ms: number) => run(ms, count, sizeOf(count)),
      ]),
    );
  return {
    grouped: ways(connectionCounts, () => group),
    shared: ways(connectionCounts, (count) => Math.ceil(group / count)),
    ungrouped: (ms) => run(ms, mostConnections, 1),
    async close() {
      await Promise.all(connections.map((connection) => connection.end()));
    },
  };
}

const columns = ["id", "`key`", "seq", "epoch", "lane", "due_at", "lease_owner", "lease_until", "state"];

function textsOf(stage: Stage, prefix: string, size: number): { readonly records: string; readonly entries: string } {
  const rows = (count: number, width: number) =>
    Array(count)
      .fill(`(${Array(width).fill("?").join(", ")})`)
      .join(", ");
  const update = columns.map((column) => `${column} = values(${column})`).join(", ");
  return {
    records: `insert into \`${prefix}resource\` (${columns.join(", ")}) values ${rows(size, columns.length)}${
      stage.isNew ? "" : ` on duplicate key update ${update}`
    }`,
    entries: `insert into \`${prefix}entry\` (resource, seq, at, token, kind, operation, body) values ${rows(size * stage.entries.length, 7)}`,
  };
}

type Value = string | number | Buffer | null;

function recordsOf(stage: Stage, keys: readonly Buffer[], ids: readonly number[]): Value[] {
  const { seq, epoch, lane, dueAt, owner, until, state } = stage;
  return keys.flatMap((key, index): Value[] => [
    ids[index] ?? 0,
    key,
    seq,
    epoch,
    lane,
    dueAt ?? never,
    owner,
    until,
    state,
  ]);
}

function entriesOf({ entries, at, token }: Stage, ids: readonly number[]): Value[] {
  return ids.flatMap((id) =>
    entries.flatMap(({ seq, kind, operation, body }): Value[] => [id, seq, at, token, kind, operation, body]),
  );
}
