import { chownSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished } from "vitest";
import { findProgram, freePort, makeServerHome, runServer } from "./server-process.js";
import type { LeftOut } from "./servers.js";
import { until } from "./until.js";

const deploy = join(dirname(fileURLToPath(import.meta.url)), "..", "deploy");
/** The alerts. */
export const rules = join(deploy, "prometheus", "osbert.rules.yml");
const board = join(deploy, "grafana", "osbert.json");

/** The names of all metrics in the rules and on the board. */
export function metricsUsed(): readonly string[] {
  const used = `${readFileSync(rules, "utf8")}${readFileSync(board, "utf8")}`.match(/\b(osbert|nodejs|process)_\w+/g);
  return used ?? [];
}

/** The board's queries, with Grafana's variables as Grafana fills them in. */
export function boardQueries(): readonly { readonly title: string; readonly query: string }[] {
  const { panels } = JSON.parse(readFileSync(board, "utf8")) as {
    panels: { title: string; targets: { expr: string }[] }[];
  };
  const queries = panels.flatMap(({ title, targets }) =>
    targets.map(({ expr }) => ({
      title,
      query: expr.replaceAll("$__rate_interval", "1m").replaceAll("$service", ".*"),
    })),
  );
  expect(queries.length).toBeGreaterThan(15);
  return queries;
}

export function providePrometheus(): { readonly prometheus: string; readonly promtool: string } | LeftOut {
  const [prometheus, promtool] = [findProgram("prometheus"), findProgram("promtool")];
  if (prometheus === undefined || promtool === undefined)
    return { leftOut: "no prometheus and promtool found; apt-get install prometheus" };
  return { prometheus, promtool };
}

/** A Prometheus that looks at a broker every second, with the rules; until the end of the test. */
export async function startPrometheus(program: string, broker: string): Promise<string> {
  const home = makeServerHome("prometheus", ["prometheus"]);
  const config = {
    global: { scrape_interval: "1s", evaluation_interval: "1s" },
    rule_files: ["osbert.rules.yml"],
    scrape_configs: [
      {
        job_name: "osbert",
        basic_auth: { username: "prometheus", password: "secret" },
        static_configs: [{ targets: [new URL(broker).host] }],
      },
    ],
  };
  for (const [name, text] of Object.entries({
    "prometheus.yml": JSON.stringify(config),
    "osbert.rules.yml": readFileSync(rules, "utf8"),
  })) {
    writeFileSync(join(home.directory, name), text, { mode: 0o600 });
    if (home.owner !== undefined) chownSync(join(home.directory, name), home.owner.uid, home.owner.gid);
  }
  const url = `http://127.0.0.1:${await freePort()}`;
  const script = 'exec "$1" --config.file=prometheus.yml --storage.tsdb.path=data --web.listen-address="$2"';
  const server = runServer(home, script, [program, new URL(url).host], "TERM");
  onTestFinished(() => server.stop());
  await until("Prometheus to be ready", async () => (await fetch(`${url}/-/ready`)).ok);
  return url;
}

// biome-ignore lint/suspicious/noExplicitAny: an answer of Prometheus, of which each caller knows the part that it asked for.
export async function ask(prometheus: string, what: string, parameters: Record<string, string> = {}): Promise<any> {
  const response = await fetch(`${prometheus}/api/v1/${what}?${new URLSearchParams(parameters)}`);
  const { status, data, error } = (await response.json()) as { status: string; data: unknown; error?: string };
  if (status !== "success") throw new Error(`${parameters.query}: ${error}`);
  return data;
}
