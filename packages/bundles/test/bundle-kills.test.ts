import { type ChildProcess, spawn } from "node:child_process";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";

const kills = 10;
const description = `
osbert: 1
name: slow
version: 1.0.0
description: Takes its time, and writes down that it ran
bindable: true
command: [sh, ./run.sh]
plans:
  small:
    description: A small one
`;

/** Each run of an action leaves a line, before and after its work. */
function script(witness: string): string {
  return `id=$(sed 's/.*"instance":{"id":"\\([^"]*\\)".*/\\1/' "$OSBERT_INPUT")
echo "$1 $id begins" >>'${witness}'
echo '{"state":{"made":"yes"}}'
sleep 0.3
echo "$1 $id ends" >>'${witness}'
[ "$1" = bind ] && echo '{"credentials":{"user":"u"}}'
exit 0
`;
}

interface Running {
  readonly process: ChildProcess;
  readonly url: string;
}

async function startBroker(bundles: string, data: string): Promise<Running> {
  const fixture = fileURLToPath(new URL("bundle-broker.fixture.ts", import.meta.url));
  const args = ["--conditions=@osbert/source", "--import", "tsx", fixture, bundles, data];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
  onTestFinished(() => void child.kill("SIGKILL"));
  for await (const url of createInterface({ input: child.stdout })) return { process: child, url };
  throw new Error("the broker ended before it answered");
}

async function killed({ process: child }: Running): Promise<void> {
  const ended = new Promise((resolve) => child.once("exit", resolve));
  child.kill("SIGKILL");
  await ended;
}

async function ask({ url }: Running, method: string, path: string, body?: object) {
  const headers = { "content-type": "application/json", "x-broker-api-version": "2.17" };
  const answer = await fetch(`${url}${path}`, { method, headers, ...(body && { body: JSON.stringify(body) }) });
  return { status: answer.status, body: JSON.parse((await answer.text()) || "{}") };
}

test("a broker that is killed at random instants runs each action of a bundle exactly once", async () => {
  const root = await mkdtemp(join(tmpdir(), "osbert-kills-"));
  onTestFinished(() => rm(root, { recursive: true, force: true }));
  const [bundles, data, witness] = [join(root, "bundles"), join(root, "data"), join(root, "witness")];
  await mkdir(join(bundles, "slow"), { recursive: true });
  await mkdir(data);
  await writeFile(join(bundles, "slow", "osbert.yaml"), description);
  await writeFile(join(bundles, "slow", "run.sh"), script(witness));
  let broker = await startBroker(bundles, data);
  await expect.poll(async () => (await ask(broker, "GET", "/v2/catalog")).status, { timeout: 20_000 }).toBe(200);
  const { services } = (await ask(broker, "GET", "/v2/catalog")).body;
  const ids = { service_id: services[0].id, plan_id: services[0].plans[0].id };
  const accepted = new Set<string>();
  for (let round = 0; round < kills; round++) {
    const path = `/v2/service_instances/i${round}`;
    const asked = { ...ids, organization_guid: "o", space_guid: "s" };
    const { status } = await ask(broker, "PUT", `${path}?accepts_incomplete=true`, asked);
    expect(status).toBe(202);
    accepted.add(`i${round}`);
    // From before the job is started until after it has ended.
    await sleep(Math.random() * 600);
    await killed(broker);
    broker = await startBroker(bundles, data);
    expect((await ask(broker, "GET", "/v2/catalog")).status, "the stored catalog is served at once").toBe(200);
  }
  for (const instance of accepted) {
    const state = async () => (await ask(broker, "GET", `/v2/service_instances/${instance}/last_operation`)).body.state;
    await expect.poll(state, { timeout: 30_000 }).toBe("succeeded");
  }
  const lines = (await readFile(witness, "utf8")).trim().split("\n").sort();
  const expected = [...accepted].flatMap((id) => [`provision ${id} begins`, `provision ${id} ends`]).sort();
  expect(lines).toEqual(expected);
}, 240_000);
