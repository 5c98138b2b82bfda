import { randomBytes } from "node:crypto";
import { mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { LeftOut } from "../servers.js";
import { prepareControlPlane } from "./control-plane.js";
import { type Holding, tryToHold } from "./holding.js";
import type { KeeperAnswer, KeeperCall } from "./keeper-calls.js";
import { prepareKnative } from "./knative.js";
import { applyArgs, kubectlOf, untilEstablished } from "./kubectl.js";
import { type ClusterNode, lackingForNode, prepareNode, removeLeftNode } from "./node.js";
import type { ClusterFacts, ClusterOptions, PartName } from "./options.js";
import type { Part } from "./part.js";
import { provideProgram } from "./programs.js";

/**
 * The program that keeps one cluster for the process that has started it, and speaks to that alone. When that ends, in whatever way, it ends
 * the cluster and takes back everything. If it is killed itself, its processes end with it, and what they leave is removed by whoever
 * starts the next cluster.
 */
const tell = (line: string) => send({ kind: "told", line });
const parts = new Map<string, Part>();
const done = new Set<keyof ClusterOptions>();
let facts: ClusterFacts | undefined;
let node: ClusterNode | undefined;
let home: Home | undefined;
let isEnding = false;
// One after the other: two that ask for the same must not both start it.
let last: Promise<unknown> = Promise.resolve();

process.on("message", (call: KeeperCall) => {
  last = last.then(async () => {
    try {
      send({ kind: "answered", id: call.id, value: await answer(call) });
    } catch (error) {
      send({ kind: "failed", id: call.id, message: error instanceof Error ? error.message : String(error) });
    }
  });
});
process.once("disconnect", () => void end());
// Ctrl-C and the like are for the process that has started this one.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => {});

async function answer(call: KeeperCall): Promise<unknown> {
  switch (call.kind) {
    case "ensure":
      return ensure(call.options);
    case "start part":
      return partOf(call.part).start();
    case "stop part":
      return partOf(call.part).stop();
    case "pause part":
      return partOf(call.part).pause();
    case "continue part":
      return partOf(call.part).continue();
    case "stop":
      return remove();
  }
}

async function ensure(options: ClusterOptions): Promise<ClusterFacts | LeftOut> {
  const lacking = options.node ? lackingForNode() : undefined;
  if (lacking !== undefined) return lacking;
  const program = await provideProgram("kubernetes", tell);
  if (typeof program !== "string") return program;
  facts ??= await startControlPlane(join(program, "kubernetes"));
  const add = async (name: keyof ClusterOptions, work: (cluster: ClusterFacts) => Promise<ClusterFacts>) => {
    if (!options[name] || done.has(name) || facts === undefined) return;
    facts = await work(facts);
    done.add(name);
  };
  await add("node", addNode);
  await add("knative", addKnative);
  await add("istio", addIstio);
  return facts;
}

async function startControlPlane(program: string): Promise<ClusterFacts> {
  await removeLeftClusters();
  home = await makeHome();
  const plane = await prepareControlPlane(home.directory, program);
  for (const part of plane.parts) await startPart(part);
  const script = `#!/bin/sh\nKUBECONFIG=\${KUBECONFIG:-${plane.facts.kubeconfig}} exec ${program} kubectl "$@"\n`;
  writeFileSync(join(home.directory, "kubectl"), script, { mode: 0o755 });
  return plane.facts;
}

async function addNode(cluster: ClusterFacts): Promise<ClusterFacts> {
  node = await prepareNode(cluster);
  for (const part of node.parts) await startPart(part);
  return { ...cluster, node: node.facts };
}

async function addKnative(cluster: ClusterFacts): Promise<ClusterFacts> {
  const program = await provideProgram("knative", tell);
  if (typeof program !== "string") throw new Error(program.leftOut);
  const knative = await prepareKnative(cluster, program);
  await Promise.all(knative.parts.map(startPart));
  return { ...cluster, knative: knative.facts };
}

async function addIstio(cluster: ClusterFacts): Promise<ClusterFacts> {
  const folder = await provideProgram("istio", tell);
  if (typeof folder !== "string") throw new Error(folder.leftOut);
  const kubectl = kubectlOf(cluster);
  await kubectl([...applyArgs, "-f", join(folder, "crds.yaml")]);
  await untilEstablished(kubectl);
  return cluster;
}

async function startPart(part: Part): Promise<void> {
  if (isEnding) throw new Error("the cluster ends");
  parts.set(part.name, part);
  await part.start();
}

function partOf(name: PartName): Part {
  const part = parts.get(name);
  if (part === undefined) throw new Error(`this cluster has no ${name}`);
  return part;
}

/** Does not wait for what it was asked before: nobody is there to want it. */
async function end(): Promise<void> {
  isEnding = true;
  try {
    await remove();
  } finally {
    process.exit();
  }
}

async function remove(): Promise<void> {
  await Promise.all([...parts.values()].map((part) => part.stop()));
  parts.clear();
  await node?.remove();
  node = undefined;
  if (home === undefined) return;
  rmSync(home.directory, { recursive: true, force: true, maxRetries: 10 });
  await home.holding.release();
  home = undefined;
}

interface Home {
  readonly directory: string;
  readonly holding: Holding;
}

const prefix = "osbert-cluster-";

/** It is held before it is there, so that nobody takes it for one that was left. */
async function makeHome(): Promise<Home> {
  const directory = join(tmpdir(), `${prefix}${randomBytes(4).toString("hex")}`);
  const holding = await tryToHold(directory);
  if (holding === undefined) throw new Error(`another process has ${directory}`);
  mkdirSync(directory, { mode: 0o700 });
  return { directory, holding };
}

/** Removes what the clusters of dead keepers have left, but for those of other users. */
async function removeLeftClusters(): Promise<void> {
  for (const name of readdirSync(tmpdir()).filter((each) => each.startsWith(prefix))) {
    const directory = join(tmpdir(), name);
    if (statSync(directory, { throwIfNoEntry: false })?.uid !== process.getuid?.()) continue;
    const holding = await tryToHold(directory);
    if (holding === undefined) continue;
    await removeLeftNode(directory);
    rmSync(directory, { recursive: true, force: true, maxRetries: 10 });
    await holding.release();
  }
}

function send(message: KeeperAnswer): void {
  if (process.connected) process.send?.(message, () => {}); // Whoever has gone needs no answer.
}
