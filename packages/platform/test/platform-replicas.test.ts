import { setTimeout as pause } from "node:timers/promises";
import pg from "pg";
import { expect, inject, onTestFinished, test, vi } from "vitest";
import { startMisbehaving } from "../src/testing/index.js";
import { catalogOf, catalogServer } from "./catalog-server.js";
import { type Crashing, checkJournal, checkReport, startCrashing } from "./crash-lab.js";
import type { CrashConfig, CrashLine, CrashReport } from "./crash-story.js";

const waiting = { timeout: 50_000, interval: 10 };
const seed = Number(process.env.OSBERT_CRASH_SEED ?? 7);

/** A schema for the replicas of one test, which goes with it. */
function sharedStore(): CrashConfig["store"] {
  const postgres = inject("postgresUrl");
  expect(postgres, "PostgreSQL is never left out").not.toBeNull();
  const schema = `platform_${process.pid}_${Date.now()}`;
  onTestFinished(async () => {
    const pool = new pg.Pool({ connectionString: postgres as string, max: 1 });
    await pool.query(`drop schema if exists ${schema} cascade`);
    await pool.end();
  });
  return { postgres: postgres as string, schema };
}

function reportOf(end: "killed" | CrashReport): CrashReport {
  if (end === "killed") throw new Error("nobody should have killed it");
  return end;
}

test("E10-20: what a platform hears late, because it stood still while another went on, is no outcome", async () => {
  const catalog = catalogOf({
    misbehaving: ["good"],
    unfetchable: ["unfetchable-good"],
    rotatable: ["rotatable-good"],
  });
  const broker = await catalogServer({ catalog });
  const config = { store: sharedStore(), url: broker.url, instances: 2 };
  // The answers to the first creates come when all is over, and say something else than those to the second ones.
  const late: (() => void)[] = [];
  let answers = "in time";
  broker.delayed = (send, { method, url = "" }) => {
    if (method === "PUT" && !url.includes("service_bindings") && late.length < config.instances) late.push(send);
    else send();
  };
  broker.reply = ({ method, path }) =>
    method === "PUT" && !path.includes("service_bindings")
      ? { status: 201, body: { dashboard_url: `http://dashboard/${encodeURIComponent(answers)}` } }
      : undefined;
  const frozen = startCrashing(config);
  await vi.waitFor(() => expect(late).toHaveLength(config.instances), waiting);
  frozen.child.kill("SIGSTOP");
  const report = reportOf(await startCrashing(config).end);
  const creates = () =>
    broker.seen.filter(({ method, path }) => method === "PUT" && /service_instances\/[^/]+$/.test(path));
  const created = creates().map(({ path }) => path);
  expect(new Set(created).size).toBe(config.instances);
  expect(report.dashboards["db-1"]).toBe("http://dashboard/in%20time");
  answers = "late";
  for (const send of late) send();
  frozen.child.kill("SIGCONT");
  const seen = broker.seen.length;
  const after = reportOf(await frozen.end);
  // What it has heard may be written down by now, and nothing else is.
  const isLate = ({ kind }: CrashLine) => kind === "answered-late";
  const journals = Object.entries(after.journals).map(
    ([name, lines]) => [name, lines.filter((line) => !isLate(line))] as const,
  );
  expect({ ...after, journals: Object.fromEntries(journals) }).toEqual(report);
  for (const [name, lines] of Object.entries(after.journals)) checkJournal(name, lines);
  // It has asked for no more than to know how things are.
  expect(broker.seen.slice(seen).filter(({ path }) => path !== "/v2/catalog")).toEqual([]);
});

test("four replicas that are killed and stand still make nothing twice, lose nothing and keep the order", {
  timeout: 120_000,
}, async () => {
  const broker = await startMisbehaving({
    credentials: { username: "platform", password: "secret" },
    chaos: { seed, rate: 0.15 },
  });
  onTestFinished(() => broker.stop());
  const config = { store: sharedStore(), url: broker.url, instances: 10 };
  const replicas: Crashing[] = [];
  // One after the other: the first one makes the tables.
  replicas.push(startCrashing(config));
  await vi.waitFor(() => expect(broker.requests().length).toBeGreaterThan(0), waiting);
  for (let more = 0; more < 3; more++) replicas.push(startCrashing(config));
  // Each time the broker has heard some more, one of them is killed and started anew, or stands still for longer than its lease.
  const thaws: Promise<void>[] = [];
  let blows = 0;
  for (let blow = 0; blow < 8; blow++) {
    const heard = broker.requests().length;
    await Promise.race([
      vi
        .waitFor(() => expect(broker.requests().length).toBeGreaterThanOrEqual(heard + 4), waiting)
        .catch(() => undefined),
      pause(1_500),
    ]);
    const at = (seed + blow) % replicas.length;
    const replica = replicas[at];
    if (replica === undefined || replica.child.exitCode !== null) continue;
    blows++;
    if (blow % 2 === 0) {
      replica.child.kill("SIGKILL");
      await replica.end;
      replicas[at] = startCrashing(config);
    } else {
      replica.child.kill("SIGSTOP");
      thaws.push(pause(2_500).then(() => void replica.child.kill("SIGCONT")));
    }
  }
  await Promise.all(thaws);
  expect(blows).toBeGreaterThanOrEqual(4);
  for (const { end } of replicas) reportOf(await end);
  broker.finishLate();
  checkReport(broker, reportOf(await startCrashing(config).end));
});
