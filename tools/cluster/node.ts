import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import { findProgram } from "../server-process.js";
import { type LeftOut, startRegistry } from "../servers.js";
import { type Holding, tryToHold } from "./holding.js";
import { pushBusybox } from "./image.js";
import { kubectlOf } from "./kubectl.js";
import type { ClusterFacts, NodeFacts } from "./options.js";
import { makePart, type Part } from "./part.js";
import { takePort } from "./ports.js";

const run = promisify(execFile);

/** A node that runs pods: Debian's containerd and runc, and Kubernetes' kubelet. */
export interface ClusterNode {
  readonly facts: NodeFacts;
  readonly parts: readonly Part[];
  /** Ends everything that runs on it, and takes back what it has changed on this machine. */
  remove(): Promise<void>;
}

/** What this machine lacks for a node. */
export function lackingForNode(): LeftOut | undefined {
  if (process.getuid?.() !== 0) return { leftOut: "a node needs root" };
  const packages = {
    containerd: "containerd",
    runc: "runc",
    "docker-registry": "docker-registry",
    busybox: "busybox-static",
    ip: "iproute2",
    unshare: "util-linux",
  };
  const missing = Object.entries(packages).flatMap(([program, name]) =>
    findProgram(program) === undefined ? [name] : [],
  );
  if (!existsSync(join(networkPlugins, "bridge"))) missing.push("containernetworking-plugins");
  if (missing.length > 0) return { leftOut: `apt-get install ${missing.join(" ")}` };
  return undefined;
}

/**
 * Makes a node. It has namespaces of processes and of mounts of its own, so that nothing of it outlives its first process, and that what
 * kubelet writes to the kernel's settings does not reach this machine. The network is this machine's.
 */
export async function prepareNode(cluster: ClusterFacts): Promise<ClusterNode> {
  const directory = join(cluster.directory, "node");
  mkdirSync(directory);
  const place = await takePlace();
  // For whoever cleans up after a cluster that was killed.
  writeFileSync(join(directory, placeFile), String(place.index));
  await freeNetwork(place.index);
  await run("ip", ["addr", "add", `${place.ip}/32`, "dev", "lo"]);
  const registry = await startRegistry({ kind: "none" });
  if ("leftOut" in registry) throw new Error(registry.leftOut);
  const registryHost = new URL(registry.url).host;
  const busyboxImage = await pushBusybox(registryHost);
  const [kubeletPort, streamPort, healthPort] = await Promise.all([takePort(), takePort(), takePort()]);

  const config = join(directory, "config");
  for (const folder of [config, join(config, "cni"), join(directory, "pods"), join(directory, "settings")])
    mkdirSync(folder);
  writeFileSync(join(config, "containerd.toml"), containerdConfig(directory, registryHost, busyboxImage, streamPort));
  writeFileSync(join(config, "cni", "10-bridge.conflist"), JSON.stringify(networkConfig(directory, place)));
  const kubeletFile = join(config, "kubelet.json");
  writeFileSync(kubeletFile, JSON.stringify(kubeletConfig(cluster, directory, place.ip, kubeletPort, healthPort)));

  const first = await startNamespaces(directory);
  const inside = (name: string, command: readonly string[], isReady: () => Promise<boolean>) =>
    makePart(name, {
      command: ["nsenter", `--target=${first.inside}`, "--mount", "--pid", "--", ...command],
      log: join(cluster.directory, `${name}.log`),
      isReady,
      isInNamespaces: true,
    });
  const socket = join(directory, "containerd.sock");
  const containerd = inside("containerd", ["containerd", "--config", join(config, "containerd.toml")], async () => {
    await run("ctr", ["--address", socket, "--timeout", "2s", "version"]);
    return true;
  });
  const kubectl = kubectlOf(cluster);
  const ready = 'jsonpath={.status.conditions[?(@.type=="Ready")].status}';
  const kubelet = inside(
    "kubelet",
    [
      cluster.program,
      "kubelet",
      `--config=${kubeletFile}`,
      `--kubeconfig=${cluster.kubeconfig}`,
      `--root-dir=${join(directory, "kubelet")}`,
      `--cert-dir=${join(directory, "kubelet", "pki")}`,
      `--hostname-override=${nodeName}`,
      `--node-ip=${place.ip}`,
    ],
    async () => (await kubectl(["get", "node", nodeName, "-o", ready])) === "True",
  );
  return {
    facts: { registry: registryHost, busyboxImage, ip: place.ip },
    parts: [containerd, kubelet],
    async remove() {
      await first.end();
      await registry.stop();
      await freeNetwork(place.index);
      removeCgroups(directory);
      await place.holding.release();
    },
  };
}

/** Takes back what the node of a cluster that was killed has left on this machine. */
export async function removeLeftNode(clusterDirectory: string): Promise<void> {
  const directory = join(clusterDirectory, "node");
  const file = join(directory, placeFile);
  if (!existsSync(file)) return;
  const index = Number(readFileSync(file, "utf8"));
  const holding = await tryToHold(placeName(index));
  removeCgroups(directory);
  if (holding === undefined) return; // Another node has its place by now, and has made it free before.
  await freeNetwork(index);
  await holding.release();
}

const nodeName = "osbert";
const networkPlugins = "/usr/lib/cni";
const placeFile = "place";

/** An address, a bridge and a subnet that no other node on this machine has. Kubelet refuses an address of the loopback network. */
interface Place {
  readonly index: number;
  readonly ip: string;
  readonly holding: Holding;
}

async function takePlace(): Promise<Place> {
  for (let index = 0; index < 200; index++) {
    const holding = await tryToHold(placeName(index));
    if (holding !== undefined) return { index, ip: nodeIp(index), holding };
  }
  throw new Error("this machine has too many nodes");
}

function placeName(index: number): string {
  return `node/${index}`;
}

function nodeIp(index: number): string {
  return `10.98.${index}.1`;
}

function bridgeOf(index: number): string {
  return `osbert${index}`;
}

async function freeNetwork(index: number): Promise<void> {
  await run("ip", ["link", "del", bridgeOf(index)]).catch(() => undefined);
  await run("ip", ["addr", "del", `${nodeIp(index)}/32`, "dev", "lo"]).catch(() => undefined);
}

/** Containers leave their groups behind when they are killed together with what runs them. */
function removeCgroups(directory: string): void {
  const tasks = join(directory, "state", "io.containerd.runtime.v2.task", "k8s.io");
  const containers = existsSync(tasks) ? readdirSync(tasks) : [];
  const hierarchies = ["", ...readdirSync("/sys/fs/cgroup")];
  for (const hierarchy of hierarchies) {
    const parent = join("/sys/fs/cgroup", hierarchy, "k8s.io");
    if (!existsSync(parent)) continue;
    for (const path of [...containers.map((id) => join(parent, id)), parent]) {
      try {
        rmdirSync(path);
      } catch {
        // It has gone, or others have theirs in it.
      }
    }
  }
}

interface Namespaces {
  /** The first process inside, as this machine counts. */
  readonly inside: number;
  /** Resolves when every process inside has ended. */
  end(): Promise<void>;
}

async function startNamespaces(directory: string): Promise<Namespaces> {
  const unshare = ["unshare", "--mount", "--pid", "--fork", "--kill-child=KILL", "--propagation", "private"];
  const command = ["--pdeathsig", "KILL", ...unshare, "sh", "-c", insideScript, "node", directory];
  const child = spawn("setpriv", command, { stdio: ["ignore", "pipe", "pipe"] });
  let complaints = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    complaints += text;
  });
  for await (const line of createInterface(child.stdout)) if (line === "ready") break;
  const inside = Number(readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, "utf8").trim());
  if (!(inside > 0)) throw new Error(`the node's namespaces were not made: ${complaints}`);
  return { inside, end: () => endNamespaces(child, inside) };
}

async function endNamespaces(child: ChildProcess, inside: number): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = once(child, "exit");
  // The kernel ends all others with the first, and reports its end after theirs.
  process.kill(inside, "SIGKILL");
  await gone;
}

// $1: directory. The kernel's settings that kubelet and the network's plugins write are covered by copies. What has a place in this machine's
// folders that cannot be chosen, such as the sockets of containers, goes to file systems that end with the namespace, unless the directory
// itself lies in such a folder. The shell waits, and so buries orphans.
const insideScript = `
set -e
mount --make-rshared /
mount -t proc proc /proc
for name in vm/overcommit_memory vm/panic_on_oom kernel/panic kernel/panic_on_oops kernel/keys/root_maxkeys kernel/keys/root_maxbytes net/ipv4/ip_forward; do
  copy=$1/settings/$(echo "$name" | tr / _)
  cat "/proc/sys/$name" >"$copy"
  mount --bind "$copy" "/proc/sys/$name"
done
for folder in /run /var/lib /var/log; do
  case $1 in
    "$folder"/*) ;;
    *) mount -t tmpfs tmpfs "$folder" ;;
  esac
done
echo ready
exec >/dev/null 2>&1
tail -f /dev/null &
while :; do wait $!; done
`;

function containerdConfig(directory: string, registry: string, pauseImage: string, streamPort: number): string {
  const cri = 'plugins."io.containerd.grpc.v1.cri"';
  const unused = [
    "snapshotter.v1.aufs",
    "snapshotter.v1.btrfs",
    "snapshotter.v1.devmapper",
    "snapshotter.v1.zfs",
    "internal.v1.opt",
  ];
  return `version = 2
root = "${join(directory, "containerd")}"
state = "${join(directory, "state")}"
oom_score = 0
disabled_plugins = ${JSON.stringify(unused.map((name) => `io.containerd.${name}`))}

[grpc]
  address = "${join(directory, "containerd.sock")}"

[${cri}]
  sandbox_image = "${pauseImage}"
  restrict_oom_score_adj = true
  disable_hugetlb_controller = true
  tolerate_missing_hugetlb_controller = true
  netns_mounts_under_state_dir = true
  stream_server_address = "127.0.0.1"
  stream_server_port = "${streamPort}"

[${cri}.containerd]
  snapshotter = "overlayfs"
  default_runtime_name = "runc"

[${cri}.containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"

[${cri}.containerd.runtimes.runc.options]
  SystemdCgroup = false

[${cri}.cni]
  bin_dir = "${networkPlugins}"
  conf_dir = "${join(directory, "config", "cni")}"

[${cri}.registry.mirrors."${registry}"]
  endpoint = ["http://${registry}"]
`;
}

function networkConfig(directory: string, { index }: Place): object {
  const ipam = {
    type: "host-local",
    dataDir: join(directory, "addresses"),
    ranges: [[{ subnet: `10.99.${index}.0/24` }]],
    routes: [{ dst: "0.0.0.0/0" }],
  };
  const bridge = { type: "bridge", bridge: bridgeOf(index), isGateway: true, ipMasq: false, hairpinMode: true, ipam };
  return { cniVersion: "0.4.0", name: "osbert", plugins: [bridge, { type: "loopback" }] };
}

function kubeletConfig(
  cluster: ClusterFacts,
  directory: string,
  address: string,
  port: number,
  healthzPort: number,
): object {
  return {
    apiVersion: "kubelet.config.k8s.io/v1beta1",
    kind: "KubeletConfiguration",
    address,
    port,
    healthzPort,
    readOnlyPort: 0,
    podLogsDir: join(directory, "pods"),
    volumePluginDir: join(directory, "volume-plugins"),
    containerRuntimeEndpoint: `unix://${join(directory, "containerd.sock")}`,
    authentication: {
      anonymous: { enabled: false },
      webhook: { enabled: true },
      x509: { clientCAFile: join(cluster.directory, "pki", "ca.crt") },
    },
    authorization: { mode: "Webhook" },
    clusterDomain: "cluster.local",
    resolvConf: "",
    // This machine may have the older kind of cgroups, swap, and a disk that is nearly full.
    cgroupDriver: "cgroupfs",
    cgroupsPerQOS: false,
    enforceNodeAllocatable: [],
    failCgroupV1: false,
    failSwapOn: false,
    localStorageCapacityIsolation: false,
    evictionHard: { "memory.available": "50Mi", "nodefs.available": "1%", "imagefs.available": "1%" },
    imageGCHighThresholdPercent: 100,
    imageGCLowThresholdPercent: 99,
    // What it would change on this machine.
    makeIPTablesUtilChains: false,
    oomScoreAdj: 0,
    protectKernelDefaults: false,
    // Tests wait for it.
    syncFrequency: "5s",
    nodeStatusUpdateFrequency: "5s",
  };
}
