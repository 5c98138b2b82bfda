import type { Pool } from "mysql2/promise";

/** The tables of a prefix as text: the same on every server that has them alike. The prefix is left out of it. */
export async function dumpSchema(admin: Pool, prefix: string): Promise<string> {
  const tables = await select(admin, "tables", ["table_name", "engine", "row_format"], prefix, "table_name");
  const columns = await select(admin, "columns", columnFields, prefix, "table_name, ordinal_position");
  const indexes = await select(admin, "statistics", indexFields, prefix, "table_name, index_name, seq_in_index");
  return tables
    .map(([table = "", engine, format]) => {
      const lines = [
        ...columns.filter(([of]) => of === table).map(columnText),
        ...indexTexts(indexes.filter(([of]) => of === table)),
      ];
      return `create table ${table.slice(prefix.length)} (\n  ${lines.join(",\n  ")}\n) engine = ${engine}, row_format = ${format};\n`;
    })
    .join("\n")
    .toLowerCase();
}

const columnFields = [
  "table_name",
  "column_name",
  "column_type",
  "collation_name",
  "is_nullable",
  "extra",
  "column_comment",
];
const indexFields = ["table_name", "index_name", "column_name", "non_unique"];

type Texts = readonly (string | undefined)[];

async function select(
  admin: Pool,
  view: string,
  fields: readonly string[],
  prefix: string,
  order: string,
): Promise<readonly Texts[]> {
  const sql = `select ${fields.join(", ")} from information_schema.${view}
    where table_schema = database() and left(table_name, ${prefix.length}) = '${prefix}' order by ${order}`;
  const [rows] = await admin.query({ sql, rowsAsArray: true });
  return (rows as unknown as readonly (readonly unknown[])[]).map((row) =>
    row.map((value) => (value === null ? undefined : String(value))),
  );
}

function columnText([, name, type, collation, nullable, extra, comment]: Texts): string {
  // MySQL 8 does not show how wide integers are displayed, MariaDB does.
  const words = [
    name,
    type?.replace(/int\(\d+\)/, "int"),
    collation && `collate ${collation}`,
    nullable === "YES" ? "null" : "not null",
    extra,
  ];
  if (comment) words.push(`comment '${comment}'`);
  return words.filter(Boolean).join(" ");
}

function indexTexts(rows: readonly Texts[]): readonly string[] {
  const names = [...new Set(rows.map(([, index]) => index))];
  return names.map((name) => {
    const parts = rows.filter(([, index]) => index === name);
    const kind = name === "PRIMARY" ? "primary key" : `${parts[0]?.[3] === "0" ? "unique " : ""}key ${name}`;
    return `${kind} (${parts.map(([, , column]) => column).join(", ")})`;
  });
}
