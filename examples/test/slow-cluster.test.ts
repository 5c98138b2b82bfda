import { type TestBroker, testBroker } from "@osbert/broker/testing";
import { expect, onTestFinished, test } from "vitest";
import { type CloudOptions, PretendCloud } from "../src/slow-cluster/pretend-cloud.js";
import { slowCluster } from "../src/slow-cluster/slow-cluster.js";
import { newFolder } from "./program.js";

// At speed 1, on a clock that the test moves: two minutes pass in a moment.

async function start(options: CloudOptions) {
  const cloud = new PretendCloud(await newFolder(), { latencyMs: 0, ...options });
  const flow = await testBroker({ services: [slowCluster({ cloud })] });
  onTestFinished(() => flow.stop());
  return { cloud, flow };
}

/** Moves the clock whenever nothing runs, and collects what `last_operation` says meanwhile. */
async function watch(flow: TestBroker, until: (said: string) => boolean): Promise<string[]> {
  const heard: string[] = [];
  const look = async () => {
    if (flow.broker.journal.running === 0) await flow.advance(1_000);
    const { status, body } = await flow.lastOperation("c1");
    const said = status === 410 ? "gone" : `${body.state}: ${body.description ?? ""}`;
    if (heard.at(-1) !== said) heard.push(said);
    return until(said);
  };
  await expect.poll(look, { interval: 1, timeout: 30_000 }).toBe(true);
  return heard;
}

const isOver = (said: string) => !said.startsWith("in progress");

test("a cluster says how far it is, waits, and is there in the end", async () => {
  const { cloud, flow } = await start({ flakiness: 0 });
  const began = flow.clock.wallMs();
  expect((await flow.provision("c1", { parameters: { machines: 2 } })).status).toBe(202);
  const heard = await watch(flow, isOver);
  expect(heard).toContain("in progress: 40 %: the machines boot");
  expect(heard).toContain("in progress: 70 %: installing on machine 2 of 2");
  expect(heard.at(-1)).toMatch(/^succeeded/);
  expect(flow.clock.wallMs() - began).toBeGreaterThanOrEqual(50_000);
  const machines = await cloud.machines("/c1");
  expect(machines).toHaveLength(2);
  const { body } = await flow.bind("c1", "b1", { acceptsIncomplete: false });
  expect(new Set(body.credentials.machines)).toEqual(new Set(machines));
  await flow.unbind("c1", "b1", { acceptsIncomplete: false });
  expect((await flow.deprovision("c1", { acceptsIncomplete: false })).status).toBe(200);
  expect(await cloud.machines("/c1")).toEqual([]);
});

test("calls that fail are made again, and a machine whose answer was lost is not ordered twice", async () => {
  // No answer, answer lost, then well: over and over.
  const luck = [0.1, 0.3, 0.9];
  let calls = 0;
  const { cloud, flow } = await start({ flakiness: 0.4, random: () => luck[calls++ % luck.length] ?? 0 });
  await flow.provision("c1", { parameters: { machines: 2 } });
  expect((await watch(flow, isOver)).at(-1)).toMatch(/^succeeded/);
  const outcomes = (await cloud.calls()).filter(({ call }) => call === "order machine 2").map(({ outcome }) => outcome);
  expect(outcomes).toEqual(["no answer", "answer lost", "done before"]);
  expect(await cloud.machines("/c1")).toHaveLength(2);
});

test.each(["in a call", "in a wait"])("deleted %s, it stops and what was made of it goes", async (where) => {
  // Nine calls of this length leave time enough to be in the middle of one.
  const { cloud, flow } = await start({ flakiness: 0, latencyMs: where === "in a call" ? 400 : 0 });
  await flow.provision("c1", { parameters: { machines: 9 } });
  if (where === "in a call") await expect.poll(() => cloud.machines("/c1"), { timeout: 30_000 }).not.toEqual([]);
  else await watch(flow, (said) => said.includes("the machines boot"));
  expect((await flow.deprovision("c1")).status).toBe(202);
  await watch(flow, isOver);
  expect(await cloud.machines("/c1")).toEqual([]);
  expect((await cloud.calls()).filter(({ call }) => call.startsWith("install"))).toEqual([]);
  expect((await flow.fetch("c1")).status).toBe(404);
});

test("a platform that cannot wait elsewhere is refused, and so is a cluster of a hundred", async () => {
  const { flow } = await start({});
  expect(await flow.provision("c1", { acceptsIncomplete: false })).toMatchObject({
    status: 422,
    body: { error: "AsyncRequired" },
  });
  expect((await flow.provision("c1", { parameters: { machines: 100 } })).status).toBe(400);
});
