import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { extname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { openJournal } from "@osbert/journal";
import { sqliteStore } from "@osbert/journal/sqlite";
import { type Client, createClient } from "@osbert/protocol/client";
import { type Call, PretendCloud } from "../slow-cluster/pretend-cloud.js";
import { problemsOf, type Snapshot, stepOf } from "./problems.js";

// `npm run kill-me`: starts a broker, asks it for clusters, kills it in the middle of its work, starts it again, and so on; then shows
// what was done, how often, and whether anything is missing or was done twice. `-- --kills 30` kills more often.

const { values } = parseArgs({ options: { kills: { type: "string", default: "10" } } });
const kills = Number(values.kills);
if (!Number.isInteger(kills) || kills < 1 || kills > 1_000) {
  process.stderr.write("--kills must be a number from 1 to 1000\n");
  process.exit(1);
}

const ids = { service_id: "3e0d6b7c-91a4-4c54-8b1e-5a2f7d9c4e30", plan_id: "3e0d6b7c-91a4-4c54-8b1e-5a2f7d9c4e31" };
const folder = await mkdtemp(join(tmpdir(), "osbert-kill-me-"));
const cloud = new PretendCloud(join(folder, "cloud"));
const say = (text: string) => void process.stdout.write(`${text}\n`);

interface Cluster {
  readonly name: string;
  readonly machines: number;
}
const clusters: Cluster[] = [];
const snapshots: Snapshot[] = [];

say(`
A broker makes clusters in a pretended cloud. A cluster of 3 machines takes 7 steps and 4 waits, and one call in five fails: the cloud
does not answer, or does as it was told and its answer is lost. The broker keeps its journal in a SQLite file and does nothing else to
be safe. It will be killed with SIGKILL ${kills} times: no handler runs, nothing is flushed, nothing is said goodbye to.
`);

for (let kill = 1; kill <= kills; kill++) {
  const { child, client } = await startBroker();
  await provision(client, { name: `cluster-${kill}`, machines: 2 + (kill % 3) });
  // Anywhere: in a call, between a call and its record, in the middle of a write, during a wait.
  await sleep(150 + Math.random() * 1_200);
  await end(child, "SIGKILL");
  const snapshot = await look();
  snapshots.push(snapshot);
  say(
    `kill ${kill}: cluster-${kill} was asked for and accepted, then the broker was killed. ` +
      `The cloud was called ${snapshot.calls} times so far; ${snapshot.recorded.length} steps are recorded.`,
  );
}

say("\nThe last start: this time it is left alone.\n");
const { child, client } = await startBroker();
const states = new Map<string, string>();
await Promise.all(
  clusters.map(async ({ name }) => {
    const last = client.waitForInstance(name, { maximumPollingDuration: 60 });
    states.set(
      name,
      await last.then(
        ({ state }) => state,
        (error: Error) => `not there: ${error.message}`,
      ),
    );
  }),
);
await end(child, "SIGTERM");

snapshots.push(await look());
const calls = await cloud.calls();
for (const cluster of clusters) say(story(cluster, calls, snapshots.at(-1)?.recorded ?? []));

const problems = problemsOf({
  snapshots,
  calls,
  clusters: await Promise.all(
    clusters.map(async ({ name, machines }) => ({
      name,
      wanted: machines,
      machines: (await cloud.machines(`/${name}`)).length,
      state: states.get(name) ?? "unknown",
    })),
  ),
});
if (problems.length > 0) {
  say(`\nNOT as promised (the files are in ${folder}):\n  ${problems.join("\n  ")}`);
  process.exit(1);
}
await rm(folder, { recursive: true, force: true });
say(`
${kills} kills, ${clusters.length} clusters asked for, ${clusters.length} there, with as many machines as they should have. No step ran again after it
was recorded. Where a call was made more than once, its answer was never recorded: it failed, or the broker died between the call and
the record. That gap nobody can close; the idempotency key that every step is given makes it harmless.
`);

/** Starts the broker as a process of its own and waits until it answers. */
async function startBroker(): Promise<{ readonly child: ChildProcess; readonly client: Client }> {
  const program = new URL(`./broker${extname(import.meta.url)}`, import.meta.url);
  const child = fork(fileURLToPath(program), [folder]);
  const died = once(child, "exit").then(() => Promise.reject(new Error("the broker ended while it started")));
  const [message] = (await Promise.race([once(child, "message"), died])) as [
    { readonly url: string; readonly credential: { readonly username: string; readonly password: string } },
  ];
  died.catch(() => undefined); // From here on its end is what is wanted.
  const { url, credential } = message;
  const pace = { firstMs: 100, factor: 1.5, longestMs: 1_000 };
  return { child, client: createClient({ url, credentials: credential, pace }) };
}

async function end(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  const gone = once(child, "exit");
  child.kill(signal);
  await gone;
}

async function provision(client: Client, cluster: Cluster): Promise<void> {
  const { name, machines } = cluster;
  await client.provision(name, { ...ids, organization_guid: "o", space_guid: "s", parameters: { machines } });
  // Accepted is kept: from here on it has to be there in the end.
  clusters.push(cluster);
}

/** Reads the journal while no broker runs. It runs nothing: it was not told to start. */
async function look(): Promise<Snapshot> {
  const journal = await openJournal({ store: sqliteStore(join(folder, "broker.db")), kinds: {} });
  const recorded: string[] = [];
  for (const { name } of clusters) {
    const entries = await journal.entries(`/${name}`, { limit: 500 });
    for (const { kind, payload } of entries) {
      if (kind === "step") recorded.push(stepOf(`/${name}`, (payload as { readonly step: string }).step));
    }
  }
  await journal.stop();
  return { recorded, calls: (await cloud.calls()).length };
}

/** Every step of a cluster; of those that ran more than once, what became of each time. */
function story({ name, machines }: Cluster, all: readonly Call[], recorded: readonly string[]): string {
  const runs = new Map<string, Call["outcome"][]>();
  for (const { cluster, call, outcome } of all) {
    if (cluster === `/${name}`) runs.set(call, [...(runs.get(call) ?? []), outcome]);
  }
  const steps = [...runs].map(([call, outcomes]) =>
    outcomes.length === 1 ? call : `${call} (${outcomes.length} times: ${outcomes.join(", ")})`,
  );
  const kept = recorded.filter((step) => step.startsWith(`/${name}: `)).length;
  return `  ${name}: ${machines} machines, ${runs.size} steps, ${kept} recorded\n    ${steps.join("\n    ")}`;
}
