import pg from "pg";

/** Where the server is, and as whom to administer it: a superuser's URL. Asked for whenever it is needed, so that it may start late. */
export type AdminUrl = () => Promise<string>;

/** Runs a statement, or several as one transaction, and answers the rows. */
export type Query = <Row extends object>(text: string, values?: readonly unknown[]) => Promise<readonly Row[]>;

/**
 * Runs `work` on a connection of its own, to one database (default: the one that the URL names). A broker needs a connection now and
 * then; a pool would keep some open all day, and would have to learn when the server is another one.
 */
export async function onServer<T>(admin: AdminUrl, work: (query: Query) => Promise<T>, database?: string): Promise<T> {
  const url = new URL(await admin());
  if (database !== undefined) url.pathname = `/${encodeURIComponent(database)}`;
  const client = new pg.Client({
    connectionString: url.href,
    application_name: "osbert",
    connectionTimeoutMillis: 10_000,
    // Nothing waits for ever: a step that takes longer is tried again later.
    statement_timeout: 60_000,
    lock_timeout: 20_000,
  });
  client.on("error", () => {}); // The statement under way, or the next one, fails and says so.
  await client.connect();
  try {
    return await work(async (text, values) => (await client.query(text, values && [...values])).rows);
  } finally {
    await client.end();
  }
}
