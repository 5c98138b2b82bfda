import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, inject, onTestFinished, test } from "vitest";
import { required } from "../../../tools/required.js";
import { startRegistry } from "../../../tools/servers.js";
import { brokerFolder, bundleContent, RegistryBroker, type RegistryBrokerOptions } from "./registry-broker.js";
import { push } from "./registry-lab.js";

/** OSBERT_KILLS=50 kills and freezes more often. */
const rounds = Number(process.env.OSBERT_KILLS ?? 2);
const names = Array.from({ length: 40 }, (_, index) => `b${String(index).padStart(2, "0")}`);

/** Two brokers on one PostgreSQL and one registry, which all change at once. */
async function start() {
  const url = inject("postgresUrl");
  if (url === null) throw new Error("PostgreSQL is never left out");
  const registry = required("replicas that fight for a registry", await startRegistry({ kind: "none" }));
  if (registry === undefined) return undefined;
  onTestFinished(() => registry.stop());
  let version = 0;
  const change = async () => {
    version += 1;
    const content = (name: string) => bundleContent(name, `1.${version}.0`);
    await Promise.all(names.map((name) => push(registry.url, name, "latest", content(name))));
    return version;
  };
  await change();
  const schema = `fight_${process.pid}_${randomUUID().slice(0, 8)}`;
  const replica = async (): Promise<RegistryBroker> => {
    const options: RegistryBrokerOptions = {
      ...{ registry: registry.url, data: await brokerFolder(), postgres: { url, schema } },
      ...{ journal: { leaseMs: 2_000 }, intervalMs: 100, missing: { runs: 3, ms: 900_000 } },
    };
    return new RegistryBroker(options);
  };
  return { change, replica };
}

/** The versions that a replica offers, as numbers: `1.7.0` is 7. */
async function offered(broker: RegistryBroker): Promise<{ etag: string | null; versions: ReadonlySet<number> }> {
  const { etag, body } = await broker.ask("GET", "/v2/catalog");
  const services: { plans: { maintenance_info: { version: string } }[] }[] = body.services ?? [];
  const versions = services.map(({ plans }) => Number(plans[0]?.maintenance_info.version.split(".")[1]));
  return { etag, versions: new Set(versions) };
}

test("F5-71, F5-72, F5-75: killed or frozen in the middle of a reading, a replica is followed by the other, and comes back to change nothing", async () => {
  const lab = await start();
  if (lab === undefined) return;
  const { change, replica } = lab;
  let [one, other] = await Promise.all([replica(), replica()]);
  const shows = (broker: RegistryBroker, version: number) =>
    expect.poll(async () => [...(await offered(broker)).versions], { timeout: 60_000 }).toEqual([version]);
  await Promise.all([one, other].map((each) => shows(each, 1)));
  for (let round = 0; round < 2 * rounds; round++) {
    // Whoever reads next, at a random instant of it.
    const reads = (broker: RegistryBroker) => broker.says("reading ", broker.lines.length).then(() => broker);
    const reader: RegistryBroker = await Promise.race([reads(one), reads(other)]);
    const follower: RegistryBroker = reader === one ? other : one;
    await sleep(Math.random() * 40);
    const isFrozen = round % 2 === 0;
    reader.process.kill(isFrozen ? "SIGSTOP" : "SIGKILL");
    const version = await change();
    await shows(follower, version);
    if (isFrozen) reader.process.kill("SIGCONT");
    else {
      await reader.ended;
      [one, other] = [follower, await replica()];
    }
    // What the one that stood still had read is older than what is stored by now: nobody ever sees it.
    const next = change();
    for (let isThere = false; !isThere; ) {
      const { versions } = await offered(follower);
      expect(Math.min(...versions)).toBeGreaterThanOrEqual(version);
      isThere = versions.size === 1 && versions.has(version + 1);
      await sleep(20);
    }
    await next;
    await Promise.all([one, other].map((each) => shows(each, version + 1)));
    const [mine, theirs] = await Promise.all([offered(one), offered(other)]);
    expect(mine.etag).toBe(theirs.etag);
  }
}, 600_000);
