import { randomUUID } from "node:crypto";
import Database from "better-sqlite3";
import { type FastifyInstance, type FastifyReply, fastify } from "fastify";

/**
 * The least that a durable broker can do: a Fastify server that keeps one row an instance or binding, on SQLite at `synchronous=FULL`, and answers when it is
 * committed. All that came in one turn of the loop shares a transaction. On the loop itself; whether a thread would be faster was not measured. It
 * asks nobody who they are, checks nothing, and runs no author's code.
 *
 * `commits`: 1 for each verb is the limit; 2, one after the other, is what a broker needs whose record is there before the author's code runs.
 */
export function durableFastify(path: string, commits: 1 | 2, catalog: Buffer): FastifyInstance {
  const database = new Database(path);
  database.pragma("journal_mode = wal");
  database.pragma("synchronous = full");
  database.exec("create table record (key text primary key, body text not null) without rowid");
  const put = database.prepare("insert or replace into record (key, body) values (?, ?)");
  const read = database.prepare("select body from record where key = ?").pluck();
  const commit = grouped(database, (key, body) => put.run(key, body));

  const app = fastify();
  const identified = (reply: FastifyReply) =>
    reply.header("content-type", "application/json").header("x-broker-api-request-identity", randomUUID());
  app.get("/v2/catalog", (_request, reply) => identified(reply).send(catalog));
  const last = JSON.stringify({ state: "succeeded" });
  const change =
    (status: number) => async (request: { url: string; query: unknown; body: unknown }, reply: FastifyReply) => {
      const questionMark = request.url.indexOf("?");
      const key = questionMark < 0 ? request.url : request.url.slice(0, questionMark);
      const isAsync = (request.query as { accepts_incomplete?: string }).accepts_incomplete === "true";
      const body = JSON.stringify(request.body ?? null);
      for (let made = 0; made < commits; made++) await commit(key, body);
      return identified(reply)
        .code(isAsync ? 202 : status)
        .send(isAsync ? '{"operation":"1-00000000000000000000"}' : "{}");
    };
  for (const path of ["/v2/service_instances/:instance", "/v2/service_instances/:instance/service_bindings/:binding"]) {
    app.put(path, change(201));
    app.delete(path, change(200));
    app.get(`${path}/last_operation`, (request, reply) => {
      const known = read.get(request.url.slice(0, -"/last_operation".length)) !== undefined;
      return identified(reply)
        .code(known ? 200 : 404)
        .send(last);
    });
  }
  return app;
}

/** One transaction for all that is asked for until the loop has gone round. */
function grouped(
  database: Database.Database,
  write: (key: string, body: string) => void,
): (key: string, body: string) => Promise<void> {
  let waiting: { readonly key: string; readonly body: string; readonly done: () => void }[] = [];
  const writeAll = database.transaction((all: typeof waiting) => {
    for (const { key, body } of all) write(key, body);
  });
  const flush = () => {
    const all = waiting;
    waiting = [];
    writeAll(all);
    for (const { done } of all) done();
  };
  return (key, body) =>
    new Promise((done) => {
      if (waiting.length === 0) setImmediate(flush);
      waiting.push({ key, body, done });
    });
}
