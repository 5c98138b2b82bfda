import type { StoredResource } from "../../store.js";
import { recordColumns, recordOf, textOf } from "./rows.js";
import type { Sessions } from "./sessions.js";
import { bytes, listOf } from "./sql.js";
import type { Tables } from "./tables.js";

export interface Reading {
  readonly key: string;
  readonly parts: readonly string[];
}

/** Reads several resources with their wanted parts in one statement, which sees them all at one moment. */
export async function readAll(
  sessions: Sessions,
  { resource, part }: Tables,
  readings: readonly Reading[],
): Promise<readonly (StoredResource | undefined)[]> {
  const keys = [...new Set(readings.map(({ key }) => key))];
  const wanted = readings.filter(({ parts }) => parts.length > 0);
  const records = `select ${recordColumns("r")}, null as part, null as body
    from ${resource} r force index (by_key) where r.\`key\` in ${listOf(keys, bytes)}`;
  const branches = wanted.map(
    ({ key, parts }) => `select r.\`key\`, 0, 0, null, null, 0, null, null, p.id, p.body
      from ${resource} r force index (by_key) straight_join ${part} p force index (primary) on p.resource = r.id
      where r.\`key\` = ${bytes(key)} and p.id in ${listOf([...new Set(parts)], bytes)}`,
  );
  const rows = await sessions.use((session) => session.rows([records, ...branches].join(" union all ")));

  const found = new Map<string, { readonly record: StoredResource["record"]; readonly parts: Map<string, string> }>();
  for (const row of rows)
    if (row.part === null) found.set(textOf(row.key), { record: recordOf(row), parts: new Map() });
  for (const row of rows)
    if (row.part !== null) found.get(textOf(row.key))?.parts.set(textOf(row.part), textOf(row.body));
  return readings.map(({ key, parts }) => {
    const resource = found.get(key);
    return resource && { record: resource.record, parts: only(resource.parts, parts) };
  });
}

/** Another reading of the same key may have wanted other parts. */
function only(parts: ReadonlyMap<string, string>, ids: readonly string[]): ReadonlyMap<string, string> {
  const wanted = new Map<string, string>();
  for (const id of ids) {
    const body = parts.get(id);
    if (body !== undefined) wanted.set(id, body);
  }
  return wanted;
}
