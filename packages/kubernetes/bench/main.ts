import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { median, quantile } from "../../../tools/bench/statistics.js";
import { startCluster } from "../../../tools/cluster/cluster.js";
import { until } from "../../../tools/until.js";
import { Field, integrationNamespace, type Sizes } from "./field.js";
import { MeasuredProcess } from "./measured-process.js";
import type { ConditionTold, OpenOrder, Requests } from "./orders.js";

// `npm run bench:events [-- --quick] [-- --namespaces 40 --steady-minutes 6]`: what event flow costs an API server, on a cluster of its own with Knative Eventing: requests for a provision, for
// a start, for an hour without news; the way from a change to the condition; memory. The broker is a process of its own.

const minuteMs = 60_000;
const full: Sizes = { namespaces: 200, applications: 10, probes: 50, watched: 10_000, steadyMs: 15 * minuteMs };
const small: Sizes = { namespaces: 5, applications: 4, probes: 5, watched: 200, steadyMs: minuteMs };

const { values: args } = parseArgs({
  options: {
    quick: { type: "boolean", default: false },
    namespaces: { type: "string" },
    "steady-minutes": { type: "string" },
  },
});
const { quick, namespaces, "steady-minutes": steadyMinutes } = args;
const sizes: Sizes = {
  ...(quick ? small : full),
  ...(namespaces !== undefined && {
    namespaces: Number(namespaces),
    probes: Math.min(full.probes, Number(namespaces)),
  }),
  ...(steadyMinutes !== undefined && { steadyMs: Number(steadyMinutes) * minuteMs }),
};
const load = loadavg()[0] ?? 0;
const begun = performance.now();
const say = (line: string) => console.error(`${Math.round((performance.now() - begun) / 1_000)} s: ${line}`);
const rows: (readonly string[])[] = [];
const leftOut: string[] = [];

const cluster = await startCluster({ knative: true }, say);
if ("leftOut" in cluster) leftOut.push(`everything: ${cluster.leftOut}`);
else {
  const folder = await mkdtemp(join(tmpdir(), "osbert-events-bench-"));
  try {
    const field = await Field.lay(cluster.facts, cluster.kubectl, sizes);
    if (!field.hasMirrors)
      leftOut.push("EventFlows, and what they fill up the watched objects to: there is no definition of them");
    await measure(field, {
      ...{ kubeconfig: cluster.facts.kubeconfig, store: join(folder, "broker.db"), integrationNamespace },
      ...{ applications: field.applications, mirror: field.hasMirrors, atOnce: false },
    });
    field.cluster.close();
  } finally {
    await cluster.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

const head = ["event flow", "measured", "target", "", "absolute"];
for (const cells of [head, head.map(() => "---"), ...rows]) console.log(`| ${cells.join(" | ")} |`);
for (const line of leftOut) console.log(`left out: ${line}`);
const tookSeconds = Math.round((performance.now() - begun) / 1_000);
const report = {
  ...{ date: new Date().toISOString(), quick, command: "npm run bench:events", load, tookSeconds, leftOut },
  table: [head, ...rows],
};
await mkdir(".bench", { recursive: true });
await writeFile(join(".bench", "events.json"), `${JSON.stringify(report, null, 2)}\n`);

async function measure(field: Field, order: OpenOrder): Promise<void> {
  const flows = [...field.flows, ...field.probeFlows];
  const many = `${flows.length.toLocaleString("en")} flows in ${sizes.namespaces} namespaces`;

  say(`${many} are provisioned`);
  const first = new MeasuredProcess();
  await first.ask("open", order);
  await untilQuiet(first);
  const { succeeded, tookMs } = await first.ask("provision", flows);
  // What follows a provision is its cost, too: the last status of its mirror.
  const forFlows = await untilQuiet(first);
  if (succeeded < flows.length)
    throw new Error(`${flows.length - succeeded} of ${flows.length} provisions have failed`);
  const each = (forFlows.writes + forFlows.reads) / flows.length;
  const whole = `${byName(forFlows, flows.length)}; ${seconds(tookMs)} for all`;
  row("requests to the API server for a provision", count(each), 8, each, whole);
  await first.end();
  const watched = await field.fillUp();

  say("all are converged: the broker starts anew");
  const second = new MeasuredProcess();
  const startedAt = performance.now();
  await second.ask("open", order);
  await until("all namespaces to be looked at", async () => (await second.ask("looked", null)) === sizes.namespaces);
  const startMs = performance.now() - startedAt;
  const started = await untilQuiet(second);
  const ofStart = `${started.reads} reads, ${started.watches} watches; all looked at after ${seconds(startMs)}`;
  row("writes of a start with all of them converged", String(started.writes), 0, started.writes, ofStart);

  say(`${sizes.steadyMs / minuteMs} minutes without news`);
  await sleep(sizes.steadyMs);
  const steady = await second.ask("requests", null);
  const hourly = (sum(steady) * 60 * minuteMs) / sizes.steadyMs;
  const ofHour = `${steady.writes} writes, ${steady.reads} reads, ${steady.watches} watches in ${sizes.steadyMs / minuteMs} minutes`;
  row("requests in an hour without news", String(Math.round(hourly)), 200, hourly, ofHour);
  const { rssBytes, heapBytes, peakBytes } = await second.ask("memory", null);
  const ofMemory = `heap ${megabytes(heapBytes)}, most ${megabytes(peakBytes)}`;
  const what = `memory with ${many} and ${watched.toLocaleString("en")} watched objects`;
  row(what, megabytes(rssBytes), 200, rssBytes / 1e6, ofMemory, " MB");
  await second.end();

  say("channels come and go");
  const third = new MeasuredProcess();
  await third.ask("open", { ...order, atOnce: true });
  await until("all namespaces to be looked at", async () => (await third.ask("looked", null)) === sizes.namespaces);
  await untilQuiet(third);
  const tookMsEach: number[] = [];
  for (const probe of field.probes) {
    for (const isThere of [false, true]) tookMsEach.push(await reaction(field, third, probe, isThere));
  }
  const spread = `p99 ${Math.round(quantile(tookMsEach, 0.99))} ms of ${tookMsEach.length} changes`;
  const middle = median(tookMsEach);
  row("from a change of an object to the condition, median", `${Math.round(middle)} ms`, 1_000, middle, spread, " ms");
  await third.end();
}

/** From the moment when the API server has taken the change; before that, it is the API server's time. */
async function reaction(field: Field, broker: MeasuredProcess, application: string, isThere: boolean): Promise<number> {
  const wanted = isThere ? "True" : "False";
  const seen = new Promise<number>((resolve) => {
    broker.onCondition = (told: ConditionTold) => {
      if (told.application === application && told.type === "SourceReady" && told.status === wanted) resolve(told.at);
    };
  });
  const changedAt = field.setChannel(application, isThere).then(() => Date.now());
  const [toldAt, at] = await Promise.all([seen, changedAt]);
  return Math.max(0, toldAt - at);
}

/** Waits until nothing was written for a while; answers all that was asked of the API server since the last time. */
async function untilQuiet(broker: MeasuredProcess): Promise<Requests> {
  const counted: Requests[] = [];
  await until("the writes to end", async () => {
    await sleep(5_000);
    const since = await broker.ask("requests", null);
    counted.push(since);
    return counted.length > 1 && since.writes === 0;
  });
  return counted.reduce(plus);
}

function plus(one: Requests, other: Requests): Requests {
  const by = { ...one.by };
  for (const [name, many] of Object.entries(other.by)) by[name] = (by[name] ?? 0) + many;
  return {
    ...{ writes: one.writes + other.writes, reads: one.reads + other.reads, watches: one.watches + other.watches },
    by,
  };
}

function sum({ writes, reads, watches }: Requests): number {
  return writes + reads + watches;
}

function byName({ by }: Requests, flows: number): string {
  const parts = Object.entries(by)
    .filter(([name]) => !name.startsWith("WATCH"))
    .sort(([, one], [, other]) => other - one)
    .map(([name, many]) => `${count(many / flows)} ${name}`);
  return parts.join(", ");
}

function row(what: string, measured: string, most: number, value: number, absolute: string, unit = ""): void {
  const target = `≤ ${most.toLocaleString("en")}${unit}`;
  rows.push([what, measured, target, value <= most ? "pass" : "MISS", absolute]);
  say(`${what}: ${measured} (${absolute})`);
}

function count(value: number): string {
  return value.toFixed(2);
}

function megabytes(bytes: number): string {
  return `${Math.round(bytes / 1e6)} MB`;
}

function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`;
}
