import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { type ContestResult, inTurns } from "./in-turns.js";
import { polledLifecycle, syncLifecycle } from "./lifecycle.js";
import { load, type NextRequest } from "./load.js";
import { provisionBody, toRequest } from "./requests.js";
import { residentBytes, type Server, startOsbert, startServer } from "./servers.js";

/** What came of a contest, and what is wanted of it. */
export interface DurableRow extends ContestResult {
  readonly what: string;
  /** `null`: told without being judged. */
  readonly target: number | null;
}

export interface DurableReport {
  /** `osbert serve`, and the form with two commits a verb, against one commit a verb. */
  readonly rows: readonly DurableRow[];
  /** `osbert serve`, with metrics and a log of warnings, against the framework alone. */
  readonly watching: readonly DurableRow[];
  /** After all of it, in bytes; `null` where the system does not tell. */
  readonly resident: { readonly osbert: number | null; readonly ceiling: number | null };
}

export interface DurableOptions {
  readonly folder: string;
  readonly connections: number;
  readonly forMs: number;
  readonly rounds: number;
  /** Told of every process that was started. */
  readonly started: (server: Server) => void;
}

/** Polled every 50 milliseconds, fewer callers than these would leave every server idle. */
const pollers = 1_024;
const pollEveryMs = 50;
export const residentTargetBytes = 150_000_000;

/** `osbert serve` against a bare Fastify server that is as durable, see durable-fastify.ts. */
export async function durableContests(options: DurableOptions): Promise<DurableReport> {
  const { folder, rounds } = options;
  const begun = async (starting: Promise<Server>) => {
    const server = await starting;
    options.started(server);
    return server;
  };
  const osbert = await begun(startOsbert(join(folder, "osbert")));
  const framework = await begun(startServer("framework", folder, "framework.db"));
  const [once, twice] = [
    await begun(startServer("durable-1", folder, "")),
    await begun(startServer("durable-2", folder, "")),
  ];
  for (const server of [osbert, framework, once, twice]) await provisionOne(server);
  const compare = async (what: string, target: number | null, ours: Server, ceiling: Server, ask: Ask) => ({
    what,
    target,
    ...(await inTurns({ ours: () => ask(ours, options), ceiling: () => ask(ceiling, options) }, rounds)),
  });
  const rows = [
    await compare("GET catalog", 0.9, osbert, once, requests(get("/v2/catalog"))),
    await compare("GET last_operation", 0.65, osbert, once, requests(lastOperation)),
    await compare("provisions, synchronous", 0.45, osbert, once, requests(provision)),
    await compare("provisions, two commits a verb", null, twice, once, requests(provision)),
    await compare("lifecycles, synchronous (4 requests)", 0.4, osbert, once, lifecycles),
    await compare("lifecycles, two commits a verb", null, twice, once, lifecycles),
    await compare("lifecycles, asynchronous, polled every 50 ms", 0.5, osbert, once, polledLifecycles),
  ];
  const watching = [
    await compare("GET last_operation", 0.9, osbert, framework, requests(lastOperation)),
    await compare("provisions, synchronous", 0.9, osbert, framework, requests(provision)),
    await compare("lifecycles, synchronous (4 requests)", 0.9, osbert, framework, lifecycles),
  ];
  return { rows, watching, resident: { osbert: await residentBytes(osbert), ceiling: await residentBytes(once) } };
}

type Ask = (server: Server, options: DurableOptions) => Promise<number>;

function requests(next: NextRequest): Ask {
  return async ({ port }, { connections, forMs }) => {
    const { perSecond, statuses } = await load(port, connections, forMs, next);
    const bad = [...statuses.keys()].filter((status) => status >= 300);
    if (bad.length > 0) throw new Error(`was answered with ${bad.join(", ")}`);
    return perSecond;
  };
}

const lifecycles: Ask = async ({ port }, { connections, forMs }) =>
  countLifecycles((count) => load(port, connections, forMs, { each: () => syncLifecycle(count) }));

const polledLifecycles: Ask = async ({ port }, { forMs }) =>
  countLifecycles((count) => load(port, pollers, 4 * forMs, { each: () => polledLifecycle(count, pollEveryMs) }));

async function countLifecycles(
  run: (count: { lifecycles: number; requests: number }) => Promise<unknown>,
): Promise<number> {
  const count = { lifecycles: 0, requests: 0 };
  const started = performance.now();
  await run(count);
  return count.lifecycles / ((performance.now() - started) / 1_000);
}

const known = "a-known-instance";

async function provisionOne({ port }: Server): Promise<void> {
  await load(port, 1, 1, () => toRequest("PUT", `/v2/service_instances/${known}`, provisionBody));
}

function get(path: string): NextRequest {
  const request = toRequest("GET", path);
  return () => request;
}

const lastOperation = get(`/v2/service_instances/${known}/last_operation`);
const provision: NextRequest = () => toRequest("PUT", `/v2/service_instances/${randomUUID()}`, provisionBody);
