import { Agent, request } from "node:http";
import {
  defaultObserveLimits,
  defaultRules,
  newSource,
  reconcile,
  type SpecRecord,
  type StoredSource,
} from "@osbert/bundles";
import { type LeftOut, startRegistry } from "../../../tools/servers.js";
import { atMost, type Figure, ms, ratioInTurns, timeOf } from "./figure.js";
import { openRegistry } from "./open-registry.js";
import { pushArtifact } from "./push-artifact.js";
import { sideBySide } from "./side-by-side.js";

const never = new AbortController().signal;
const accept = ["application/vnd.oci.image.manifest.v1+json", "application/vnd.oci.image.index.v1+json"].join(", ");

/** A reading of a real registry in which nothing has changed, from the list to the decision, against a bare HEAD for each of its repositories. */
export async function unchangedSource(repositories: number, rounds: number): Promise<Figure | LeftOut> {
  const registry = await startRegistry({ kind: "none" });
  if ("leftOut" in registry) return registry;
  try {
    const names = Array.from({ length: repositories }, (_, index) => `team/bundle-${String(index).padStart(4, "0")}`);
    const { concurrency } = defaultObserveLimits;
    await sideBySide(names, concurrency, (name) => pushArtifact(registry.url, name, description(name)));
    const source = await openRegistry(registry.url);
    const read = (stored: StoredSource, id: string) =>
      source.observe(stored, { id, signal: never, onProgress: () => undefined });
    const decide = (stored: StoredSource, observation: Awaited<ReturnType<typeof read>>) =>
      reconcile(stored, observation, {
        ...{ rules: defaultRules, now: Date.now() },
        inUse: { services: new Set(), plans: new Set() },
      });
    const empty: StoredSource = { data: newSource("hub", source.generation), specs: new Map() };
    const first = decide(empty, await read(empty, "first"));
    const specs = new Map<string, SpecRecord>();
    for (const [id, record] of first.specs) if (record !== null) specs.set(id, record);
    if (specs.size !== repositories) throw new Error(`${specs.size} of ${repositories} repositories were read`);
    const stored = { data: first.data, specs };
    const agent = new Agent({ keepAlive: true, maxSockets: concurrency });
    const reading = (round: number) =>
      timeOf(async () => {
        const change = decide(stored, await read(stored, `run-${round}`));
        if (!change.quiet) throw new Error("an unchanged source has changed something");
      });
    const bare = () =>
      timeOf(() =>
        sideBySide(names, concurrency, (name) => head(`${registry.url}/v2/${name}/manifests/latest`, agent)),
      );
    const { mine, theirs, ratio } = await ratioInTurns(2 * rounds, reading, bare);
    agent.destroy();
    const what = `reading ${repositories} unchanged repositories, against bare HEAD requests`;
    return atMost(what, mine, theirs, 1.5, ms, ratio);
  } finally {
    await registry.stop();
  }
}

function head(url: string, agent: Agent): Promise<void> {
  return new Promise((resolve, reject) => {
    const asked = request(url, { method: "HEAD", agent, headers: { accept } }, (answer) => {
      if (answer.statusCode === 200) answer.resume().once("end", resolve);
      else reject(new Error(`HEAD ${url}: ${answer.statusCode}`));
    });
    asked.once("error", reject).end();
  });
}

function description(name: string): string {
  const lines = ["osbert: 1", `name: ${name.replace("/", "-")}`, "version: 1.0.0", "description: A bundle"];
  return [...lines, "command: [sh, ./run.sh]", "plans:", "  small:", "    description: A small one", ""].join("\n");
}
