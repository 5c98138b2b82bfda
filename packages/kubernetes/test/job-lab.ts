import { execFileSync } from "node:child_process";
import { createHash, randomUUID } from "node:crypto";
import { copyFileSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { Artifact, Digest, Job, JobLimits, Runner } from "@osbert/bundles";
import { type Image, pushImage } from "../../../tools/cluster/image.js";
import { apply, type Kubectl } from "../../../tools/cluster/kubectl.js";
import type { ClusterFacts, NodeFacts } from "../../../tools/cluster/options.js";
import { freshNamespace } from "../../../tools/cluster/test-cluster.js";
import { findProgram } from "../../../tools/server-process.js";
import { openCluster } from "../src/cluster/open-cluster.js";
import { openPodExec } from "../src/cluster/pod-exec.js";
import { openJobRunner } from "../src/jobs/job-runner.js";
import type { JobRunnerOptions } from "../src/jobs/job-runner-options.js";
import { jobRunnerRules, type RoleRule, sandboxRules, sandboxRunnerRules } from "../src/jobs/runner-roles.js";

/** A namespace of a real cluster with a node, where bundles run as Jobs under the rights that the runner says it needs, and no others. */
export interface JobLab {
  readonly namespace: string;
  readonly kubectl: Kubectl;
  readonly node: NodeFacts;
  /** Of the API server, as pods reach it. */
  readonly url: string;
  /** Where the role of bundles counts: a namespace of a user. */
  readonly target: string;
  /** As another process would open it. */
  runner(options?: Partial<JobRunnerOptions>): Promise<Runner>;
  /** What `runner` opens it with. */
  options(): Promise<JobRunnerOptions>;
  /** A bundle of a file `run`. */
  bundle(program: string): Promise<Artifact>;
  /** A classic image of busybox, curl and scripts in /bin, `entrypoint` among them. */
  classic(scripts: { readonly entrypoint: string } & Readonly<Record<string, string>>): Promise<Artifact>;
  /** An image of the own format, of busybox. */
  image(
    scripts: Readonly<Record<string, string>>,
    image?: Partial<Image>,
    programs?: readonly string[],
  ): Promise<Extract<Artifact, { kind: "image" }>>;
  remove(): Promise<void>;
}

export interface LabOptions {
  /** The runner may make namespaces, and bind this role in those of users. */
  readonly sandboxes?: boolean;
  readonly role?: string;
}

export async function openJobLab(
  { facts, kubectl }: { readonly facts: ClusterFacts; readonly kubectl: Kubectl },
  { sandboxes = false, role }: LabOptions = {},
): Promise<JobLab> {
  const { node } = facts;
  if (node === undefined) throw new Error("this cluster has no node");
  const [namespace, target] = [freshNamespace("jobs"), freshNamespace("user")];
  const home = await mkdtemp(join(tmpdir(), "osbert-jobs-"));
  await apply(kubectl, [namespaceOf(namespace), namespaceOf(target), ...rightsOf(namespace, sandboxes, role)]);
  const baseImage = await pushBash(node.registry);
  const access = { kind: "kubeconfig", file: facts.plainKubeconfig } as const;
  const [cluster, exec] = [await openCluster({ access }), await openPodExec({ access })];
  const options = async (): Promise<JobRunnerOptions> => ({
    ...{ cluster, exec, namespace, baseImage, helperImage: node.busyboxImage },
    files: async ({ digest }) => join(home, digest.slice("sha256:".length)),
    sandbox: sandboxes ? "classic" : "never",
    ...(sandboxes && { sandboxRole: sandboxRoleOf(namespace) }),
    ...(role !== undefined && { role }),
    // There is neither a proxy for services nor a name server: pods use the network of their node.
    ...{
      hostNetwork: true,
      graceMs: 1_000,
      readEveryMs: 0,
      cpu: { limit: "1", request: "10m" },
      memoryRequest: "16Mi",
    },
  });
  const image: JobLab["image"] = async (scripts, made = {}, programs = []) => {
    const root = makeRoot(scripts, programs);
    try {
      const name = `suite/${randomUUID()}`;
      const pushed = await pushImage(node.registry, name, "1", { command: [], ...made, root });
      const answer = await fetch(`http://${node.registry}/v2/${name}/manifests/1`, {
        ...{ method: "HEAD", headers: { accept: "application/vnd.oci.image.manifest.v1+json" } },
      });
      const digest = answer.headers.get("docker-content-digest") as Digest;
      return { kind: "image", image: pushed.replace(/:1$/, ""), digest };
    } finally {
      rmSync(root, { recursive: true });
    }
  };
  return {
    ...{ namespace, kubectl, node, url: facts.url, target, options, image },
    runner: async (more = {}) => openJobRunner({ ...(await options()), ...more }),
    bundle: async (program) => {
      const hash = createHash("sha256").update(program).digest("hex");
      await mkdir(join(home, hash), { recursive: true });
      await writeFile(join(home, hash, "run"), program);
      return { kind: "files", repository: "suite", digest: `sha256:${hash}` };
    },
    classic: (scripts) => image(scripts, { entrypoint: ["/bin/sh", "/bin/entrypoint"] }, ["curl"]),
    async remove() {
      cluster.close();
      await kubectl(["delete", "namespace", namespace, target, "--wait=false"]);
      await rm(home, { recursive: true, force: true });
    },
  };
}

export const labLimits: JobLimits = {
  ...{ timeoutMs: 60_000, memoryBytes: 134_217_728, processes: 64, cpuSeconds: 30, outputBytes: 1_048_576 },
  network: true,
};

/** An action of a bundle of the own format. */
export function ownJob(
  artifact: Artifact,
  { limits = {}, ...job }: Partial<Omit<Job, "limits">> & { readonly limits?: Partial<JobLimits> } = {},
): Job {
  const id = randomUUID();
  return {
    ...{ id, action: "provision", artifact, operation: { key: "suite/instance", id } },
    spec: { ...spec, command: ["sh", "./run"] },
    input: { action: "provision", idempotencyKey: id, parameters: {}, state: {} },
    ...job,
    limits: { ...labLimits, ...limits },
  };
}

/** One of a classic bundle. */
export function classicJob(
  artifact: Artifact,
  runtime: 1 | 2,
  { limits = {}, ...job }: Partial<Omit<Job, "limits">> & { readonly limits?: Partial<JobLimits> } = {},
): Job {
  const own = ownJob(artifact, { limits });
  return { ...own, spec: { ...spec, format: "apb", runtime, command: null }, ...job };
}

const spec: Job["spec"] = {
  ...{ format: "osbert", runtime: null, name: "suite", id: null, description: "A bundle", tags: [], bindable: true },
  ...{
    metadata: {},
    bundleVersion: "1.0.0",
    async: "optional",
    plans: [],
    command: null,
    network: true,
    timeoutMs: null,
  },
  actions: ["provision", "update", "deprovision", "bind", "unbind"],
};

function namespaceOf(name: string) {
  return { apiVersion: "v1", kind: "Namespace", metadata: { name } };
}

const sandboxRoleOf = (namespace: string) => `${namespace}-sandbox`;
const rbac = "rbac.authorization.k8s.io";

/** As the page for operators has it: a Role in its namespace; with sandboxes, a ClusterRole. */
function rightsOf(namespace: string, sandboxes: boolean, role: string | undefined): readonly object[] {
  const subjects = [{ apiGroup: rbac, kind: "User", name: "plain" }];
  const object = (kind: string, name: string, more: object, rules?: readonly RoleRule[]) => ({
    ...{ apiVersion: `${rbac}/v1`, kind, metadata: { name, ...more } },
    ...(rules && { rules }),
  });
  if (!sandboxes)
    return [
      object("Role", "runner", { namespace }, jobRunnerRules),
      {
        ...object("RoleBinding", "runner", { namespace }),
        subjects,
        roleRef: { apiGroup: rbac, kind: "Role", name: "runner" },
      },
    ];
  const roles = [sandboxRoleOf(namespace), ...(role === undefined ? [] : [role])];
  return [
    object("ClusterRole", sandboxRoleOf(namespace), {}, sandboxRules),
    object("ClusterRole", namespace, {}, sandboxRunnerRules(roles)),
    {
      ...object("ClusterRoleBinding", namespace, {}),
      subjects,
      roleRef: { apiGroup: rbac, kind: "ClusterRole", name: namespace },
    },
  ];
}

/** The root of an image: busybox, scripts, and programs of this machine with the libraries that they need. */
function makeRoot(scripts: Readonly<Record<string, string>>, programs: readonly string[]): string {
  const root = mkdtempSync(join(tmpdir(), "osbert-image-"));
  for (const folder of ["bin", "etc", "tmp"]) mkdirSync(join(root, folder));
  copyFileSync("/bin/busybox", join(root, "bin", "busybox"));
  const applets = execFileSync("/bin/busybox", ["--list"], { encoding: "utf8" }).trim().split("\n");
  for (const applet of applets.filter((name) => name !== "busybox")) symlinkSync("busybox", join(root, "bin", applet));
  for (const [name, text] of Object.entries(scripts)) writeFileSync(join(root, "bin", name), text, { mode: 0o755 });
  for (const name of programs) {
    const program = findProgram(name);
    if (program === undefined) throw new Error(`no ${name} found; apt-get install ${name}`);
    const libraries = execFileSync("ldd", [program], { encoding: "utf8" }).match(/\/\S+(?= \()/g) ?? [];
    for (const path of libraries) {
      mkdirSync(join(root, dirname(path)), { recursive: true });
      copyFileSync(realpathSync(path), join(root, path));
    }
    copyFileSync(program, join(root, "bin", name));
  }
  return root;
}

/** The suite's programs are for bash. */
async function pushBash(registry: string): Promise<string> {
  const root = makeRoot({}, ["bash"]);
  try {
    return await pushImage(registry, "suite/bash", "1", { root, command: ["/bin/bash"] });
  } finally {
    rmSync(root, { recursive: true });
  }
}
