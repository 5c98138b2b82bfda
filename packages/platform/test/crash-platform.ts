import { setTimeout as pause } from "node:timers/promises";
import { type CrashPoint, JournalError, type Resource, type Store } from "@osbert/journal";
import { postgresStore } from "@osbert/journal/postgres";
import { sqliteStore } from "@osbert/journal/sqlite";
import pg from "pg";
import { PlatformError } from "../src/errors.js";
import { openPlatform } from "../src/queue/open-platform.js";
import { instances } from "../src/records/instance-record.js";
import { keys } from "../src/records/keys.js";
import { orphanRecords } from "../src/records/orphan-record.js";
import type { CrashConfig, CrashLine, CrashReport } from "./crash-story.js";
import { shortPauses } from "./short-pauses.js";

// A platform as a process of its own: `crash-platform.ts <config>`. It asks for everything with idempotency keys, each time that
// it is started, so that whoever starts it again need not know how far it came. It dies where it is told to, or tells at the end what it knows.

const config = JSON.parse(process.argv[2] ?? "{}") as CrashConfig;
const seen = new Map<CrashPoint, number>();
const reached = (point: CrashPoint) => {
  const count = (seen.get(point) ?? 0) + 1;
  seen.set(point, count);
  if (config.dieAt?.point === point && config.dieAt.count === count) process.kill(process.pid, "SIGKILL");
};

const platform = await openPlatform({
  store: openStore(),
  // Longer than the broker's chaos is late.
  pauses: { ...shortPauses, lateMs: 1_500 },
  leaseMs: 1_000,
  reached,
});

function openStore(): Store {
  const { store } = config;
  if ("file" in store) return sqliteStore(store.file);
  return postgresStore(new pg.Pool({ connectionString: store.postgres, max: 6 }), { schema: store.schema });
}

const operator = { by: { actor: { type: "operator", subject: "olga" } } } as const;
await platform.start();
await platform.brokers
  .register(
    "broker",
    { url: config.url, authentication: { kind: "basic", username: "platform", password: "secret" } },
    operator,
  )
  .catch((error: unknown) => {
    if (!(error instanceof PlatformError && error.code === "exists")) throw error;
  });

for (let look = 0; look < 100 && platform.brokers.offerings("broker").length === 0; look++) {
  await platform.brokers.relist("broker", operator);
  await pause(20);
}
await Promise.all(Array.from({ length: config.instances }, (_, number) => play(number)));
await comeToRest();
process.stdout.write(`${JSON.stringify(await report())}\n`, () => process.exit(0));

/** One instance's life. What is refused because of how an earlier intent ended has had its outcome. */
async function play(number: number): Promise<void> {
  const ref = { space: "dev", name: `db-${number}` };
  const by = (step: string) => ({
    by: { actor: { type: "user", subject: number % 2 === 0 ? "anna" : "ben" } } as const,
    identity: { user: number % 2 === 0 ? "anna" : "ben" },
    idempotencyKey: `${step}-${number}`,
  });
  const ask = async (work: () => Promise<unknown>) => {
    for (;;) {
      try {
        return await work();
      } catch (error) {
        if (error instanceof PlatformError) return undefined;
        // Others ask for the same at the same time, and the store may be waited for: it is asked for again, with the same key.
        if (!(error instanceof JournalError) || error.code === "stopped") throw error;
        await pause(20);
      }
    }
  };
  const isRotated = number % 4 === 1;
  const offering = isRotated ? "rotatable" : number % 3 === 0 ? "unfetchable" : "misbehaving";
  const plan = offering === "misbehaving" ? "good" : `${offering}-good`;
  await ask(() =>
    platform.instances.create(ref, { broker: "broker", offering, plan, parameters: '{"size":1}' }, by("create")),
  );
  await ask(() => platform.instances.update(ref, { parameters: '{"size":2}' }, by("update")));
  await ask(() => platform.instances.bind(ref, { name: "app" }, by("bind")));
  await ask(() => platform.instances.bind(ref, { name: "web" }, by("bind-web")));
  await ask(() => platform.instances.unbind(ref, "web", by("unbind")));
  if (number % 4 === 0) await ask(() => platform.instances.delete(ref, { mode: "drain", cascade: true }, by("delete")));
  // As soon as it is bound: whoever is started again asks again.
  if (isRotated) await ask(() => platform.instances.rotate(ref, "app", "app-2", by("rotate")));
  // It goes before all that waits, while the create is under way.
  if (number % 4 === 2) await ask(() => platform.instances.delete(ref, { cascade: true }, by("delete")));
}

async function comeToRest(): Promise<void> {
  let busy: readonly Resource[] = [];
  for (let look = 0; look < 1_500; look++) {
    const { items } = await platform.journal.withWork({ limit: 1_000 });
    // Brokers are followed for ever, and a renewal waits for its day.
    const rests = (key: string) => key.startsWith(keys.brokers) || key.startsWith(keys.rotations);
    busy = items.filter(({ key, open }) => !rests(key) && open.some(({ held }) => !held));
    if (busy.length === 0) return;
    await pause(20);
  }
  const told = busy.map(
    ({ key, open }) => `${key}: ${open.map(({ kind, state, description }) => [kind, state, description])}`,
  );
  throw new Error(`it does not come to rest: ${told.join("; ")}`);
}

async function report(): Promise<CrashReport> {
  const { journal } = platform;
  const known: string[] = [];
  const ready: string[] = [];
  for (const item of (await journal.find({ prefix: keys.instances, limit: 1_000 })).items) {
    const { data } = instances.resource(item);
    if (data.osbId === null || data.phase === "gone") continue;
    known.push(data.osbId);
    if (data.applied !== null) ready.push(data.osbId);
    for (const { value } of instances.partsUnder("binding/", await journal.parts(item.key, "binding/")).items) {
      if (value.phase === "failed") continue;
      known.push(`${data.osbId}/${value.osbId}`);
      if (value.phase === "bound") ready.push(`${data.osbId}/${value.osbId}`);
    }
  }
  const ledger = (await journal.find({ prefix: keys.orphans, limit: 1_000 })).items
    .map((row) => orphanRecords.resource(row).data)
    .filter(({ endedAt }) => endedAt === null)
    .map(({ instanceOsbId, bindingOsbId }) =>
      bindingOsbId === null ? instanceOsbId : `${instanceOsbId}/${bindingOsbId}`,
    );
  const journals: Record<string, readonly CrashLine[]> = {};
  const dashboards: Record<string, string | null> = {};
  for (let number = 0; number < config.instances; number++) {
    const name = `db-${number}`;
    const lines = await platform.instances.journal({ space: "dev", name }, { limit: 500 });
    dashboards[name] = (await platform.instances.read({ space: "dev", name }))?.dashboardUrl ?? null;
    journals[name] = lines.map(({ family, kind, operation, summary }) => ({ family, kind, operation, summary }));
  }
  return { known, ready, ledger, dashboards, journals };
}
