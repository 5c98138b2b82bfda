import { type ChildProcess, execFile, execFileSync, spawn } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { beforeAll, describe, expect, test } from "vitest";
import { required } from "../required.js";
import type { LeftOut } from "../servers.js";
import { until } from "../until.js";
import { type Cluster, startCluster } from "./cluster.js";
import { type EventSink, sendToBroker, sendToChannel, startSink } from "./events.js";
import { apply } from "./kubectl.js";
import type { KnativeFacts } from "./options.js";
import { clusterTimeoutMs, freshNamespace, sharedCluster, type TestCluster } from "./test-cluster.js";

const run = promisify(execFile);
const event = (id: string, type: string) => ({ id, type, source: "/tests", data: { order: id } });

describe("the cluster that tests share", () => {
  let cluster: TestCluster | undefined;
  beforeAll(async () => {
    cluster = required("tests of a Kubernetes cluster", await sharedCluster());
  }, clusterTimeoutMs);

  test("answers, and says its version", async () => {
    if (cluster === undefined) return;
    const version = JSON.parse(await cluster.kubectl(["version", "-o", "json"]));
    expect(version.serverVersion.gitVersion).toBe("v1.34.4");
  });

  test("gives a namespace of its own to each test, with an account for pods", async () => {
    if (cluster === undefined) return;
    const namespace = await makeNamespace(cluster);
    await cluster.kubectl(["wait", "-n", namespace, "--for=create", "serviceaccount/default", "--timeout=60s"]);
  });

  test("lets a plain user do what RBAC allows, and nothing else", async () => {
    if (cluster === undefined) return;
    const namespace = await makeNamespace(cluster);
    const asPlain = ["--kubeconfig", cluster.facts.plainKubeconfig, "-n", namespace, "get", "secrets"];
    await expect(cluster.kubectl(asPlain)).rejects.toThrow(/Forbidden/);
    await cluster.kubectl(["create", "rolebinding", "plain", "-n", namespace, "--clusterrole=admin", "--user=plain"]);
    await until("the rights of the plain user", async () => (await cluster?.kubectl(asPlain)) !== undefined);
  });
});

describe("a node", () => {
  let cluster: TestCluster | undefined;
  beforeAll(async () => {
    cluster = required("tests of a Kubernetes node", await sharedCluster({ node: true }));
  }, clusterTimeoutMs);

  test("runs a Job to its end, and its log can be read", async () => {
    if (cluster?.facts.node === undefined) return;
    const namespace = await makeNamespace(cluster);
    const container = {
      name: "main",
      image: cluster.facts.node.busyboxImage,
      command: ["sh", "-c", 'echo "hello from $(hostname)"; cat /data/word'],
      volumeMounts: [{ name: "data", mountPath: "/data" }],
    };
    const volume = { name: "data", secret: { secretName: "words" } };
    await cluster.kubectl(["create", "secret", "generic", "words", "-n", namespace, "--from-literal=word=secret-word"]);
    await apply(cluster.kubectl, [
      {
        apiVersion: "batch/v1",
        kind: "Job",
        metadata: { name: "greet", namespace },
        spec: { template: { spec: { restartPolicy: "Never", containers: [container], volumes: [volume] } } },
      },
    ]);
    await cluster.kubectl(["wait", "-n", namespace, "--for=condition=Complete", "job/greet", "--timeout=100s"]);
    const log = await cluster.kubectl(["logs", "-n", namespace, "job/greet"]);
    expect(log).toMatch(/^hello from greet-/);
    expect(log).toContain("secret-word");
  }, 120_000);
});

describe("Knative Eventing", () => {
  let cluster: TestCluster | undefined;
  beforeAll(async () => {
    cluster = required("tests of Knative Eventing", await sharedCluster({ knative: true }));
  }, clusterTimeoutMs);

  test("carries an event from a Channel through Subscription, Broker and Trigger to a sink", async () => {
    if (cluster?.facts.knative === undefined) return;
    const namespace = await makeNamespace(cluster);
    const sink = await startSink();
    try {
      await makeFlow(cluster, namespace, sink);
      const channel = { namespace, name: "orders" };
      for (const [id, type] of [
        ["1", "order.created"],
        ["2", "order.lost"],
        ["3", "order.created"],
      ] as const)
        expect(await sendToChannel(cluster.facts.knative, channel, event(id, type))).toBe(202);
      await until("both events", async () => sink.received.length >= 2);
      expect(sink.received.map(({ id }) => id).sort()).toEqual(["1", "3"]);
      expect(sink.received[0]).toMatchObject({ type: "order.created", source: "/tests", path: "/events" });
    } finally {
      await sink.stop();
    }
  });

  test("refuses by its webhook what its resources do not allow", async () => {
    if (cluster === undefined) return;
    const namespace = await makeNamespace(cluster);
    const trigger = { apiVersion: "eventing.knative.dev/v1", kind: "Trigger", metadata: { name: "bad", namespace } };
    await expect(apply(cluster.kubectl, [{ ...trigger, spec: { broker: "default" } }])).rejects.toThrow(
      /validation\.webhook\.eventing\.knative\.dev/,
    );
  });
});

describe("Istio's resources", () => {
  let cluster: TestCluster | undefined;
  beforeAll(async () => {
    cluster = required("tests of Istio's resources", await sharedCluster({ istio: true }));
  }, clusterTimeoutMs);

  test("are judged by the rules of their definitions; nothing here enforces a policy", async () => {
    if (cluster === undefined) return;
    const namespace = await makeNamespace(cluster);
    const policy = (name: string, mode: string) => ({
      apiVersion: "security.istio.io/v1",
      kind: "PeerAuthentication",
      metadata: { name, namespace },
      spec: { selector: { matchLabels: { app: "a" } }, mtls: { mode } },
    });
    await apply(cluster.kubectl, [policy("strict", "STRICT")]);
    await expect(apply(cluster.kubectl, [policy("wrong", "SOMETIMES")])).rejects.toThrow(/Unsupported value/);
    // The second is a rule of CEL.
    const withoutSelector = { ...policy("ports", "STRICT"), spec: { portLevelMtls: { "8080": { mode: "STRICT" } } } };
    await expect(apply(cluster.kubectl, [withoutSelector])).rejects.toThrow(/portLevelMtls requires selector/);
  });
});

describe("a cluster of one's own", () => {
  test(
    "can be broken part by part, and mended",
    async () => {
      const cluster = required("tests that break Knative Eventing", await startCluster({ knative: true }, console.log));
      if (cluster?.facts.knative === undefined) return;
      const sink = await startSink();
      try {
        await breakAndMend(cluster, cluster.facts.knative, sink);
      } finally {
        await sink.stop();
        await cluster.stop();
      }
      expect(existsSync(cluster.facts.directory)).toBe(false);
    },
    clusterTimeoutMs,
  );

  test(
    "leaves nothing when its starter is killed",
    async () => {
      const started = required("tests of a killed starter", await startInProcess());
      if (started === undefined) return;
      started.starter.kill("SIGKILL");
      await until("the end of all processes", async () => processesOf(started.directory).length === 0);
      await until("the end of the directory", async () => !existsSync(started.directory));
      expectNoTraces(started);
    },
    clusterTimeoutMs,
  );

  test(
    "ends with a killed keeper, and the next one removes what that has left",
    async () => {
      const started = required("tests of a killed keeper", await startInProcess());
      if (started === undefined) return;
      process.kill(keeperOf(started.starter), "SIGKILL");
      await until("the end of all processes", async () => processesOf(started.directory).length === 0);
      const next = required("tests of a killed keeper", await startCluster({}));
      await until("the end of the directory", async () => !existsSync(started.directory));
      expectNoTraces(started);
      await next?.stop();
    },
    clusterTimeoutMs,
  );
});

async function makeNamespace(cluster: TestCluster): Promise<string> {
  const namespace = freshNamespace();
  await cluster.kubectl(["create", "namespace", namespace]);
  return namespace;
}

/** orders (Channel) → default (Broker) → those of type order.created → sink. */
async function makeFlow({ kubectl }: TestCluster, namespace: string, sink: EventSink): Promise<void> {
  const resource = (kind: string, group: string, name: string, spec?: object) => ({
    apiVersion: `${group}.knative.dev/v1`,
    kind,
    metadata: { name, namespace },
    ...(spec === undefined ? {} : { spec }),
  });
  const broker = { apiVersion: "eventing.knative.dev/v1", kind: "Broker", name: "default" };
  await apply(kubectl, [
    sink.service({ namespace, name: "sink" }),
    resource("Channel", "messaging", "orders"),
    resource("Broker", "eventing", "default"),
    resource("Subscription", "messaging", "orders", {
      channel: { apiVersion: "messaging.knative.dev/v1", kind: "Channel", name: "orders" },
      subscriber: { ref: broker },
    }),
    resource("Trigger", "eventing", "created", {
      broker: "default",
      filter: { attributes: { type: "order.created" } },
      subscriber: { ref: { apiVersion: "v1", kind: "Service", name: "sink" }, uri: "/events" },
    }),
  ]);
  const all = ["channel/orders", "broker/default", "subscription/orders", "trigger/created"];
  await kubectl(["wait", "-n", namespace, "--for=condition=Ready", ...all, "--timeout=60s"]);
}

async function breakAndMend(cluster: Cluster, knative: KnativeFacts, sink: EventSink): Promise<void> {
  const namespace = await makeNamespace(cluster);
  await makeFlow(cluster, namespace, sink);
  const broker = { namespace, name: "default" };
  const arrived = (id: string) => until(`event ${id}`, async () => sink.received.some((each) => each.id === id));
  expect(await sendToBroker(knative, broker, event("before", "order.created"))).toBe(202);
  await arrived("before");

  await cluster.stopPart("knative-data");
  await expect(sendToBroker(knative, broker, event("lost", "order.created"))).rejects.toThrow("ECONNREFUSED");
  await cluster.startPart("knative-data");
  await until("the broker's return", async () => {
    return (await sendToBroker(knative, broker, event("after", "order.created"))) === 202;
  });
  await arrived("after");

  await cluster.stopPart("knative-control");
  const channel = { apiVersion: "messaging.knative.dev/v1", kind: "Channel", metadata: { name: "late", namespace } };
  await expect(apply(cluster.kubectl, [channel])).rejects.toThrow(/failed calling webhook/);
  expect(await sendToBroker(knative, broker, event("without control", "order.created"))).toBe(202);
  await arrived("without control");
  await cluster.startPart("knative-control");
  await apply(cluster.kubectl, [channel]);

  await cluster.pausePart("apiserver");
  await expect(cluster.kubectl(["get", "namespaces", "--request-timeout=1s"])).rejects.toThrow(/imeout|deadline/);
  await cluster.continuePart("apiserver");
  await until("the API server's return", async () => (await cluster.kubectl(["get", "namespaces"])) !== "");

  await cluster.stopPart("apiserver");
  await expect(cluster.kubectl(["get", "namespaces"])).rejects.toThrow(/refused/);
  await cluster.startPart("apiserver");
  expect(await cluster.kubectl(["get", "namespaces"])).toContain(namespace);
}

/** A cluster whose starter is a process of its own, with a pod that runs if this machine can have a node. */
interface StartedInProcess {
  readonly starter: ChildProcess;
  readonly directory: string;
  /** The address of its node. */
  readonly ip: string | undefined;
}

async function startInProcess(): Promise<StartedInProcess | LeftOut> {
  const hasNode = process.getuid?.() === 0;
  const main = fileURLToPath(new URL("main.ts", import.meta.url));
  const args = ["--import", "tsx", main, hasNode ? "--node" : "--bare"];
  const starter = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "pipe"] });
  const complaints = text(starter.stderr);
  let directory: string | undefined;
  for await (const line of createInterface(starter.stdout)) {
    directory ??= /^export KUBECONFIG=(.*)\/kubeconfig$/.exec(line)?.[1];
    const image = / an image to run: (.*)$/.exec(line)?.[1];
    if (image !== undefined && directory !== undefined) await runPod(directory, image);
    if (line.startsWith("Ctrl-C")) break;
  }
  if (directory === undefined) return { leftOut: (await complaints).trim() };
  expect(processesOf(directory).length).toBeGreaterThanOrEqual(hasNode ? 6 : 4);
  return { starter, directory, ip: hasNode ? nodeIpOf(directory) : undefined };
}

async function runPod(directory: string, image: string): Promise<void> {
  const kubectl = (...args: readonly string[]) => run(join(directory, "kubectl"), args);
  await kubectl("run", "pod", `--image=${image}`);
  await kubectl("wait", "--for=condition=Ready", "pod/pod", "--timeout=60s");
}

/** The starter has no other child. */
function keeperOf({ pid }: ChildProcess): number {
  return Number(readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim());
}

function expectNoTraces({ directory, ip }: StartedInProcess): void {
  expect(readFileSync("/proc/mounts", "utf8")).not.toContain(directory);
  if (ip === undefined) return;
  expect(execFileSync("ip", ["-4", "addr"], { encoding: "utf8" })).not.toContain(`${ip}/`);
}

/** Those whose command line names the folder. */
function processesOf(directory: string): readonly string[] {
  return readdirSync("/proc").filter((pid) => {
    try {
      return /^\d+$/.test(pid) && readFileSync(`/proc/${pid}/cmdline`, "utf8").includes(directory);
    } catch {
      return false; // It has ended meanwhile.
    }
  });
}

function nodeIpOf(directory: string): string {
  const kubelet = JSON.parse(readFileSync(join(directory, "node", "config", "kubelet.json"), "utf8"));
  return kubelet.address;
}
