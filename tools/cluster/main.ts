import { parseArgs } from "node:util";
import { startCluster } from "./cluster.js";
import type { ClusterFacts, ClusterOptions } from "./options.js";
import { provideProgram } from "./programs.js";

const help = `usage: npm run cluster -- [--node] [--knative] [--istio] [--bare]
       npm run cluster -- --build

Starts a Kubernetes cluster on this machine, on free ports of the loopback interface, and keeps it until Ctrl-C. Its programs are built
from their Go modules at the first time, which takes ten minutes or so, and are kept in OSBERT_CACHE (default: XDG_CACHE_HOME, ~/.cache).

  --node     with a node that runs pods (kubelet, containerd); for root alone
  --knative  with Knative Eventing
  --istio    with Istio's resources; nothing enforces them
  --bare     with none of these; without any of the four, with all that this machine can have
  --build    builds what is not in the cache, and starts nothing
  --help     this text`;

const { values: args } = parseArgs({
  options: {
    node: { type: "boolean", default: false },
    knative: { type: "boolean", default: false },
    istio: { type: "boolean", default: false },
    bare: { type: "boolean", default: false },
    build: { type: "boolean", default: false },
    help: { type: "boolean", default: false },
  },
});

if (args.help) console.log(help);
else process.exitCode = await (args.build ? build() : keep());

async function build(): Promise<number> {
  for (const name of ["kubernetes", "knative", "istio", "helm"] as const) {
    const folder = await provideProgram(name, console.log);
    if (typeof folder !== "string") {
      console.error(folder.leftOut);
      return 1;
    }
    console.log(folder);
  }
  return 0;
}

async function keep(): Promise<number> {
  const startedAtMs = performance.now();
  const stopped = new Promise<"stopped">((resolve) => {
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.once(signal, () => resolve("stopped"));
  });
  const isAll = !args.node && !args.knative && !args.istio && !args.bare;
  const asked: ClusterOptions = isAll ? { node: true, knative: true, istio: true } : args;
  let cluster = await startCluster(asked, console.log);
  if (isAll && "leftOut" in cluster) {
    const without = cluster.leftOut;
    cluster = await startCluster({ ...asked, node: false }, console.log);
    if (!("leftOut" in cluster)) console.log(`without a node: ${without}`);
  }
  if ("leftOut" in cluster) {
    console.error(`no cluster: ${cluster.leftOut}`);
    return 1;
  }
  console.log(`ready after ${((performance.now() - startedAtMs) / 1000).toFixed(1)} s\n${guide(cluster.facts)}`);
  // Nothing else keeps this process.
  const alive = setInterval(() => {}, 60_000);
  const end = await Promise.race([stopped, cluster.gone]);
  clearInterval(alive);
  if (end !== "stopped") {
    console.error("the process that keeps the cluster has ended");
    return 1;
  }
  await cluster.stop();
  return 0;
}

function guide({ directory, kubeconfig, node, knative }: ClusterFacts): string {
  // What begins with export is for `eval`, so that scripts have it as well as people.
  const lines = [
    "",
    `export KUBECONFIG=${kubeconfig}`,
    `export PATH="${directory}:$PATH"`,
    ...(knative === undefined
      ? []
      : [`export CHANNELS=127.0.0.1:${knative.channelPort}`, `export BROKERS=127.0.0.1:${knative.brokerPort}`]),
    "",
    `logs      ${directory}/*.log`,
  ];
  if (node !== undefined) lines.push(`registry  ${node.registry}; an image to run: ${node.busyboxImage}`);
  if (knative !== undefined) {
    const event = "-H 'ce-specversion: 1.0' -H 'ce-id: 1' -H 'ce-source: /me' -H 'ce-type: my.event' -d '{}'";
    const type = "-H 'content-type: application/json'";
    lines.push(
      `channel   curl -i $CHANNELS -H 'Host: CHANNEL-kn-channel.NAMESPACE.svc.cluster.local' ${type} ${event}`,
      `broker    curl -i $BROKERS/NAMESPACE/BROKER ${type} ${event}`,
      "sink      a Service with the annotation test/forward: 127.0.0.1:PORT leads Knative to that port",
    );
  }
  return [...lines, "", "Ctrl-C ends it."].join("\n");
}
