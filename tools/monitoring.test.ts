import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { startOsbert } from "./osbert-program.js";
import { ask, boardQueries, metricsUsed, providePrometheus, rules, startPrometheus } from "./prometheus.js";
import { required } from "./required.js";
import { until } from "./until.js";

// The rules for Prometheus and the board for Grafana, on the figures of a real broker: a name that is wrong shows nothing, and nobody notices.

test("the rules are right, and each alert fires when it should and only then", () => {
  const programs = required("the rules for Prometheus", providePrometheus());
  if (programs === undefined) return;
  execFileSync(programs.promtool, ["check", "rules", rules]);
  const tests = rules.replace(".yml", ".test.yml");
  execFileSync(programs.promtool, ["test", "rules", tests]);
  const alerts = readFileSync(rules, "utf8").match(/(?<=alert: )\w+/g);
  const fired = readFileSync(tests, "utf8").match(/(?<=alertname=")\w+/g);
  expect(fired).toEqual(alerts);
});

test("every query of the rules and the board finds what it looks for in a broker's metrics", {
  timeout: 240_000,
}, async () => {
  const programs = required("the queries on a broker's metrics", providePrometheus());
  if (programs === undefined) return;
  const { url } = await startBroker();
  const told = await (await fetch(`${url}/metrics`, { headers: as("prometheus") })).text();
  const names = new Set(told.match(/(?<=^# TYPE )\S+/gm));
  const known = (name: string) => names.has(name) || names.has(name.replace(/_(bucket|sum|count)$/, ""));
  // Those of flows are of a broker for a cluster's events, and tested there.
  expect(metricsUsed().filter((name) => !known(name) && !name.startsWith("osbert_flow_"))).toEqual([]);

  const prometheus = await startPrometheus(programs.prometheus, url);
  // A service that always fails, and one that does not, so that every figure has something to tell.
  const notes = await offered(url, "notes");
  const asked = ["works", "fails", "works"].map((name) => ({ service_id: name, plan_id: `${name}-plan` }));
  for (const [index, ids] of [...asked, notes].entries())
    await fetch(`${url}/v2/service_instances/i${index}?accepts_incomplete=true`, {
      method: "PUT",
      body: JSON.stringify({ ...ids, organization_guid: "o", space_guid: "s" }),
      headers: { ...as("platform"), "content-type": "application/json", "x-broker-api-version": "2.17" },
    });
  for (const { title, query } of boardQueries().filter((each) => !each.query.includes("osbert_flow_"))) {
    // Counters have to be scraped twice to have a rate; what happens only once has to happen while they are.
    await until(`${title}: ${query}`, async () => {
      await fetch(`${url}/v2/catalog`, { headers: { ...as("platform"), "x-broker-api-version": "2.17" } });
      return (await ask(prometheus, "query", { query })).result.length > 0;
    });
  }
  await until("an alert for the operation that fails again and again", async () => {
    const { groups } = await ask(prometheus, "rules");
    const all: readonly { name: string; lastError?: string; alerts: readonly { labels: { service?: string } }[] }[] =
      groups[0].rules;
    expect(all.filter(({ lastError }) => lastError)).toEqual([]);
    const stuck = all.find(({ name }) => name === "OsbertOperationsStuck");
    return stuck?.alerts.some(({ labels }) => labels.service === "fails") ?? false;
  });
});

async function startBroker(): Promise<{ readonly url: string }> {
  const folder = mkdtempSync(join(tmpdir(), "osbert-monitoring-"));
  writeFileSync(join(folder, "services.ts"), services);
  writeFileSync(join(folder, "osbert.yaml"), settings);
  mkdirSync(join(folder, "bundles", "notes"), { recursive: true });
  writeFileSync(join(folder, "bundles", "notes", "osbert.yaml"), bundle);
  const { url, child } = await startOsbert(folder);
  onTestFinished(() => {
    child.kill("SIGKILL");
    rmSync(folder, { recursive: true, force: true });
  });
  return { url };
}

/** The ids of a bundle's service, as soon as it was read. */
async function offered(url: string, name: string): Promise<{ readonly service_id: string; readonly plan_id: string }> {
  const headers = { ...as("platform"), "x-broker-api-version": "2.17" };
  let found: { readonly id: string; readonly plans: readonly { readonly id: string }[] } | undefined;
  await until(`${name} in the catalog`, async () => {
    const { services: all } = (await (await fetch(`${url}/v2/catalog`, { headers })).json()) as {
      services: ({ readonly name: string } & NonNullable<typeof found>)[];
    };
    found = all.find((service) => service.name === name);
    return found !== undefined;
  });
  return { service_id: found?.id ?? "", plan_id: found?.plans[0]?.id ?? "" };
}

const services = `
const plan = (name) => ({ only: { id: name + "-plan", description: "the only one" } });
export const services = ["works", "fails"].map((name) => ({
  id: name, name, description: "a service that " + name, plans: plan(name), bindable: false,
  async provision(operation) {
    await operation.step("begin", () => "begun");
    if (name === "fails") throw new Error("the backend is away");
  },
}));
`;
const settings = `
module: services.ts
store: "memory:"
listen: { port: 0 }
credentials: [{ username: platform, password: secret }]
metrics: { enabled: true, credentials: [{ username: prometheus, password: secret }] }
log: { level: error }
bundles: { unsandboxed: true, sources: [{ name: ours, type: folder, path: bundles, interval: 10s }] }
`;

const bundle = `
osbert: 1
name: notes
version: 1.0.0
description: a bundle that does nothing
command: ["true"]
plans: { only: { description: the only one } }
`;

function as(username: string): { readonly authorization: string } {
  return { authorization: `Basic ${Buffer.from(`${username}:secret`).toString("base64")}` };
}
