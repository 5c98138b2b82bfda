import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Cluster as OwnCluster, startCluster } from "../../../tools/cluster/cluster.js";
import { required } from "../../../tools/required.js";
import { until } from "../../../tools/until.js";
import { type Cluster, ClusterError, type ObjectKind, openCluster, type Watch } from "../src/index.js";
import { clusterTimeoutMs } from "./test-cluster.js";

const configMaps: ObjectKind = { group: "", version: "v1", kind: "ConfigMap", plural: "configmaps", namespaced: true };
const namespace = "default";

describe("a server that is killed and started again", () => {
  let real: OwnCluster | undefined;
  let cluster: Cluster;
  let watch: Watch<string>;
  const gone: string[] = [];

  beforeAll(async () => {
    real = required("tests of an API server's restarts", await startCluster({}));
    if (real === undefined) return;
    cluster = await openCluster({
      access: { kind: "kubeconfig", file: real.facts.kubeconfig },
      pace: { firstDelayMs: 50, longestDelayMs: 500, behindAfterMs: 1_000, quietMs: 5_000, timeoutMs: 5_000 },
    });
    watch = cluster.watch(configMaps, {
      namespace,
      keep: ({ data }) => JSON.stringify(data),
      changed: (change) => {
        if (change?.after === undefined && change !== undefined) gone.push(change.place.name);
      },
    });
    await watch.started;
  }, clusterTimeoutMs);

  afterAll(async () => {
    cluster?.close();
    await real?.stop();
  });

  const write = (name: string, value: string) =>
    cluster.apply(configMaps, { apiVersion: "v1", kind: "ConfigMap", metadata: { name, namespace }, data: { value } });
  const isThere = (name: string, value: string) =>
    until(`${name} to be ${value}`, async () => watch.get({ namespace, name }) === JSON.stringify({ value }));

  test("is missed, found again, and nothing was lost on the way", async () => {
    if (real === undefined) return;
    await write("before", "1");
    await isThere("before", "1");
    await real.stopPart("apiserver");
    const error: unknown = await write("meanwhile", "1").catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(ClusterError);
    expect(error).toMatchObject({ failure: "unavailable" });
    await until("the watch to say so", async () => watch.state === "behind");
    expect(watch.get({ namespace, name: "before" })).toBeDefined();
    await real.startPart("apiserver");
    await until("the server to take writes", async () => (await write("after", "1")) !== undefined);
    await isThere("after", "1");
    expect(watch.state).toBe("current");
    expect(gone).toEqual([]);
  });

  test("is missed too when it only stops answering, with all its connections open", async () => {
    if (real === undefined) return;
    await real.pausePart("apiserver");
    await until("the watch to say so", async () => watch.state === "behind");
    const call = cluster.read(configMaps, { namespace, name: "before" }, { timeoutMs: 500 });
    await expect(call).rejects.toMatchObject({ failure: "unavailable" });
    await real.continuePart("apiserver");
    await until("the watch to be current", async () => watch.state === "current");
    await until("the server to take writes", async () => (await write("resumed", "1")) !== undefined);
    await isThere("resumed", "1");
    expect(gone).toEqual([]);
  });

  test("may lose its store for a while, which is no reason to drop anything", async () => {
    if (real === undefined) return;
    await real.stopPart("etcd");
    const error: unknown = await write("lost", "1").catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(ClusterError);
    await real.startPart("etcd");
    await until("the server to take writes", async () => (await write("stored", "1")) !== undefined);
    await isThere("stored", "1");
    expect(gone).toEqual([]);
  });
}, 240_000);
