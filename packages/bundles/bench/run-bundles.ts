import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type BundleSpec, defaultLimits, type Job, openProcessRunner, type Runner, RunnerError } from "@osbert/bundles";
import type { LeftOut } from "../../../tools/servers.js";
import { atMost, type Figure, inTurns, median, ms, timeOf } from "./figure.js";
import { ServerProcess } from "./server-process.js";
import { specOf } from "./synthetic-source.js";

const never = new AbortController().signal;
const artifact = { kind: "files", repository: "bench", digest: `sha256:${"0".repeat(64)}` } as const;

/** What the process runner adds to a program's own time, with a sandbox and without. */
export async function runnerTime(folder: string, rounds: number): Promise<readonly (Figure | LeftOut)[]> {
  const files = join(folder, "program");
  await mkdir(files, { recursive: true });
  await writeFile(join(files, "run.sh"), `echo '{"state":{"made":"yes"}}'\n`);
  const open = (unsandboxed: boolean) =>
    openProcessRunner({ directory: join(folder, `runs-${unsandboxed}`), files: async () => files, unsandboxed });
  const alone = async () => {
    const child = spawn("/bin/sh", ["./run.sh", "provision"], { cwd: files, stdio: "ignore" });
    await once(child, "exit");
  };
  const added = async (what: string, runner: Runner, mostMs: number): Promise<Figure> => {
    const { mine, bare } = await inTurns(rounds, {
      mine: () => timeOf(() => runJob(runner)),
      bare: () => timeOf(alone),
    });
    const absolute = `${ms(mine)} against ${ms(bare)}`;
    return { what, measured: ms(mine - bare), target: `≤ ${ms(mostMs)}`, isMet: mine - bare <= mostMs, absolute };
  };
  const sandboxed = await open(false).catch((error: unknown): LeftOut => {
    if (error instanceof RunnerError) return { leftOut: `no sandbox: ${error.message}` };
    throw error;
  });
  return [
    await added("the process runner adds to a program's time, without bubblewrap", await open(true), 30),
    "leftOut" in sandboxed ? sandboxed : await added("the same with bubblewrap", sandboxed, 60),
  ];
}

async function runJob(runner: Runner): Promise<void> {
  const spec: BundleSpec = { ...specOf("bench", 0), command: ["sh", "./run.sh"] };
  const asked = { id: randomUUID(), action: "provision", operation: null, input: {} } as const;
  const job: Job = { ...asked, spec, artifact, limits: defaultLimits };
  await runner.start(job, never);
  const end = await runner.look(job.id, { waitMs: 30_000, signal: never });
  if (end.kind !== "ended" || end.exitCode !== 0) throw new Error(`the job is ${JSON.stringify(end)}`);
}

/** How long a provision of a service in code takes while so many bundles are wanted at once, against how long it takes alone. */
export async function manyAtOnce(folder: string, bundles: number, rounds: number): Promise<Figure> {
  const place = join(folder, "busy");
  await mkdir(place, { recursive: true });
  const server = new ServerProcess("busy", place);
  try {
    const url = `http://127.0.0.1:${await server.port}/v2/`;
    const headers = { "X-Broker-API-Version": "2.17", "Content-Type": "application/json" };
    const ask = (method: string, path: string, body?: object) =>
      fetch(`${url}${path}`, { method, headers, ...(body && { body: JSON.stringify(body) }) });
    const catalog = await until(async () => {
      const { services = [] } = (await (await ask("GET", "catalog")).json()) as { services?: readonly Offered[] };
      return services.length === 2 ? services : undefined;
    });
    const provision = async (name: string, query = ""): Promise<string> => {
      const service = catalog.find((each) => each.name === name);
      const ids = { service_id: service?.id, plan_id: service?.plans[0]?.id };
      const id = randomUUID();
      const answer = await ask("PUT", `service_instances/${id}${query}`, {
        ...ids,
        organization_guid: "o",
        space_guid: "s",
      });
      const text = await answer.text();
      if (answer.status >= 300) throw new Error(`provision of ${name}: ${answer.status} ${text}`);
      return id;
    };
    const inCode = async () => {
      const times: number[] = [];
      for (let index = 0; index < 30; index++) times.push(await timeOf(() => provision("in-code")));
      return median(times);
    };
    const { busy, alone } = await inTurns(rounds, {
      alone: inCode,
      busy: async () => {
        const ids = await Promise.all(
          Array.from({ length: bundles }, () => provision("slow", "?accepts_incomplete=true")),
        );
        const time = await inCode();
        for (const id of ids)
          await until(async () => {
            const { state } = (await (await ask("GET", `service_instances/${id}/last_operation`)).json()) as Polled;
            if (state === "failed") throw new Error("a bundle failed");
            return state === "succeeded" ? state : undefined;
          });
        return time;
      },
    });
    return atMost(
      `a provision in code while ${bundles} bundles wait for 8 places, against one alone`,
      busy,
      alone,
      2,
      ms,
    );
  } finally {
    server.kill();
  }
}

interface Offered {
  readonly id: string;
  readonly name: string;
  readonly plans: readonly { readonly id: string }[];
}

interface Polled {
  readonly state: string;
}

async function until<Found>(look: () => Promise<Found | undefined>): Promise<Found> {
  for (let tries = 0; tries < 1_200; tries++) {
    const found = await look();
    if (found !== undefined) return found;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error("waited in vain for a minute");
}
