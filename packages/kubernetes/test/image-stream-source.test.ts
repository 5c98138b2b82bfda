import { createHash } from "node:crypto";
import {
  bundleLabels,
  type Digest,
  type Observation,
  openBundleSource,
  parseSources,
  type Source,
  type SourceError,
} from "@osbert/bundles";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type Cluster as OwnCluster, startCluster } from "../../../tools/cluster/cluster.js";
import { apply } from "../../../tools/cluster/kubectl.js";
import { required } from "../../../tools/required.js";
import { until } from "../../../tools/until.js";
import { type Cluster, imageStreamSource, openCluster } from "../src/index.js";
import { type OpenShiftImages, startOpenShiftImages } from "./openshift-images.js";
import { clusterTimeoutMs } from "./test-cluster.js";

const apb = `version: 1.0
name: hello-apb
description: Says hello
bindable: false
async: optional
plans: [{ name: default, description: The only one, free: true }]
`;

const encoded = (text: string) => Buffer.from(text).toString("base64");
const digestOf = (text: string): Digest => `sha256:${createHash("sha256").update(text).digest("hex")}`;
const registry = "image-registry.openshift-image-registry.svc:5000";
const apiVersion = "image.openshift.io/v1";
const never = new AbortController().signal;

let real: OwnCluster | undefined;
let cluster: Cluster;
let images: OpenShiftImages;
let source: Source;

// A cluster of its own: an API that is registered and does not answer troubles all that goes on in a cluster.
beforeAll(async () => {
  real = required("tests of image streams", await startCluster({}));
  if (real === undefined) return;
  images = await startOpenShiftImages(real.facts, real.kubectl);
  cluster = await openCluster({ access: { kind: "kubeconfig", file: real.facts.kubeconfig } });
  source = imageStreamSource(cluster, ["openshift", "team"]);
}, clusterTimeoutMs);

afterAll(async () => {
  cluster?.close();
  await images?.stop();
  await real?.stop();
});

beforeEach(() => {
  images?.streams.clear();
  images?.images.clear();
});

const onServer = (name: string, run: (own: OwnCluster) => Promise<void>) =>
  test(name, () => (real === undefined ? undefined : run(real)), 120_000);

interface Pushed {
  readonly namespace?: string;
  readonly tag?: string;
  readonly content?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly field?: "Config" | "ContainerConfig";
  readonly reference?: string;
}

/** As the cluster tells of an image that was pushed or imported. */
function push(name: string, pushed: Pushed = {}): Digest {
  const { namespace = "openshift", tag = "latest", content = name, field = "Config" } = pushed;
  const { labels = { [bundleLabels.apb]: encoded(apb) } } = pushed;
  const digest = digestOf(content);
  const { reference = `${registry}/${namespace}/${name}@${digest}` } = pushed;
  const item = { created: "2026-11-01T00:00:00Z", dockerImageReference: reference, image: digest, generation: 1 };
  const before = images.streams.get(`${namespace}/${name}`) as { status?: { tags: { tag: string }[] } } | undefined;
  const others = (before?.status?.tags ?? []).filter((each) => each.tag !== tag);
  stream(name, [...others, { tag, items: [item] }], namespace);
  images.images.set(`${namespace}/${name}@${digest}`, {
    ...{ kind: "ImageStreamImage", apiVersion },
    metadata: { name: `${name}@${digest}`, namespace },
    image: {
      metadata: { name: digest },
      dockerImageReference: reference,
      dockerImageMetadata: { kind: "DockerImage", apiVersion: "1.0", [field]: { Labels: labels } },
    },
  });
  return digest;
}

function stream(name: string, tags: readonly object[], namespace = "openshift", spec: object = {}): void {
  const status = { dockerImageRepository: `${registry}/${namespace}/${name}`, tags };
  images.streams.set(`${namespace}/${name}`, {
    kind: "ImageStream",
    apiVersion,
    metadata: { name, namespace },
    spec,
    status,
  });
}

async function repositoriesOf(of: Source): Promise<readonly string[]> {
  const names: string[] = [];
  for await (const page of of.repositories(never)) names.push(...page);
  return names;
}

async function failureOf(promise: Promise<unknown>): Promise<SourceError> {
  return promise.then(
    () => Promise.reject(new Error("it did not fail")),
    (error: SourceError) => error,
  );
}

/** A reading as the broker does it, with the settings of the predecessor. */
async function observe(
  of: Source,
  known?: Parameters<Awaited<ReturnType<typeof open>>["observe"]>[0],
): Promise<Observation> {
  const opened = await open(of);
  return opened.observe(known ?? ({ data: {}, specs: new Map() } as never), {
    id: "1",
    signal: never,
    onProgress: () => undefined,
  });
}

async function open(of: Source) {
  const block = { type: "local_openshift", name: "local", namespaces: ["openshift", "team"], white_list: ["-apb$"] };
  const parsed = parseSources({ registry: [block] });
  if (parsed.kind === "invalid") throw new Error(JSON.stringify(parsed.faults));
  const [config] = parsed.sources;
  if (config === undefined) throw new Error("no source");
  return openBundleSource(config, {
    readFile: () => Promise.reject(new Error("no file")),
    environment: () => undefined,
    pushed: undefined as never,
    folder: ".",
    imageStreams: async () => of,
  });
}

describe("image streams, of an API that a real API server aggregates", () => {
  onServer("are listed, of all namespaces that are configured and no other, page by page", async () => {
    for (const name of ["a-apb", "b-apb", "c-apb"]) push(name);
    push("d-apb", { namespace: "team" });
    push("e-apb", { namespace: "other" });
    images.mostItems = 2;
    expect(await repositoriesOf(source)).toEqual([
      "openshift/a-apb",
      "openshift/b-apb",
      "openshift/c-apb",
      "team/d-apb",
    ]);
    images.mostItems = 500;
    expect((await failureOf(source.tags("other/e-apb", never))).failure).toBe("not found");
  });

  onServer("become bundles: label, runtime, and where the image is pulled", async () => {
    const digest = push("hello-apb");
    const second = push("hello-apb", {
      tag: "v2",
      content: "v2",
      field: "ContainerConfig",
      labels: { [bundleLabels.apb]: encoded(apb), "com.redhat.apb.runtime": "2" },
      reference: `quay.example/team/hello-apb@${digestOf("v2")}`,
    });
    expect(await source.tags("openshift/hello-apb", never)).toEqual(["latest", "v2"]);
    expect(await source.resolve({ repository: "openshift/hello-apb", tag: "latest" }, never)).toBe(digest);
    expect(await source.resolve({ repository: "openshift/hello-apb", tag: "v3" }, never)).toBeNull();
    expect(await source.resolve({ repository: "openshift/none", tag: "latest" }, never)).toBeNull();
    expect(await source.has?.("openshift/hello-apb", digest, never)).toBe(true);
    expect(await source.has?.("openshift/hello-apb", digestOf("other"), never)).toBe(false);
    expect(await source.read("openshift/hello-apb", digest, never)).toEqual({
      ...{ kind: "bundle", format: "apb", text: apb, runtime: 1 },
      artifact: { kind: "image", image: `${registry}/openshift/hello-apb`, digest },
    });
    expect(await source.read("openshift/hello-apb", second, never)).toMatchObject({
      runtime: 2,
      artifact: { image: "quay.example/team/hello-apb", digest: second },
    });
  });

  onServer("are read as the settings select them, and a tag that moves is another revision", async () => {
    const digest = push("hello-apb");
    push("python");
    const seen = await observe(source);
    expect(seen).toMatchObject({ completeness: "complete", error: null });
    expect([...seen.refs.keys()]).toEqual(["openshift/hello-apb"]);
    expect(seen.refs.get("openshift/hello-apb")?.seen).toMatchObject({ kind: "read", revision: { digest } });
    const moved = push("hello-apb", { content: "newer" });
    const again = await observe(source);
    expect(again.refs.get("openshift/hello-apb")?.seen).toMatchObject({ revision: { digest: moved } });
  });

  onServer("that hold no bundle, or a broken one, say so", async () => {
    const read = async (pushed: Pushed, name = "x") => source.read(`openshift/${name}`, push(name, pushed), never);
    expect(await read({ labels: {} })).toMatchObject({ kind: "not a bundle" });
    expect(await read({ labels: { [bundleLabels.apb]: "%%%" } })).toMatchObject({ kind: "invalid" });
    for (const reference of [
      "",
      "x",
      "host/x",
      `${registry}/x@${digestOf("another")}`,
      "https://r.example/x",
      "r.example/../x",
    ])
      expect(await read({ reference })).toMatchObject({ kind: "invalid", why: expect.stringContaining("pulled") });
    const digest = push("x");
    const object = images.images.get(`openshift/x@${digest}`);
    const image = { metadata: { name: digest }, dockerImageManifests: [{ digest: digestOf("arm") }] };
    images.images.set(`openshift/x@${digest}`, { ...object, image });
    expect(await source.read("openshift/x", digest, never)).toMatchObject({
      kind: "invalid",
      why: expect.stringContaining("importMode: Legacy"),
    });
    for (const wrong of [{ ...image, metadata: { name: digestOf("y") } }, null, "text", { metadata: 7 }]) {
      images.images.set(`openshift/x@${digest}`, { ...object, image: wrong });
      expect((await failureOf(source.read("openshift/x", digest, never))).failure).toBe("digest mismatch");
    }
    images.images.clear();
    expect((await failureOf(source.read("openshift/x", digest, never))).failure).toBe("not found");
  });

  onServer("whose image was not imported are unreadable, with what the cluster says, and not gone", async () => {
    const conditions = [
      { type: "ImportSuccess", status: "False", message: "quay.example: dial tcp: no such host\u001b[2J" },
    ];
    stream("failed-apb", [{ tag: "latest", items: null, conditions }]);
    stream("pending-apb", [], "openshift", { tags: [{ name: "latest", from: { kind: "DockerImage" } }] });
    stream("odd-apb", [{ tag: "latest", items: [{ image: "7" }] }]);
    stream("empty-apb", []);
    const resolve = (name: string) => source.resolve({ repository: `openshift/${name}`, tag: "latest" }, never);
    const failed = await failureOf(resolve("failed-apb"));
    expect(failed).toMatchObject({ failure: "server error" });
    expect(failed.message).toContain("not imported: quay.example: dial tcp: no such host?[2J");
    expect((await failureOf(resolve("pending-apb"))).message).toContain("not imported: not yet");
    expect((await failureOf(resolve("odd-apb"))).failure).toBe("malformed");
    expect(await resolve("empty-apb")).toBeNull();
    expect(await source.tags("openshift/failed-apb", never)).toBeNull();
    expect(await observe(source)).toMatchObject({ completeness: "partial" });
  });

  onServer(
    "of one namespace that may not be listed fail the whole list; the rights that the guide names are enough",
    async ({ kubectl, facts }) => {
      push("hello-apb");
      push("more-apb", { namespace: "team" });
      const rbac = { apiGroup: "rbac.authorization.k8s.io" };
      const grant = (namespace: string) => [
        { apiVersion: "v1", kind: "Namespace", metadata: { name: namespace } },
        {
          ...{ apiVersion: "rbac.authorization.k8s.io/v1", kind: "Role", metadata: { name: "bundles", namespace } },
          rules: [
            { apiGroups: ["image.openshift.io"], resources: ["imagestreams"], verbs: ["get", "list"] },
            { apiGroups: ["image.openshift.io"], resources: ["imagestreamimages"], verbs: ["get"] },
          ],
        },
        {
          ...{
            apiVersion: "rbac.authorization.k8s.io/v1",
            kind: "RoleBinding",
            metadata: { name: "bundles", namespace },
          },
          subjects: [{ ...rbac, kind: "User", name: "plain" }],
          roleRef: { ...rbac, kind: "Role", name: "bundles" },
        },
      ];
      await apply(kubectl, grant("openshift"));
      const plain = await openCluster({ access: { kind: "kubeconfig", file: facts.plainKubeconfig } });
      try {
        const asPlain = imageStreamSource(plain, ["openshift", "team"]);
        await until("the rights to count", async () => (await asPlain.tags("openshift/hello-apb", never)) !== null);
        expect(await failureOf(repositoriesOf(asPlain))).toMatchObject({
          failure: "forbidden",
          message: expect.stringMatching(/^image streams of team: /),
        });
        expect(await observe(asPlain)).toMatchObject({
          completeness: "failed",
          error: expect.stringContaining("team"),
        });
        await apply(kubectl, grant("team"));
        await until("the rights to count", async () => (await asPlain.tags("team/more-apb", never)) !== null);
        const seen = await observe(asPlain);
        expect([...seen.refs.values()].map((each) => each.seen.kind)).toEqual(["read", "read"]);
      } finally {
        plain.close();
      }
    },
  );

  // The last one: afterwards the API is gone.
  onServer(
    "that cannot be had say why, and nothing is gone: the API does not answer, then the cluster does not have it",
    async ({ kubectl }) => {
      push("hello-apb");
      await source.probe(never);
      const ref = { repository: "openshift/hello-apb", tag: "latest" };
      await images.stop();
      expect(await failureOf(source.resolve(ref, never))).toMatchObject({ failure: "unreachable" });
      expect(await failureOf(source.probe(never))).toMatchObject({ failure: "unreachable" });
      expect(await observe(source)).toMatchObject({ completeness: "failed" });
      await kubectl(["delete", "apiservice", "v1.image.openshift.io"]);
      await until("the API to be gone", async () => (await failureOf(source.probe(never))).failure === "not found");
      const gone = await failureOf(source.resolve(ref, never));
      expect(gone.message).toContain("the cluster has no image streams; only OpenShift does");
      expect(await observe(source)).toMatchObject({ completeness: "failed" });
    },
  );
});
