import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { apply } from "../../../tools/cluster/kubectl.js";
import { until } from "../../../tools/until.js";
import { type Cluster, type ClusterObject, type ObjectKind, openCluster, type Watch } from "../src/index.js";
import { failureOf } from "./failure-of.js";
import { clusterTimeoutMs, freshNamespace, type TestCluster, testCluster } from "./test-cluster.js";

const configMaps: ObjectKind = { group: "", version: "v1", kind: "ConfigMap", plural: "configmaps", namespaced: true };
const secrets: ObjectKind = { ...configMaps, kind: "Secret", plural: "secrets" };
const namespaces: ObjectKind = { ...configMaps, kind: "Namespace", plural: "namespaces", namespaced: false };
const pods: ObjectKind = { ...configMaps, kind: "Pod", plural: "pods" };
const deployments: ObjectKind = {
  group: "apps",
  version: "v1",
  kind: "Deployment",
  plural: "deployments",
  namespaced: true,
};

let real: TestCluster | undefined;
let cluster: Cluster;
let namespace: string;

beforeAll(async () => {
  real = await testCluster();
  if (real === undefined) return;
  cluster = await openCluster({
    access: { kind: "kubeconfig", file: real.facts.kubeconfig },
    pace: { firstDelayMs: 50, longestDelayMs: 500, lookAgainMs: 200 },
  });
  namespace = freshNamespace();
  await cluster.create(namespaces, { apiVersion: "v1", kind: "Namespace", metadata: { name: namespace } });
}, clusterTimeoutMs);

afterAll(() => cluster?.close());

/** Tests of a server that this machine does not have end at once; `required` has said so. */
const onServer = (name: string, run: (real: TestCluster) => Promise<void>, timeoutMs = 60_000) =>
  test(name, () => (real === undefined ? undefined : run(real)), timeoutMs);

const configMap = (name: string, data: Readonly<Record<string, string>>): ClusterObject => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name, namespace },
  data,
});
const at = (name: string) => ({ namespace, name });

describe("objects of a real API server", () => {
  onServer("are created, read, listed and removed", async () => {
    const created = await cluster.create(configMaps, configMap("life", { a: "1" }));
    expect(created.metadata).not.toHaveProperty("managedFields");
    expect(await cluster.read(configMaps, at("life"))).toEqual(created);
    const listed: ClusterObject[] = [];
    for await (const object of cluster.list(configMaps, { namespace, fields: "metadata.name=life" }))
      listed.push(object);
    expect(listed).toEqual([created]);
    const uid = created.metadata.uid ?? "";
    expect(await cluster.remove(configMaps, at("life"), { uid })).toBe("removed");
    expect(await cluster.remove(configMaps, at("life"), { uid })).toBe("gone");
    expect(await cluster.read(configMaps, at("life"))).toBeUndefined();
  });

  onServer("are not created twice", async () => {
    await cluster.create(configMaps, configMap("twice", {}));
    expect((await failureOf(cluster.create(configMaps, configMap("twice", {})))).failure).toBe("conflict");
  });

  onServer(
    "are listed in pages of one moment",
    async () => {
      const label = "many=yes";
      const many = Array.from({ length: 501 }, (_one, n) => ({
        ...configMap(`many-${n}`, {}),
        metadata: { name: `many-${n}`, namespace, labels: { many: "yes" } },
      }));
      for (let from = 0; from < many.length; from += 50) {
        await Promise.all(
          many.slice(from, from + 50).map((object) => cluster.create(configMaps, object, { timeoutMs: 30_000 })),
        );
      }
      const names = new Set<string>();
      for await (const { metadata } of cluster.list(configMaps, { namespace, labels: label })) names.add(metadata.name);
      expect(names.size).toBe(501);
    },
    120_000,
  );

  onServer("are removed only as they were seen", async () => {
    const first = await cluster.create(configMaps, configMap("seen", { a: "1" }));
    const { uid = "", resourceVersion = "" } = first.metadata;
    await cluster.apply(configMaps, configMap("seen", { a: "2" }), { force: true });
    expect(await cluster.remove(configMaps, at("seen"), { uid, resourceVersion })).toBe("changed");
    expect(await cluster.remove(configMaps, at("seen"), { uid: "another" })).toBe("changed");
    expect(await cluster.read(configMaps, at("seen"))).toMatchObject({ data: { a: "2" } });
    expect(await cluster.remove(configMaps, at("seen"), { uid })).toBe("removed");
  });

  onServer("that hold secrets are removed only as they were seen, too", async () => {
    const secret = { apiVersion: "v1", kind: "Secret", metadata: { name: "seen", namespace } };
    const { metadata } = await cluster.create(secrets, secret);
    expect(await cluster.remove(secrets, at("seen"), { uid: "another" })).toBe("changed");
    expect(await cluster.remove(secrets, at("seen"), { uid: metadata.uid ?? "" })).toBe("removed");
  });

  onServer("are patched if the tests of the patch hold", async () => {
    await cluster.create(configMaps, configMap("patched", { a: "1" }));
    const patched = await cluster.patch(configMaps, at("patched"), [
      { op: "test", path: "/data/a", value: "1" },
      { op: "replace", path: "/data/a", value: "2" },
    ]);
    expect(patched).toMatchObject({ data: { a: "2" } });
    const again = cluster.patch(configMaps, at("patched"), [
      { op: "test", path: "/data/a", value: "1" },
      { op: "replace", path: "/data/a", value: "3" },
    ]);
    expect((await failureOf(again)).failure).toBe("conflict");
    expect(await cluster.read(configMaps, at("patched"))).toMatchObject({ data: { a: "2" } });
    const unfit = cluster.patch(configMaps, at("patched"), [
      { op: "test", path: "/data/a", value: "2" },
      { op: "remove", path: "/data/none" },
    ]);
    expect((await failureOf(unfit)).failure).toBe("invalid");
    expect(await cluster.patch(configMaps, at("none"), [{ op: "add", path: "/data", value: {} }])).toBeUndefined();
  });

  onServer("of a kind that the server does not know are an error, and no missing ones", async () => {
    const unknown: readonly ObjectKind[] = [
      { group: "", version: "v1", kind: "Thing", plural: "things", namespaced: true },
      { group: "apps", version: "v1", kind: "Thing", plural: "things", namespaced: true },
      { group: "apps", version: "v9", kind: "Deployment", plural: "deployments", namespaced: true },
      { group: "nobody.example", version: "v1", kind: "Thing", plural: "things", namespaced: true },
    ];
    for (const kind of unknown) {
      expect((await failureOf(cluster.read(kind, at("a")))).failure).toBe("no such kind");
      expect((await failureOf(cluster.list(kind).next())).failure).toBe("no such kind");
      expect((await failureOf(cluster.remove(kind, at("a"), { uid: "u" }))).failure).toBe("no such kind");
    }
  });

  onServer("without a namespace to be in are not found", async () => {
    const object = { ...configMap("a", {}), metadata: { name: "a", namespace: "there-is-none" } };
    expect((await failureOf(cluster.create(configMaps, object))).failure).toBe("not found");
    expect((await failureOf(cluster.apply(configMaps, object))).failure).toBe("not found");
    expect(await cluster.read(configMaps, { namespace: "there-is-none", name: "a" })).toBeUndefined();
  });

  onServer("that a quota has no room for are forbidden", async ({ kubectl }) => {
    const own = freshNamespace("quota");
    await cluster.create(namespaces, { apiVersion: "v1", kind: "Namespace", metadata: { name: own } });
    await kubectl(["create", "quota", "none", "-n", own, "--hard=secrets=0"]);
    const secret = { apiVersion: "v1", kind: "Secret", metadata: { name: "a", namespace: own } };
    const refused = () =>
      cluster.create(secrets, secret).then(
        () => "",
        (error: Error) => error.message,
      );
    await until("the quota to count", async () => (await refused()).includes("exceeded quota"));
    expect((await failureOf(cluster.create(secrets, secret))).failure).toBe("forbidden");
  });

  onServer("that are wrong are invalid, and a Secret is not quoted", async () => {
    const error = await failureOf(cluster.create(configMaps, configMap("Not A Name", {})));
    expect(error).toMatchObject({ failure: "invalid", status: 422 });
    const type = { apiVersion: "v1", kind: "Secret", metadata: { name: "a", namespace }, data: { a: 12345678 } };
    const secret = await failureOf(cluster.apply(secrets, type));
    expect(secret.failure).toBe("invalid");
    expect(secret.message).not.toContain("12345678");
  });
});

describe("a webhook", () => {
  onServer("that does not answer is told from a server that does not, and from a refusal", async ({ kubectl }) => {
    const own = freshNamespace("webhook");
    await cluster.create(namespaces, { apiVersion: "v1", kind: "Namespace", metadata: { name: own } });
    const webhook = {
      name: "nobody.osbert.example",
      clientConfig: { url: "https://127.0.0.1:1/" },
      rules: [{ apiGroups: [""], apiVersions: ["v1"], resources: ["configmaps"], operations: ["CREATE"] }],
      namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": own } },
      failurePolicy: "Fail",
      sideEffects: "None",
      admissionReviewVersions: ["v1"],
    };
    const kind = "ValidatingWebhookConfiguration";
    await apply(kubectl, [
      { apiVersion: "admissionregistration.k8s.io/v1", kind, metadata: { name: own }, webhooks: [webhook] },
    ]);
    let names = 0;
    const create = () => {
      names += 1;
      return cluster.create(configMaps, {
        apiVersion: "v1",
        kind: "ConfigMap",
        metadata: { name: `a${names}`, namespace: own },
      });
    };
    await until("the webhook to be asked", async () =>
      create().then(
        () => false,
        () => true,
      ),
    );
    expect(await failureOf(create())).toMatchObject({ failure: "webhook unavailable", status: 500 });
    await kubectl(["delete", "validatingwebhookconfiguration", own]);
  });
});

describe("server-side apply", () => {
  onServer("leaves to others what is not in the object, and takes away what was", async ({ kubectl }) => {
    await cluster.apply(configMaps, configMap("shared", { ours: "1", old: "1" }));
    const theirs = { ...configMap("shared", { theirs: "2" }) };
    await kubectl(["apply", "--server-side", "--field-manager=them", "-f", "-"], JSON.stringify(theirs));
    const applied = await cluster.apply(configMaps, configMap("shared", { ours: "3" }));
    expect(applied.data).toEqual({ ours: "3", theirs: "2" });
  });

  onServer("is made in the name of osbert", async ({ kubectl }) => {
    await cluster.apply(configMaps, configMap("managed", { a: "1" }));
    const shown = await kubectl([
      "get",
      "configmap",
      "managed",
      "-n",
      namespace,
      "--show-managed-fields",
      "-o",
      "json",
    ]);
    const { metadata } = JSON.parse(shown) as { metadata: { managedFields: { manager: string; operation: string }[] } };
    expect(metadata.managedFields.map(({ manager, operation }) => [manager, operation])).toEqual([["osbert", "Apply"]]);
  });

  onServer(
    "conflicts over a field of another manager, and says whose it is, unless it is forced",
    async ({ kubectl }) => {
      const theirs = JSON.stringify(configMap("fought", { a: "theirs" }));
      await kubectl(["apply", "--server-side", "--field-manager=the-others", "-f", "-"], theirs);
      const error = await failureOf(cluster.apply(configMaps, configMap("fought", { a: "ours" })));
      expect(error.failure).toBe("conflict");
      expect(error.message).toContain("the-others");
      const forced = await cluster.apply(configMaps, configMap("fought", { a: "ours" }), { force: true });
      expect(forced.data).toEqual({ a: "ours" });
    },
  );

  onServer("changes nothing when nothing is different", async () => {
    const first = await cluster.apply(configMaps, configMap("same", { a: "1" }));
    const second = await cluster.apply(configMaps, configMap("same", { a: "1" }));
    expect(second.metadata.resourceVersion).toBe(first.metadata.resourceVersion);
  });

  onServer("reaches the status of kinds that have it apart, and refuses it for others", async () => {
    const selector = { matchLabels: { app: "a" } };
    const template = { metadata: { labels: { app: "a" } }, spec: { containers: [{ name: "a", image: "a" }] } };
    const deployment = { apiVersion: "apps/v1", kind: "Deployment", metadata: { name: "status", namespace } };
    await cluster.apply(deployments, { ...deployment, spec: { replicas: 0, selector, template } });
    const condition = { type: "Tested", status: "True", lastUpdateTime: null, lastTransitionTime: null };
    const told = await cluster.applyStatus(deployments, { ...deployment, status: { conditions: [condition] } });
    expect(told.status).toMatchObject({
      conditions: expect.arrayContaining([expect.objectContaining({ type: "Tested" })]),
    });
    await cluster.apply(configMaps, configMap("no-status", {}));
    expect((await failureOf(cluster.applyStatus(configMaps, configMap("no-status", {})))).failure).toBe("no such kind");
  });
});

describe("a watch of a real API server", () => {
  const watchOf = (kind: ObjectKind, labels?: string): Watch<string> =>
    cluster.watch(kind, {
      namespace,
      ...(labels === undefined ? {} : { labels }),
      keep: ({ metadata, data, spec }) => JSON.stringify([metadata.name, data ?? spec ?? null]),
    });

  onServer("follows objects as they come, change, stop to match and go", async () => {
    const watch = watchOf(configMaps, "watched=yes");
    await watch.started;
    const labelled = (label: string, value: string) => ({
      ...configMap("watched", { value }),
      metadata: { name: "watched", namespace, labels: { watched: label } },
    });
    await cluster.apply(configMaps, labelled("yes", "1"));
    await until("it to come", async () => watch.get(at("watched")) === '["watched",{"value":"1"}]');
    await cluster.apply(configMaps, labelled("yes", "2"));
    await until("it to change", async () => watch.get(at("watched")) === '["watched",{"value":"2"}]');
    await cluster.apply(configMaps, labelled("no", "2"));
    await until("it to go", async () => watch.size === 0);
    watch.close();
  });

  onServer("begins by itself when its kind comes to be, and loses all when the kind goes", async ({ kubectl }) => {
    const group = `${randomBytes(4).toString("hex")}.osbert.example`;
    const things: ObjectKind = { group: `g${group}`, version: "v1", kind: "Thing", plural: "things", namespaced: true };
    const changes: string[] = [];
    const watch: Watch<string> = cluster.watch(things, {
      keep: ({ metadata }) => metadata.name,
      changed: (change) => changes.push(change === undefined ? watch.state : `${change.before} ${change.after}`),
    });
    await watch.started;
    expect(watch.state).toBe("no such kind");
    await apply(kubectl, [crd(things)]);
    await until("the kind to be followed", async () => watch.state === "current");
    const thing = { apiVersion: `${things.group}/v1`, kind: "Thing", metadata: { name: "one", namespace } };
    await until("the first one", async () => (await cluster.apply(things, thing)) !== undefined);
    await until("it to be known", async () => watch.size === 1);
    await kubectl(["delete", "crd", `things.${things.group}`, "--wait=false"]);
    await until("the kind to be gone", async () => watch.state === "no such kind");
    expect(watch.size).toBe(0);
    expect(changes).toEqual(["no such kind", "current", "undefined one", "one undefined", "no such kind"]);
    watch.close();
  });

  onServer("sees a namespace go, and all that is in it", async () => {
    const going = freshNamespace("going");
    const metadata = { name: going };
    const created = await cluster.create(namespaces, { apiVersion: "v1", kind: "Namespace", metadata });
    await cluster.create(configMaps, {
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: { name: "a", namespace: going },
    });
    const objects = cluster.watch(configMaps, { namespace: going, keep: () => true });
    const itself = cluster.watch(namespaces, {
      fields: `metadata.name=${going}`,
      keep: (object) => (object.metadata.deletionTimestamp === undefined ? "there" : "going"),
    });
    await Promise.all([objects.started, itself.started]);
    expect(itself.get({ namespace: "", name: going })).toBe("there");
    await cluster.remove(namespaces, { namespace: "", name: going }, { uid: created.metadata.uid ?? "" });
    const late = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "late", namespace: going } };
    expect((await failureOf(cluster.create(configMaps, late))).failure).toMatch(/forbidden|not found/);
    await until("all of it to be gone", async () => objects.size === 0 && itself.size === 0);
    objects.close();
    itself.close();
  });

  onServer("is forbidden until it is allowed", async ({ facts, kubectl }) => {
    const own = freshNamespace("plain");
    await cluster.create(namespaces, { apiVersion: "v1", kind: "Namespace", metadata: { name: own } });
    const plain = await openCluster({
      access: { kind: "kubeconfig", file: facts.plainKubeconfig },
      pace: { firstDelayMs: 50, longestDelayMs: 200 },
    });
    const watch = plain.watch(configMaps, { namespace: own, keep: () => true });
    await until("the refusal", async () => watch.state === "forbidden");
    expect(watch.why).toContain("forbidden");
    const error = await failureOf(plain.read(configMaps, { namespace: own, name: "a" }));
    expect(error).toMatchObject({ failure: "forbidden", status: 403 });
    await kubectl(["create", "rolebinding", "plain", "-n", own, "--clusterrole=view", "--user=plain"]);
    await until("the right", async () => watch.state === "current");
    plain.close();
  });
});

describe("a log", () => {
  onServer("of a pod that is not there is none, and of one that does not run yet empty", async ({ kubectl }) => {
    expect(await cluster.log(at("none"), { lastBytes: 100 })).toBeUndefined();
    await kubectl(["wait", "-n", namespace, "--for=create", "serviceaccount/default", "--timeout=60s"]);
    const spec = { containers: [{ name: "a", image: "a" }], nodeSelector: { nobody: "has-this" } };
    await cluster.create(pods, { apiVersion: "v1", kind: "Pod", metadata: { name: "waits", namespace }, spec });
    expect(await cluster.log(at("waits"), { lastBytes: 100 })).toBe("");
  });
});

function crd({ group, kind, plural }: ObjectKind): object {
  const schema = { openAPIV3Schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true } };
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: `${plural}.${group}` },
    spec: {
      group,
      scope: "Namespaced",
      names: { kind, plural, singular: kind.toLowerCase() },
      versions: [{ name: "v1", served: true, storage: true, schema }],
    },
  };
}
