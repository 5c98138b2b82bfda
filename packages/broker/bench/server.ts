import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as after } from "node:timers/promises";
import { createBroker } from "@osbert/broker";
import { serve } from "@osbert/broker/http";
import { type JournalEvent, openJournal } from "@osbert/journal";
import { sqliteStore } from "@osbert/journal/sqlite";
import { type FastifyReply, fastify } from "fastify";
import { durableFastify } from "./durable-fastify.js";
import { credentials } from "./requests.js";
import { services } from "./services.js";

// A server to be measured, in a process of its own: `server.js bare|durable-1|durable-2|broker|framework|journal <folder>
// [<name of its file>]`. Says its port, answers each line on its standard input with one, and ends with that. `idle` is answered when all that was accepted
// has been carried out.

const [kind = "bare", folder = "", file = "broker.db"] = process.argv.slice(2);

/** Operations that were accepted and have not ended. */
let open = 0;

function count({ kind }: JournalEvent): void {
  if (kind === "accepted") open++;
  else if (kind === "settled") open--;
}

async function idle(): Promise<string> {
  while (open > 0) await after(5);
  return "idle";
}

/** What else than `idle` may be asked for. */
let answer = (line: string): Promise<string> => Promise.reject(new Error(`nobody here knows what ${line} means`));

if (kind === "bare") {
  // The ceiling sends what the broker sends, head and body: what it leaves out is the work, and not the bytes.
  const broker = createBroker({ services, store: sqliteStore(join(folder, "unused.db")) });
  const { bytes, etag } = broker.catalog;
  const app = fastify();
  const identified = (reply: FastifyReply) =>
    reply.header("content-type", "application/json").header("x-broker-api-request-identity", randomUUID());
  app.get("/v2/catalog", (_request, reply) =>
    identified(reply)
      .header("etag", etag)
      .header("cache-control", "no-cache")
      .header("vary", "Authorization")
      .send(bytes),
  );
  // What a lifecycle asks for, too: an operation that has succeeded at the first poll.
  const last = JSON.stringify({ state: "succeeded" });
  const accepted = JSON.stringify({ operation: "1-00000000000000000000" });
  for (const path of ["/v2/service_instances/:instance", "/v2/service_instances/:instance/service_bindings/:binding"]) {
    app.put(path, (_request, reply) => identified(reply).code(202).send(accepted));
    app.delete(path, (_request, reply) => identified(reply).code(202).send(accepted));
    app.get(`${path}/last_operation`, (_request, reply) => identified(reply).send(last));
  }
  console.log(new URL(await app.listen({ port: 0, host: "127.0.0.1" })).port);
} else if (kind === "durable-1" || kind === "durable-2") {
  const { pieces } = createBroker({ services, store: sqliteStore(join(folder, "unused.db")) }).catalog;
  const app = durableFastify(join(folder, `${kind}.db`), kind === "durable-1" ? 1 : 2, Buffer.from(pieces.whole()));
  console.log(new URL(await app.listen({ port: 0, host: "127.0.0.1" })).port);
} else if (kind === "broker" || kind === "framework") {
  // The framework alone has nobody who watches, not even this benchmark.
  const store = sqliteStore(join(folder, file));
  const broker = createBroker({ services, store, ...(kind === "broker" && { journal: { observe: count } }) });
  const { url } = await serve(broker, {
    port: 0,
    credentials: [credentials],
    onError: (error) => console.error(error),
  });
  console.log(new URL(url).port);
} else {
  // What the journal alone accepts, with the same callers and the engine running, in the same kind of process.
  const journal = await openJournal({
    store: sqliteStore(join(folder, "journal.db")),
    kinds: { provision: { run: async () => ({}) } },
    observe: count,
  });
  await journal.start();
  const by = { actor: { type: "service-account", subject: "bench" } } as const;
  const input = { name: "abc", size: 10, context: "x".repeat(200) };
  let next = 0;
  const measure = async (forMs: number): Promise<number> => {
    const until = performance.now() + forMs;
    const started = performance.now();
    let accepted = 0;
    const decide = () => ({ result: null, change: { data: input, accept: [{ kind: "provision", input }] } });
    const call = async () => {
      while (performance.now() < until) {
        await journal.transact(`k-${Math.random()}-${next++}`, decide, { by, likelyNew: true });
        accepted++;
      }
    };
    await Promise.all(Array.from({ length: 64 }, call));
    return accepted / ((performance.now() - started) / 1_000);
  };
  answer = async (line) => String(await measure(Number(line)));
  console.log("0");
}
for await (const line of createInterface({ input: process.stdin })) {
  console.log(await (line === "idle" ? idle() : answer(line)));
}
process.exit(0);
