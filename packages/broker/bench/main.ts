import { type ChildProcess, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface, type Interface } from "node:readline";
import { fileURLToPath } from "node:url";
import { fill } from "../../../tools/bench/fill.js";
import { lifecycle } from "./lifecycle.js";
import { type Load, load, type NextRequest } from "./load.js";
import { headers, provisionBody, toRequest } from "./requests.js";

// `npm run bench:broker`: the broker over HTTP, as a ratio to a ceiling measured in the same run. Contestants take turns, round by round,
// because machines are noisy; the first round warms up, and the median of the others counts.

const quick = process.argv.includes("--quick");
const rounds = quick ? 2 : 5;
const forMs = quick ? 1_000 : 3_000;
const connections = 64;
const instances = quick ? 100_000 : 1_000_000;
const known = "a-known-instance";
const made: string[] = [];
const load1m = loadavg()[0] ?? 0;

interface Server {
  readonly process: ChildProcess;
  readonly lines: Interface;
  readonly port: number;
}

const folder = await mkdtemp(join(tmpdir(), "osbert-broker-bench-"));
const servers: Server[] = [];
try {
  const bare = await start("bare");
  const broker = await start("broker");
  const journal = await start("journal");
  await provisionKnown(broker);
  const lastOperation = get(`/v2/service_instances/${known}/last_operation`);

  const rows = [
    await compare("GET catalog", 0.8, [broker.port, get("/v2/catalog")], () => ask(bare, get("/v2/catalog"))),
    await compare("GET last_operation", 0.6, [broker.port, lastOperation], () => ask(bare, lastOperation)),
    await compare("PUT service_instances (async, durable)", 0.5, [broker.port, provision(newId)], () =>
      askJournal(journal),
    ),
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
    await compare("GET catalog", 0.67, [full.port, get("/v2/catalog")], () => ask(broker, get("/v2/catalog"))),
    await compare("GET last_operation", 0.67, [full.port, lastOperation], () => ask(broker, lastOperation)),
    await compare("GET last_operation, each of another instance", 0.67, [full.port, lastOperationOf(copyOf)], () =>
      ask(broker, lastOperationOf(provisioned)),
    ),
    await compare("PUT service_instances (async, durable)", 0.67, [full.port, provision(randomUUID)], () =>
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
    load: load1m,
    rows: [...rows, lifecycles],
    instances,
    fills,
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

async function end({ process }: Server): Promise<void> {
  process.stdin?.end();
  await once(process, "exit");
}

async function start(kind: string, file = "broker.db"): Promise<Server> {
  const program = fileURLToPath(new URL("./server.js", import.meta.url));
  const child = spawn(process.execPath, [program, kind, folder, file], { stdio: ["pipe", "pipe", "inherit"] });
  const lines = createInterface({ input: child.stdout as NonNullable<typeof child.stdout> });
  const [port] = (await once(lines, "line")) as [string];
  const server = { process: child, lines, port: Number(port) };
  servers.push(server);
  return server;
}

interface Row {
  readonly what: string;
  readonly ratio: number;
  /** `null`: told without being judged. */
  readonly target: number | null;
  readonly brokerPerSecond: number;
  readonly ceilingPerSecond: number;
}

async function compare(
  what: string,
  target: number,
  [port, next]: readonly [number, NextRequest],
  ceiling: () => Promise<number>,
): Promise<Row> {
  const mine: number[] = [];
  const theirs: number[] = [];
  for (let round = 0; round <= rounds; round++) {
    const reached = only200s(what, await load(port, connections, forMs, next)).perSecond;
    const ceilingReached = await ceiling();
    if (round === 0) continue;
    mine.push(reached);
    theirs.push(ceilingReached);
  }
  const [brokerPerSecond, ceilingPerSecond] = [median(mine), median(theirs)];
  return { what, ratio: brokerPerSecond / ceilingPerSecond, target, brokerPerSecond, ceilingPerSecond };
}

/** Whole lives of instances, against a bare server that answers as many requests as one of them takes. */
async function compareLifecycles(broker: Server, bare: Server): Promise<Row & { readonly requests: number }> {
  const mine: number[] = [];
  const theirs: number[] = [];
  let requests = 0;
  for (let round = 0; round <= rounds; round++) {
    const count = { lifecycles: 0, requests: 0 };
    const started = performance.now();
    await load(broker.port, connections, forMs, { each: () => lifecycle(count) });
    const lifecyclesPerSecond = count.lifecycles / ((performance.now() - started) / 1_000);
    requests = count.requests / count.lifecycles;
    const barePerSecond = await ask(bare, { each: () => lifecycle({ lifecycles: 0, requests: 0 }) });
    if (round === 0) continue;
    mine.push(lifecyclesPerSecond);
    theirs.push(barePerSecond / requests);
  }
  const [brokerPerSecond, ceilingPerSecond] = [median(mine), median(theirs)];
  const what = `whole lifecycles (provision, bind, unbind, deprovision, each polled to its end: ${requests.toFixed(1)} requests)`;
  return { what, ratio: brokerPerSecond / ceilingPerSecond, target: null, brokerPerSecond, ceilingPerSecond, requests };
}

async function ask({ port }: Server, next: Parameters<typeof load>[3]): Promise<number> {
  return only200s("bare", await load(port, connections, forMs, next)).perSecond;
}

async function askJournal({ process, lines }: Server): Promise<number> {
  process.stdin?.write(`${forMs}\n`);
  const [rate] = (await once(lines, "line")) as [string];
  return Number(rate);
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

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}

function print(title: string, mine: string, theirs: string, rows: readonly Row[]): void {
  console.log(`| ${title} | ratio | target | | ${mine} | ${theirs} |\n|---|---|---|---|---|---|`);
  for (const { what, ratio, target, brokerPerSecond, ceilingPerSecond } of rows) {
    const judged = target === null ? ["", ""] : [`≥ ${target * 100} %`, ratio >= target ? "pass" : "MISS"];
    const cells = [what, `${Math.round(ratio * 100)} %`, ...judged];
    console.log(
      `| ${[...cells, `${Math.round(brokerPerSecond)}/s`, `${Math.round(ceilingPerSecond)}/s`].join(" | ")} |`,
    );
  }
  console.log();
}
