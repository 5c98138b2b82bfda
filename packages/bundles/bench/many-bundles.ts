import { mkdir, writeFile } from "node:fs/promises";
import { Agent, request } from "node:http";
import { join } from "node:path";
import { atMost, type Figure, inTurns, kilobytes, median, megabytes, ms, perSecond, ratioInTurns } from "./figure.js";
import { ServerProcess } from "./server-process.js";

const startWithinMs = 2_000;
export const residentBytes = 300_000_000;
const connections = 8;

/** What `server.ts` answers to a change. */
interface Changed extends Memory {
  readonly tookMs: number;
  readonly writtenBytes: number;
}

export interface Memory {
  readonly rssBytes: number;
  readonly peakBytes: number;
}

/** A broker of so many bundles: its start, its catalog, one bundle that changes, its memory. */
export async function manyBundles(
  folder: string,
  { many, few, rounds, forMs }: { many: number; few: number; rounds: number; forMs: number },
): Promise<readonly Figure[]> {
  const servers: ServerProcess[] = [];
  const start = async (...args: readonly string[]) => {
    const server = new ServerProcess(...args);
    servers.push(server);
    await server.port;
    return server;
  };
  const broker = async (count: number) => {
    const place = join(folder, String(count));
    await mkdir(place, { recursive: true });
    return start("bundles", place, String(count));
  };
  try {
    const filling = await broker(many);
    const bytes = await catalogOf(filling, many);
    await filling.end();
    await writeFile(join(folder, "catalog.json"), bytes);
    const starts: number[] = [];
    for (let round = 0; round <= rounds; round++) {
      const begun = performance.now();
      const started = await broker(many);
      starts.push(performance.now() - begun);
      await started.end();
    }
    const [large, small] = [await broker(many), await broker(few)];
    await Promise.all([catalogOf(large, many), catalogOf(small, few)]);
    const written = { large: [] as number[], small: [] as number[] };
    let changed: Changed | undefined;
    const change = (server: ServerProcess, bytesOf: number[]) => async (round: number) => {
      const told: Changed = JSON.parse(await server.ask(String(round + 1)));
      if (server === large) changed = told;
      bytesOf.push(told.writtenBytes);
      return told.tookMs;
    };
    const changes = await ratioInTurns(2 * rounds, change(large, written.large), change(small, written.small));
    const bare = await start("bare", join(folder, "catalog.json"));
    const agent = new Agent({ keepAlive: true, maxSockets: connections });
    const load = async (server: ServerProcess) => catalogsPerSecond(await server.port, agent, forMs);
    const catalogs = await inTurns(rounds, { mine: () => load(large), bare: () => load(bare) });
    agent.destroy();
    const { rssBytes, peakBytes } = await atRest(large);
    const mostBytes = changed?.peakBytes ?? Number.NaN;
    const startMs = median(starts.slice(1));
    const share = catalogs.mine / catalogs.bare;
    const count = many.toLocaleString("en");
    return [
      {
        what: `GET catalog of ${count} bundles (${megabytes(bytes.length)}), against bare Fastify with the same bytes`,
        ...{ measured: `${Math.round(100 * share)} %`, target: "≥ 80 %", isMet: share >= 0.8 },
        absolute: `${perSecond(catalogs.mine)} against ${perSecond(catalogs.bare)}`,
      },
      atMost(
        `one bundle of ${count} changes, from the end of the reading to the new catalog, against one of ${few}`,
        ...([changes.mine, changes.theirs, mostTimes, ms, changes.ratio] as const),
      ),
      atMost(
        "the bytes that are written for it",
        ...([median(written.large), median(written.small), 1.5, kilobytes] as const),
      ),
      {
        what: `start with ${count} bundles in the store, Node.js included`,
        ...{ measured: ms(startMs), target: `< ${ms(startWithinMs)}`, isMet: startMs < startWithinMs, absolute: "" },
      },
      {
        what: `resident memory with ${count} bundles, at most, while bundles change`,
        ...{
          measured: megabytes(mostBytes),
          target: `< ${megabytes(residentBytes)}`,
          isMet: mostBytes < residentBytes,
        },
        absolute: `at rest after all this ${megabytes(rssBytes)}, at most ${megabytes(peakBytes)} while catalogs were asked for`,
      },
    ];
  } finally {
    for (const server of servers) server.kill();
  }
}

/** A thousand times as many bundles may take so many times as long: all of them are looked at, and one is written. */
const mostTimes = 10;

/** V8 gives back what is free when nothing has happened for a while. */
const restMs = 40_000;

async function atRest(server: ServerProcess): Promise<Memory> {
  await new Promise((resolve) => setTimeout(resolve, restMs));
  return JSON.parse(await server.ask("memory"));
}

/** Once all are there. */
export async function catalogOf(server: ServerProcess, count: number): Promise<Buffer> {
  const url = `http://127.0.0.1:${await server.port}/v2/catalog`;
  for (let tries = 0; tries < 2_400; tries++) {
    const answer = await fetch(url, { headers: { "X-Broker-API-Version": "2.17" } });
    const bytes = Buffer.from(await answer.arrayBuffer());
    if (answer.status === 200 && JSON.parse(bytes.toString()).services.length === count) return bytes;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error(`the catalog of ${count} bundles was not there in two minutes`);
}

async function catalogsPerSecond(port: number, agent: Agent, forMs: number): Promise<number> {
  const begun = performance.now();
  let answers = 0;
  const work = async () => {
    while (performance.now() - begun < forMs) {
      await get(port, agent);
      answers += 1;
    }
  };
  await Promise.all(Array.from({ length: connections }, work));
  return answers / ((performance.now() - begun) / 1_000);
}

function get(port: number, agent: Agent): Promise<void> {
  return new Promise((resolve, reject) => {
    const headers = { "X-Broker-API-Version": "2.17" };
    const asked = request({ port, host: "127.0.0.1", path: "/v2/catalog", agent, headers }, (answer) => {
      if (answer.statusCode === 200) answer.resume().once("end", resolve).once("error", reject);
      else reject(new Error(`GET catalog: ${answer.statusCode}`));
    });
    asked.once("error", reject).end();
  });
}
