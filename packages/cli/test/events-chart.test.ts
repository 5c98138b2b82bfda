import { execFile } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { beforeAll, expect, test } from "vitest";
import { parse, parseAllDocuments } from "yaml";
import { apply } from "../../../tools/cluster/kubectl.js";
import { provideProgram } from "../../../tools/cluster/programs.js";
import { clusterTimeoutMs, freshNamespace, sharedCluster } from "../../../tools/cluster/test-cluster.js";
import { required } from "../../../tools/required.js";
import { until } from "../../../tools/until.js";
import { accessObjects } from "../src/serve/access-objects.js";
import { settingsSchema } from "../src/settings/json-schema.js";
import { loadSettings } from "../src/settings/load.js";
import { folderWith } from "./program.js";
import { systemWith } from "./system.js";

const chart = fileURLToPath(new URL("../../../deploy/helm/osbert-events", import.meta.url));
const kubeVersion = ["--kube-version", "1.34.4"];

interface Rendered {
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string };
  readonly rules: readonly object[];
  readonly subjects: readonly object[];
  readonly data: Readonly<Record<string, string>>;
  readonly spec: { readonly template: { readonly spec: object } };
}

let program: string | undefined;
beforeAll(async () => {
  const found = await provideProgram("helm", console.log);
  const folder = required("tests of the Helm chart", typeof found === "string" ? { found } : found)?.found;
  program = folder === undefined ? undefined : join(folder, "helm");
}, clusterTimeoutMs);

async function helm(
  args: readonly string[],
  values: object,
  env: Readonly<Record<string, string>> = {},
): Promise<string> {
  const folder = folderWith({});
  const file = join(folder, "values.json");
  writeFileSync(file, JSON.stringify(values));
  const home = { HELM_CACHE_HOME: folder, HELM_CONFIG_HOME: folder, HELM_DATA_HOME: folder, HOME: folder };
  const options = { env: { PATH: process.env.PATH, ...home, ...env }, maxBuffer: 2 ** 26 };
  return (await promisify(execFile)(program ?? "", [...args, "--values", file], options)).stdout;
}

async function rendered(values: object): Promise<readonly Rendered[]> {
  const text = await helm(["template", "it", chart, "--namespace", "osbert", ...kubeVersion], values);
  return parseAllDocuments(text)
    .map((document) => document.toJS() as Rendered | null)
    .filter((object) => object !== null);
}

/** All that the chart can say. */
const all = {
  replicas: 3,
  store: { secret: "db" },
  keys: { secret: "keys" },
  credentials: [
    { username: "platform", secret: "platform" },
    { username: "team-a", secret: "a", namespace: "team-a" },
  ],
  admin: { secret: "admin" },
  metrics: { secret: "metrics" },
  tls: { secret: "tls" },
  events: { policies: "optional", linger: "1m" },
};

test("the chart is as Helm wants charts, and refuses what it cannot use", async () => {
  if (program === undefined) return;
  for (const values of [{}, all])
    expect(await helm(["lint", "--strict", chart], values)).toContain("0 chart(s) failed");
  await expect(rendered({ events: { maping: "services" } })).rejects.toThrow(/maping/);
  await expect(rendered({ replicas: "many" })).rejects.toThrow(/replicas/);
  await expect(rendered({ replicas: 2 })).rejects.toThrow(/needs a store that they share/);
  await expect(rendered({ replicas: 2, store: { secret: "db" } })).rejects.toThrow(/needs credentials/);
});

test("the values in the guide are values that the chart takes", async () => {
  if (program === undefined) return;
  const guide = readFileSync(new URL("../../../docs/guides/operating-events.md", import.meta.url), "utf8");
  const [, yaml = ""] = /^```yaml\n(# values\.yaml\n[\s\S]*?)^```$/m.exec(guide) ?? [];
  const [deployment] = (await rendered(parse(yaml))).filter(({ kind }) => kind === "Deployment");
  expect(JSON.stringify(deployment)).toContain("registry.example/osbert:0.1.0");
});

test("what the values say of events is what the settings say; `npm run docs` writes it", () => {
  const { properties } = JSON.parse(readFileSync(join(chart, "values.schema.json"), "utf8"));
  expect(properties.events).toEqual((settingsSchema().properties as Readonly<Record<string, unknown>>).events);
});

test.each([
  {},
  { policies: "required", integrationNamespace: "wires", secretNamespace: "secrets", systemNamespace: "knative" },
  { policies: "optional", brokerClass: "KafkaNamespaced", mirror: false, deleteBroker: "never", kinds: ["osbert"] },
  { deleteBroker: "always", kinds: ["kyma"], channelKind: { group: "messaging.example", plural: "kafkachannels" } },
])("the chart grants what the program says that it needs, with events: %j", async (events) => {
  if (program === undefined) return;
  const yaml = JSON.stringify({ events: { ...events, enabled: true } });
  const { settings } = loadSettings("osbert.yaml", systemWith({ "/place/osbert.yaml": yaml }));
  const needed = accessObjects(settings, { name: "it-osbert-events", namespace: "osbert" }) as readonly Rendered[];
  const given = await rendered({ events });
  expect(grantsOf(given)).toEqual(grantsOf(needed));
  const subject = { kind: "ServiceAccount", name: "it-osbert-events", namespace: "osbert" };
  for (const { subjects } of given.filter(({ kind }) => kind.endsWith("Binding"))) expect(subjects).toEqual([subject]);
});

/** Each verb on each resource, and where. */
function grantsOf(objects: readonly Rendered[]): readonly string[] {
  const roles = objects.filter(({ kind }) => kind === "Role" || kind === "ClusterRole");
  return roles
    .flatMap(({ metadata, rules }) =>
      (rules as readonly { apiGroups: string[]; resources: string[]; verbs: string[] }[]).flatMap(
        ({ apiGroups, resources, verbs }) =>
          verbs.map((verb) => `${verb} ${resources.join()}.${apiGroups.join()} in ${metadata.namespace ?? "all"}`),
      ),
    )
    .sort();
}

test("the settings of the chart are settings that the program takes, with every secret in a file that is mounted", async () => {
  if (program === undefined) return;
  const objects = await rendered(all);
  const yaml = objects.find(({ kind }) => kind === "ConfigMap")?.data["osbert.yaml"] ?? "";
  const at = "/etc/osbert/secrets";
  const files = {
    [`${at}/store/url`]: "postgres://user:password@host/database\n",
    [`${at}/keys/keys`]: `one:${Buffer.alloc(32, 1).toString("base64")}\n`,
    [`${at}/credential-0/password`]: "p",
    [`${at}/credential-1/password`]: "a",
    [`${at}/admin/password`]: "o",
    [`${at}/metrics/password`]: "m",
    [`${at}/tls/tls.crt`]: "x",
    [`${at}/tls/tls.key`]: "x",
  };
  const { settings } = loadSettings("osbert.yaml", systemWith({ ...files, "/place/osbert.yaml": yaml }));
  expect(settings.events).toMatchObject({ enabled: true, policies: "optional", linger: 60_000 });
  expect(settings.credentials?.map(({ username, platform }) => [username, platform])).toEqual([
    ["platform", undefined],
    ["team-a", "team-a"],
  ]);
  const pod = JSON.stringify(objects.find(({ kind }) => kind === "Deployment")?.spec.template.spec);
  for (const folder of Object.keys(files).map((file) => file.slice(0, file.lastIndexOf("/"))))
    expect(pod).toContain(folder);
});

test(
  "the chart is installed in a cluster that takes restricted pods alone, upgraded and uninstalled",
  async () => {
    const cluster = required("tests of the Helm chart", await sharedCluster({ knative: true, istio: true }));
    if (program === undefined || cluster === undefined) return;
    const { kubectl, facts } = cluster;
    const [namespace, integration] = [freshNamespace("chart"), freshNamespace("integration")];
    const labels = { "pod-security.kubernetes.io/enforce": "restricted" };
    await apply(kubectl, [
      { apiVersion: "v1", kind: "Namespace", metadata: { name: namespace, labels } },
      { apiVersion: "v1", kind: "Namespace", metadata: { name: integration } },
    ]);
    const values = { ...all, events: { ...all.events, integrationNamespace: integration } };
    const env = { KUBECONFIG: facts.kubeconfig };
    const release = freshNamespace("r");
    const get = async (what: string) => JSON.parse(await kubectl(["get", what, "-n", namespace, "-o", "json"])).items;
    await helm(["install", release, chart, "-n", namespace], values, env);
    // They have no node here, but they were let in.
    await until("the pods", async () => (await get("pods")).length === 3);
    expect(await get("poddisruptionbudgets")).toHaveLength(1);
    expect(await get("services")).toHaveLength(1);
    const account = `system:serviceaccount:${namespace}:${release}-osbert-events`;
    const can = (...args: readonly string[]) => kubectl(["auth", "can-i", ...args, "--as", account]).catch(() => "no");
    expect(await can("create", "subscriptions.messaging.knative.dev", "-n", integration)).toContain("yes");
    expect(await can("create", "subscriptions.messaging.knative.dev", "-n", namespace)).toContain("no");
    expect(await can("get", "secrets", "-n", namespace)).toContain("no");
    await helm(["upgrade", release, chart, "-n", namespace], { ...values, replicas: 2 }, env);
    expect((await get("deployments"))[0].spec.replicas).toBe(2);
    await promisify(execFile)(program, ["uninstall", release, "-n", namespace], {
      env: { ...env, HOME: facts.directory },
    });
    expect(await get("deployments")).toEqual([]);
    // The definitions stay: with them would go every Application, and with those the grants.
    expect(await kubectl(["get", "crd", "applications.events.osbert.io"])).toContain("applications.events.osbert.io");
  },
  clusterTimeoutMs,
);
