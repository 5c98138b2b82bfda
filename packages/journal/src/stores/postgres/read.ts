import type { StoredEntry, StoredResource } from "../../store.js";
import { packNumbers, packTexts, text, texts } from "./columns.js";
import { entryColumns, entryOf, numberAt, recordColumns, recordOf, textAt } from "./rows.js";
import type { Schema } from "./schema.js";
import type { Row, Statement, Value } from "./session.js";

export interface ReadRequest {
  readonly key: string;
  readonly parts: readonly string[];
}

/** Reads that were asked for at the same time share a statement: one for records alone, one for records with parts. */
export interface ReadStatements {
  readonly records: Statement;
  readonly withParts: Statement;
}

export function readStatements({ resource, part }: Schema): ReadStatements {
  // Lateral, with a limit: leaves the planner but one way to join, as `lookup` does in statements that write.
  const records = `
    select i.ord, ${recordColumns("r")}
    from unnest($2::integer[], ${texts(3)}) as i(ord, key)
    cross join lateral (select * from ${resource} where key = ${text("i.key")} limit 1) as r`;
  // All of one statement sees the same moment: a record and its parts belong together. A part's row has the record's
  // columns too.
  const parts = `
    select i.ord, ${text("i.id")}, null, null, p.body, null, null, null, null
    from unnest($4::integer[], ${texts(5)}, ${texts(6)}) as i(ord, key, id)
    cross join lateral (
      select body from ${part}
      where resource_id = (select id from ${resource} where key = ${text("i.key")}) and id = ${text("i.id")} limit 1
    ) as p`;
  return {
    records: { name: "osbert read", text: records },
    withParts: { name: "osbert read with parts", text: `${records} union all ${parts}` },
  };
}

export function readQuery(
  statements: ReadStatements,
  requests: readonly ReadRequest[],
): { readonly statement: Statement; readonly values: Value[] } {
  const wanted = requests.flatMap(({ key, parts }, index) => parts.map((id) => ({ ord: index, key, id })));
  const { separator, packed } = packTexts([
    requests.map(({ key }) => key),
    wanted.map(({ key }) => key),
    wanted.map(({ id }) => id),
  ]);
  const [keys = "", wantedKeys = "", wantedIds = ""] = packed;
  const values = [separator, packNumbers([...requests.keys()]), keys];
  if (wanted.length === 0) return { statement: statements.records, values };
  const ords = packNumbers(wanted.map(({ ord }) => ord));
  return { statement: statements.withParts, values: [...values, ords, wantedKeys, wantedIds] };
}

/** What was found for each request, in the order of the requests. */
export function readAnswers(requests: readonly ReadRequest[], rows: readonly Row[]): (StoredResource | undefined)[] {
  const answers: (StoredResource | undefined)[] = requests.map(() => undefined);
  const parts = requests.map(() => new Map<string, string>());
  for (const row of rows) {
    const ord = numberAt(row, 0);
    if (row[2] === null) parts[ord]?.set(textAt(row, 1), textAt(row, 4));
    else answers[ord] = { record: recordOf(row, 1), parts: parts[ord] ?? new Map() };
  }
  return answers;
}

/** Where records are, each looked up by its key. */
export function versionsStatement({ resource }: Schema): Statement {
  return {
    name: "osbert versions",
    text: `
      select r.key, r.seq, r.epoch
      from unnest(${texts(2)}) as i(key)
      cross join lateral (select key, seq, epoch from ${resource} where key = ${text("i.key")} limit 1) as r`,
  };
}

export function versionsValues(keys: readonly string[]): Value[] {
  const { separator, packed } = packTexts([keys]);
  return [separator, packed[0] ?? ""];
}

export interface EntriesRequest {
  readonly key: string;
  readonly seqs: readonly number[];
}

/** Entries by number; these are asked for often and share a statement too. */
export function entriesStatement({ resource, entry }: Schema): Statement {
  return {
    name: "osbert entries",
    text: `
      select i.ord, ${entryColumns("e")}
      from unnest($2::integer[], ${texts(3)}, $4::bigint[]) as i(ord, key, seq)
      cross join lateral (
        select * from ${entry}
        where resource_id = (select id from ${resource} where key = ${text("i.key")}) and seq = i.seq limit 1
      ) as e`,
  };
}

export function entriesValues(requests: readonly EntriesRequest[]): Value[] {
  const wanted = requests.flatMap(({ key, seqs }, index) =>
    [...new Set(seqs)].map((seq) => ({ ord: index, key, seq })),
  );
  const { separator, packed } = packTexts([wanted.map(({ key }) => key)]);
  return [
    separator,
    packNumbers(wanted.map(({ ord }) => ord)),
    packed[0] ?? "",
    packNumbers(wanted.map(({ seq }) => seq)),
  ];
}

/** The entries of each request by number, in the order of the requests. */
export function entriesAnswers(requests: readonly EntriesRequest[], rows: readonly Row[]): (readonly StoredEntry[])[] {
  const answers = requests.map((): StoredEntry[] => []);
  for (const row of rows) answers[numberAt(row, 0)]?.push(entryOf(row, 1));
  for (const entries of answers) entries.sort((a, b) => a.seq - b.seq);
  return answers;
}
