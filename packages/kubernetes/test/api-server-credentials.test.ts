import { execFile } from "node:child_process";
import { once } from "node:events";
import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { until } from "../../../tools/until.js";
import { type Cluster, type ClusterAccess, type ObjectKind, openCluster } from "../src/index.js";
import { failureOf } from "./failure-of.js";
import { clusterTimeoutMs, freshNamespace, type TestCluster, testCluster } from "./test-cluster.js";

const run = promisify(execFile);
const configMaps: ObjectKind = { group: "", version: "v1", kind: "ConfigMap", plural: "configmaps", namespaced: true };
const rootCa = "kube-root-ca.crt";

let real: TestCluster | undefined;
let directory: string;
let namespace: string;
const opened: Cluster[] = [];

beforeAll(async () => {
  real = await testCluster();
  if (real === undefined) return;
  directory = await mkdtemp(join(tmpdir(), "osbert-credentials-"));
  namespace = freshNamespace("credentials");
  await real.kubectl(["create", "namespace", namespace]);
  await real.kubectl(["create", "serviceaccount", "reader", "-n", namespace]);
  const subject = `--serviceaccount=${namespace}:reader`;
  await real.kubectl(["create", "rolebinding", "reader", "-n", namespace, "--clusterrole=view", subject]);
  await real.kubectl(["wait", "-n", namespace, "--for=create", `configmap/${rootCa}`, "--timeout=60s"]);
}, clusterTimeoutMs);

afterAll(async () => {
  for (const cluster of opened) cluster.close();
  if (real !== undefined) await rm(directory, { recursive: true, force: true });
});

const onServer = (name: string, use: (real: TestCluster) => Promise<void>) =>
  test(name, () => (real === undefined ? undefined : use(real)));

async function open(access: ClusterAccess): Promise<Cluster> {
  const cluster = await openCluster({ access });
  opened.push(cluster);
  return cluster;
}

/** As the administrator's, but with another user. */
async function kubeconfig(
  { facts }: TestCluster,
  name: string,
  user: object,
  cluster: object = {},
): Promise<ClusterAccess> {
  const config = JSON.parse(await readFile(facts.kubeconfig, "utf8"));
  config.users[0].user = user;
  Object.assign(config.clusters[0].cluster, cluster);
  const file = join(directory, name);
  await writeFile(file, JSON.stringify(config));
  return { kind: "kubeconfig", file };
}

async function tokenOf({ kubectl }: TestCluster): Promise<string> {
  return (await kubectl(["create", "token", "reader", "-n", namespace])).trim();
}

/** The account may read its namespace, and nothing else. */
async function isReader(cluster: Cluster): Promise<void> {
  expect(await cluster.read(configMaps, { namespace, name: rootCa })).toBeDefined();
  const write = cluster.create(configMaps, { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "a", namespace } });
  const error = await failureOf(write);
  expect(error).toMatchObject({ failure: "forbidden", status: 403 });
  expect(error.message).toContain(`system:serviceaccount:${namespace}:reader`);
}

describe("a real API server knows us", () => {
  onServer("by a token of a service account", async (server) => {
    await isReader(await open(await kubeconfig(server, "token", { token: await tokenOf(server) })));
  });

  onServer("by a client certificate, in the kubeconfig or in files beside it", async (server) => {
    const ca = [
      "-CA",
      join(server.facts.directory, "pki/ca.crt"),
      "-CAkey",
      join(server.facts.directory, "pki/ca.key"),
    ];
    const files = ["-keyout", join(directory, "me.key"), "-out", join(directory, "me.crt")];
    const key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "1"];
    const use = ["-addext", "extendedKeyUsage=clientAuth", "-addext", "basicConstraints=critical,CA:FALSE"];
    await run("openssl", ["req", "-x509", ...key, "-subj", "/CN=by-certificate", ...ca, ...files, ...use]);
    const data = async (name: string) => (await readFile(join(directory, name))).toString("base64");
    const users = [
      { "client-certificate": "me.crt", "client-key": "me.key" },
      { "client-certificate-data": await data("me.crt"), "client-key-data": await data("me.key") },
    ];
    for (const user of users) {
      const cluster = await open(await kubeconfig(server, "certificate", user));
      expect((await failureOf(cluster.read(configMaps, { namespace, name: rootCa }))).message).toContain(
        "by-certificate",
      );
    }
  });

  onServer("by an exec plugin, which is told what it shall speak and asked once for many calls", async (server) => {
    const plugin = join(directory, "plugin");
    const script = [
      "#!/bin/sh",
      'case "$KUBERNETES_EXEC_INFO" in *client.authentication.k8s.io/v1*) ;; *) exit 1 ;; esac',
      `echo asked >> ${directory}/asked`,
      `printf '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"%s"}}' "$TOKEN"`,
    ];
    await writeFile(plugin, script.join("\n"));
    await chmod(plugin, 0o755);
    const env = [{ name: "TOKEN", value: await tokenOf(server) }];
    const exec = { apiVersion: "client.authentication.k8s.io/v1", command: plugin, env, interactiveMode: "Never" };
    const cluster = await open(await kubeconfig(server, "exec", { exec }));
    await isReader(cluster);
    await isReader(cluster);
    expect(await readFile(join(directory, "asked"), "utf8")).toBe("asked\n");
  });

  onServer("in a pod, by the files that are mounted there; also after these were rotated", async (server) => {
    const folder = join(directory, "pod/var/run/secrets/kubernetes.io/serviceaccount");
    await mkdir(folder, { recursive: true });
    await writeFile(join(folder, "token"), `${await tokenOf(server)}\n`);
    await writeFile(join(folder, "namespace"), namespace);
    await writeFile(join(folder, "ca.crt"), await readFile(join(server.facts.directory, "pki/ca.crt")));
    const { hostname, port } = new URL(server.facts.url);
    const before = { ...process.env };
    Object.assign(process.env, { KUBERNETES_SERVICE_HOST: hostname, KUBERNETES_SERVICE_PORT: port });
    try {
      const access: ClusterAccess = { kind: "in cluster", mount: join(directory, "pod") };
      await isReader(await open(access));
      const token = await readFile(join(folder, "token"), "utf8");
      await writeFile(join(folder, "token"), "of-nobody");
      const cluster = await open(access);
      expect((await failureOf(cluster.read(configMaps, { namespace, name: rootCa }))).failure).toBe("unauthorized");
      await writeFile(join(folder, "token"), token);
      const read = () => cluster.read(configMaps, { namespace, name: rootCa });
      await until("the new token to be read", async () => (await read()) !== undefined);
      await isReader(cluster);
    } finally {
      process.env = before;
    }
  });

  onServer("not by a token of nobody", async (server) => {
    const cluster = await open(await kubeconfig(server, "nobody", { token: "of-nobody-at-all" }));
    const error = await failureOf(cluster.read(configMaps, { namespace, name: rootCa }));
    expect(error).toMatchObject({ failure: "unauthorized", status: 401 });
    expect(error.message).not.toContain("of-nobody");
  });

  onServer("and is known by its authority: to another server no credentials go", async (server) => {
    const make = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "1"];
    const files = ["-keyout", join(directory, "other.key"), "-out", join(directory, "other.crt")];
    await run("openssl", [...make, "-subj", "/CN=another-authority", ...files]);
    const authority = (await readFile(join(directory, "other.crt"))).toString("base64");
    const user = { token: await tokenOf(server) };
    const access = await kubeconfig(server, "authority", user, { "certificate-authority-data": authority });
    const error = await failureOf((await open(access)).read(configMaps, { namespace, name: rootCa }));
    expect(error).toMatchObject({ failure: "unavailable", status: null });
  });
});

describe("a closed edge", () => {
  onServer("leaves nothing behind that would keep a process alive", async (server) => {
    const program = `
      const { openCluster } = await import(${JSON.stringify(new URL("../src/index.ts", import.meta.url).href)});
      const cluster = await openCluster({ access: { kind: "kubeconfig", file: ${JSON.stringify(server.facts.kubeconfig)} } });
      const watch = cluster.watch(${JSON.stringify(configMaps)}, { keep: () => true });
      await watch.started;
      await cluster.read(${JSON.stringify(configMaps)}, { namespace: "default", name: "none" });
      cluster.close();
      console.log(watch.state);`;
    const file = join(directory, "closes.mts");
    await writeFile(file, program);
    const child = execFile(process.execPath, [
      "--import",
      import.meta.resolve("tsx"),
      "--conditions=@osbert/source",
      file,
    ]);
    let printed = "";
    child.stdout?.on("data", (text) => {
      printed += String(text);
    });
    child.stderr?.pipe(process.stderr);
    const [code] = await once(child, "exit");
    expect([code, printed]).toEqual([0, "current\n"]);
  });
});
