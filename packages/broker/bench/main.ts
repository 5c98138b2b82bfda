import { randomUUID } from "node:crypto";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { fill } from "../../../tools/bench/fill.js";
import { type DurableReport, durableContests, residentTargetBytes } from "./durable-contests.js";
import { type Contest, type ContestResult, inTurns } from "./in-turns.js";
import { lifecycle } from "./lifecycle.js";
import { type Load, load, type NextRequest } from "./load.js";
import { headers, provisionBody, toRequest } from "./requests.js";
import { end, type Server, say, startServer } from "./servers.js";

// `npm run bench:broker`: the broker over HTTP, as a ratio to a ceiling measured in the same run, in turns (see in-turns.ts). Before each
// turn, what earlier ones have left to do is done, or it would be done at the cost of the other.

const quick = process.argv.includes("--quick");
/** Only what is held against a server that is as durable. */
const onlyDurable = process.argv.includes("--durable");
const rounds = quick ? 3 : 11;
const forMs = quick ? 500 : 800;
const startedAt = performance.now();
const connections = 64;
const instances = quick ? 100_000 : 1_000_000;
const known = "a-known-instance";
const made: string[] = [];
const load1m = loadavg()[0] ?? 0;

const folder = await mkdtemp(join(tmpdir(), "osbert-broker-bench-"));
const servers: Server[] = [];
try {
  const durable = await durableContests({
    folder,
    connections,
    forMs,
    rounds,
    started: (server) => servers.push(server),
  });
  for (const { process } of servers.splice(0)) process.kill("SIGKILL");
  printDurable(durable);
  if (onlyDurable) process.exit(0);
  const bare = await start("bare");
  const broker = await start("broker");
  const journal = await start("journal");
  await provisionKnown(broker);
  const lastOperation = get(`/v2/service_instances/${known}/last_operation`);

  const rows = [
    await compare("GET catalog", 0.8, broker, get("/v2/catalog"), () => ask(bare, get("/v2/catalog"))),
    await compare("GET last_operation", 0.6, broker, lastOperation, () => ask(bare, lastOperation)),
    await compare("PUT service_instances (async, durable)", 0.5, broker, provision(newId), () => askJournal(journal)),
  ];
  const lifecycles = await compareLifecycles(broker, bare);
  for (const server of [bare, journal]) await end(server);

  // The same again, with many instances in the store, against the broker with few.
  console.error(`filling a store with ${instances} instances…`);
  const filled = await start("broker", "filled.db");
  await provisionKnown(filled);
  await end(filled);
  fill(join(folder, "filled.db"), `/${known}`, instances);
  const full = await start("broker", "filled.db");
  const fills = [
    await compare("GET catalog", 0.67, full, get("/v2/catalog"), () => ask(broker, get("/v2/catalog"))),
    await compare("GET last_operation", 0.67, full, lastOperation, () => ask(broker, lastOperation)),
    await compare("GET last_operation, each of another instance", 0.67, full, lastOperationOf(copyOf), () =>
      ask(broker, lastOperationOf(provisioned)),
    ),
    await compare("PUT service_instances (async, durable)", 0.67, full, provision(randomUUID), () =>
      ask(broker, provision(randomUUID)),
    ),
  ];
  const { perSecond, statuses } = await load(
    broker.port,
    connections,
    forMs,
    get("/v2/catalog", `If-None-Match: ${await etag(broker)}\r\n`),
  );
  print("over HTTP, 64 connections", "broker", "ceiling", [...rows, lifecycles]);
  print(`with ${instances} instances in the store`, "with many", "with few", fills);
  console.log(
    `GET catalog with If-None-Match: ${Math.round(perSecond)}/s, statuses ${[...statuses.keys()].join(", ")}`,
  );
  const report = {
    date: new Date().toISOString(),
    quick,
    command: "npm run bench:broker",
    tookSeconds: Math.round((performance.now() - startedAt) / 1_000),
    load: load1m,
    rows: [...rows, lifecycles],
    instances,
    fills,
    durable,
  };
  await mkdir(".bench", { recursive: true });
  await writeFile(join(".bench", "broker.json"), `${JSON.stringify(report, null, 2)}\n`);
} finally {
  for (const { process } of servers) process.kill("SIGKILL");
  await rm(folder, { recursive: true, force: true });
}

async function provisionKnown({ port }: Server): Promise<void> {
  await load(
    port,
    1,
    1,
    provision(() => known),
  );
  const url = `http://127.0.0.1:${port}/v2/service_instances/${known}/last_operation`;
  for (let left = 1_000; left > 0; left--) {
    if (((await (await fetch(url, { headers })).json()) as { state: string }).state === "succeeded") return;
  }
  throw new Error("the instance was not provisioned");
}

async function start(kind: string, file = "broker.db"): Promise<Server> {
  const server = await startServer(kind, folder, file);
  servers.push(server);
  return server;
}

interface Row extends ContestResult {
  readonly what: string;
  /** `null`: told without being judged. */
  readonly target: number | null;
}

async function compare(
  what: string,
  target: number,
  server: Server,
  next: NextRequest,
  ceiling: Contest["ceiling"],
): Promise<Row> {
  const ours = async () => {
    await idle();
    return only200s(what, await load(server.port, connections, forMs, next)).perSecond;
  };
  return { what, target, ...(await inTurns({ ours, ceiling }, rounds)) };
}

/** Whole lives of instances, against a bare server that answers as many requests as one of them takes. */
async function compareLifecycles(broker: Server, bare: Server): Promise<Row> {
  const all = { lifecycles: 0, requests: 0 };
  const ours = async () => {
    await idle();
    const count = { lifecycles: 0, requests: 0 };
    const started = performance.now();
    await load(broker.port, connections, forMs, { each: () => lifecycle(count) });
    all.lifecycles += count.lifecycles;
    all.requests += count.requests;
    return count.requests / ((performance.now() - started) / 1_000);
  };
  const ceiling = () => ask(bare, { each: () => lifecycle({ lifecycles: 0, requests: 0 }) });
  const { oursPerSecond, ceilingPerSecond, ...result } = await inTurns({ ours, ceiling }, rounds);
  // In requests both have the same unit round by round, however many polls a life took there.
  const requests = all.requests / all.lifecycles;
  const what = `whole lifecycles (provision, bind, unbind, deprovision, each polled to its end: ${requests.toFixed(1)} requests)`;
  return {
    what,
    target: null,
    ...result,
    oursPerSecond: oursPerSecond / requests,
    ceilingPerSecond: ceilingPerSecond / requests,
  };
}

async function ask({ port }: Server, next: Parameters<typeof load>[3]): Promise<number> {
  await idle();
  return only200s("bare", await load(port, connections, forMs, next)).perSecond;
}

async function askJournal(journal: Server): Promise<number> {
  await idle();
  return Number(await say(journal, String(forMs)));
}

/** What was accepted has been carried out, everywhere. */
async function idle(): Promise<void> {
  for (const server of servers) if (server.process.exitCode === null) await say(server, "idle");
}

/** A fast error is no speed. */
function only200s(what: string, result: Load): Load {
  const bad = [...result.statuses.keys()].filter((status) => status >= 300);
  if (bad.length > 0) throw new Error(`${what} was answered with ${bad.join(", ")}`);
  return result;
}

async function etag({ port }: Server): Promise<string> {
  return (await fetch(`http://127.0.0.1:${port}/v2/catalog`, { headers })).headers.get("etag") ?? "";
}

function get(path: string, more = ""): NextRequest {
  const request = toRequest("GET", path, "", more);
  return () => request;
}

/** Another one each time, in no order: few of them are among those that were read last. */
function lastOperationOf(instance: () => string): NextRequest {
  return () => toRequest("GET", `/v2/service_instances/${instance()}/last_operation`);
}

function copyOf(): string {
  return `${known}-${Math.floor(Math.random() * instances)}`;
}

function provisioned(): string {
  return made[Math.floor(Math.random() * made.length)] ?? known;
}

/** For a new instance; the first of them are remembered. */
function newId(): string {
  const id = randomUUID();
  if (made.length < 50_000) made.push(id);
  return id;
}

function provision(id: () => string): NextRequest {
  return () => toRequest("PUT", `/v2/service_instances/${id()}?accepts_incomplete=true`, provisionBody);
}

function print(title: string, mine: string, theirs: string, rows: readonly Row[]): void {
  console.log(
    `| ${title} | ratio | half of the rounds | target | | ${mine} | ${theirs} |\n|---|---|---|---|---|---|---|`,
  );
  for (const { what, ratio, spread, target, oursPerSecond, ceilingPerSecond } of rows) {
    const judged = target === null ? ["", ""] : [`≥ ${target * 100} %`, ratio >= target ? "pass" : "MISS"];
    const cells = [what, percent(ratio), `${spread.map(percent).join(" to ")}`, ...judged];
    console.log(`| ${[...cells, `${Math.round(oursPerSecond)}/s`, `${Math.round(ceilingPerSecond)}/s`].join(" | ")} |`);
  }
  console.log();
}

function printDurable({ rows, watching, resident }: DurableReport): void {
  print("osbert serve, against bare Fastify with one durable commit a verb", "osbert", "ceiling", rows);
  print("osbert serve, against the framework without watchers", "osbert", "framework", watching);
  const megabytes = (bytes: number | null) => (bytes === null ? "unknown" : `${Math.round(bytes / 1e6)} MB`);
  console.log(
    `resident after that: ${megabytes(resident.osbert)} (target ≤ ${megabytes(residentTargetBytes)}), ceiling ${megabytes(resident.ceiling)}\n`,
  );
}

function percent(ratio: number): string {
  return `${Math.round(ratio * 100)} %`;
}
