import { text } from "node:stream/consumers";
import Database from "better-sqlite3";
import pg from "pg";

// An application that is bound to a database, of either kind: `curl …/service_bindings/my-app | node use-database.js 'a note'` writes a
// note with the binding's credentials, and reads all notes back.

const [note = "a note"] = process.argv.slice(2);
const answer = JSON.parse(await text(process.stdin)) as {
  readonly credentials?: { readonly uri?: string; readonly file?: string };
  readonly description?: string;
};
const { uri = "", file } = answer.credentials ?? {};
if (file !== undefined) console.log(writeToSqlite(file));
else if (uri.startsWith("postgres:")) console.log(await writeToPostgres(uri));
else {
  process.stderr.write(`these are no credentials of a database: ${answer.description ?? "nothing says why"}\n`);
  process.exit(1);
}

function writeToSqlite(path: string): unknown[] {
  const database = new Database(path, { fileMustExist: true });
  database.prepare("insert into note (text) values (?)").run(note);
  return database.prepare("select id, text from note order by id").all();
}

async function writeToPostgres(url: string): Promise<unknown[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query("create table if not exists note (id serial primary key, text text not null)");
  await client.query("insert into note (text) values ($1)", [note]);
  const { rows } = await client.query("select id, text from note order by id");
  await client.end();
  return rows;
}
