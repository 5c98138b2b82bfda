import { type ChildProcess, spawn } from "node:child_process";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { expect, inject, onTestFinished, test } from "vitest";
import { bundleFolder } from "./folder-services.js";

// Two machines are two folders for jobs here: neither finds what the other has started.

const patience = { timeout: 50_000 };
const description = `
osbert: 1
name: slow
version: 1.0.0
description: Its provision ends when the file go is there
command: [sh, ./run.sh]
plans:
  small:
    description: A small one
    free: true
`;

interface Machine {
  readonly data: string;
  readonly process: ChildProcess;
  readonly url: string;
}

async function startMachine(bundles: string, data: string, schema: string): Promise<Machine> {
  const fixture = fileURLToPath(new URL("bundle-broker.fixture.ts", import.meta.url));
  const program = ["--conditions=@osbert/source", "--import", "tsx", fixture];
  const args = [...program, bundles, data, inject("postgresUrl") as string, schema];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
  onTestFinished(() => void child.kill("SIGKILL"));
  for await (const url of createInterface({ input: child.stdout })) return { data, process: child, url };
  throw new Error("the broker ended before it answered");
}

async function ask({ url }: Machine, method: string, path: string, body?: object) {
  const headers = { "x-broker-api-version": "2.17", "content-type": "application/json" };
  const answer = await fetch(`${url}${path}`, { method, headers, ...(body && { body: JSON.stringify(body) }) });
  // biome-ignore lint/suspicious/noExplicitAny: tests look into bodies as they like.
  return { status: answer.status, body: (await answer.json()) as any };
}

test("a job whose machine lost its broker is neither started at another one nor called lost, and goes on when that is back", async () => {
  expect(inject("postgresUrl"), "PostgreSQL is never left out").not.toBeNull();
  const schema = `take_over_${process.pid}_${Date.now()}`;
  const [bundles, work] = [await bundleFolder(), await bundleFolder()];
  await mkdir(join(bundles, "slow"));
  await writeFile(join(bundles, "slow", "osbert.yaml"), description);
  const wait = `i=0; while [ ! -e '${work}/go' ] && [ $i -lt 900 ]; do sleep 0.1; i=$((i+1)); done`;
  await writeFile(
    join(bundles, "slow", "run.sh"),
    `case "$1" in provision) echo "$OSBERT_INPUT" >>'${work}/runs'; ${wait}; echo '{"state":{"made":"yes"}}';; esac\n`,
  );
  const runs = async () => (await readFile(join(work, "runs"), "utf8").catch(() => "")).split("\n").filter(Boolean);
  const machines = [
    await startMachine(bundles, await bundleFolder(), schema),
    await startMachine(bundles, await bundleFolder(), schema),
  ];
  const [some] = machines as [Machine];
  for (const each of machines)
    await expect.poll(async () => (await ask(each, "GET", "/v2/catalog")).status, patience).toBe(200);
  const { services } = (await ask(some, "GET", "/v2/catalog")).body;
  const ids = { service_id: services[0].id, plan_id: services[0].plans[0].id };
  const path = "/v2/service_instances/i1";
  const body = { ...ids, organization_guid: "o", space_guid: "s" };
  expect((await ask(some, "PUT", `${path}?accepts_incomplete=true`, body)).status).toBe(202);
  await expect.poll(async () => (await runs()).length, patience).toBe(1);
  const [input = ""] = await runs();
  const owner = machines.find(({ data }) => input.startsWith(data)) as Machine;
  const other = machines.find((each) => each !== owner) as Machine;
  owner.process.kill("SIGKILL");

  const last = async () => (await ask(other, "GET", `${path}/last_operation`)).body;
  await expect
    .poll(last, patience)
    .toMatchObject({ state: "in progress", description: "waits for the machine that has begun it" });
  // Its end is not seen by the other one, either.
  await writeFile(join(work, "go"), "");
  const back = await startMachine(bundles, owner.data, schema);
  await expect.poll(async () => (await last()).state, patience).toBe("succeeded");
  expect(await runs()).toEqual([input]);
  const query = new URLSearchParams(ids);
  expect((await ask(back, "DELETE", `${path}?${query}`)).status).toBe(200);
}, 120_000);
