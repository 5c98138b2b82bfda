import { readdirSync, readFileSync } from "node:fs";
import { createBroker } from "@osbert/broker";
import { createHandler } from "@osbert/broker/http";
import { memoryStore } from "@osbert/journal/memory";
import { expect, onTestFinished, test } from "vitest";
import { apply, applyArgs, untilEstablished } from "../../../tools/cluster/kubectl.js";
import { serviceAccountKubeconfig } from "../../../tools/cluster/service-account.js";
import {
  clusterTimeoutMs,
  freshNamespace,
  sharedCluster,
  type TestCluster,
} from "../../../tools/cluster/test-cluster.js";
import { required } from "../../../tools/required.js";
import { until } from "../../../tools/until.js";
import { type AccessRule, type EventAccess, eventAccess } from "../src/access/event-access.js";
import type { Cluster } from "../src/cluster/cluster.js";
import type { ClusterObject, ObjectKind } from "../src/cluster/cluster-object.js";
import { openCluster } from "../src/cluster/open-cluster.js";
import { openEventServices } from "../src/events/event-services.js";
import { defaultFlowSettings } from "../src/flows/flow-settings.js";
import { createWiring } from "../src/wiring/create-wiring.js";
import { FlowLab, flowBroker, SaidApplications } from "./flow-lab.js";

test(
  "with the rights of the rules and no others events flow, APIs are bound and all is cleared away; nothing is granted that is not asked for",
  async () => {
    const test = required("tests of what is granted", await sharedCluster({ knative: true, istio: true }));
    if (test === undefined) return;
    const lab = await FlowLab.open(test);
    onTestFinished(() => lab.close());
    await defineKinds(test);
    const [namespace, name] = [await lab.namespace(), `shop-${freshNamespace("a")}`];
    const settings = { ...defaultFlowSettings, ...lab.settings, policies: "optional" } as const;
    const access = eventAccess({ settings });
    await grant(test, lab.integration, access);
    await offer(lab, namespace, name);

    const asked = new Set<string>();
    const kubeconfig = await serviceAccountKubeconfig(test, { namespace: lab.integration, name: "broker" });
    const opened = await openCluster({ access: { kind: "kubeconfig", file: kubeconfig } });
    onTestFinished(() => opened.close());
    const cluster = recording(opened, access, asked);
    const wiring = createWiring({ cluster, settings });
    const services = openEventServices({
      ...{ cluster, wiring, mapping: "services", secretNamespace: lab.integration },
    });
    const broker = createBroker({ services, store: memoryStore(), stderr: "bugs" });
    await broker.start();
    onTestFinished(() => broker.stop({ drainMs: 0 }));
    const ask = asking(createHandler(broker, { credentials: "none" }), namespace);

    let service: Offered | undefined;
    await until("the application in the catalog", async () => {
      const { body } = await ask("GET", "/v2/catalog");
      service = body?.services?.find((each) => JSON.stringify(each).includes(name));
      return service !== undefined;
    });
    const plan = service?.plans.find((each) => each.name === "all");
    const ids = { service_id: service?.id ?? "", plan_id: plan?.id ?? "" };
    const settles = () =>
      until("the end of the operation", async () => {
        const { status, body } = await ask("GET", "/v2/service_instances/i/last_operation");
        if (body?.state === "failed") throw new Error(body.description);
        return status === 410 || body?.state === "succeeded";
      });
    const body = { ...ids, organization_guid: "o", space_guid: "s" };
    expect((await ask("PUT", "/v2/service_instances/i?accepts_incomplete=true", body)).status).toBe(202);
    await settles();
    await lab.trigger(namespace);
    await lab.arrives(name, namespace);
    const healthy = async () =>
      (await ask("GET", "/v2/service_instances/i")).body?.metadata?.attributes?.health === "Healthy";
    await until("the instance to be healthy", healthy);
    await until("the flow to be mirrored", async () => {
      const [flow] = (await lab.get("eventflows.events.osbert.io", namespace)).items;
      return flow.spec.source === name && flow.status.conditions[0].status === "True";
    });
    const bound = await ask("PUT", "/v2/service_instances/i/service_bindings/b", ids);
    expect(bound.status).toBe(201);
    expect(JSON.stringify(bound.body?.credentials)).toContain("the password");
    // A Broker with a Trigger is kept, and looked at again only after a while.
    await test.kubectl(["delete", "trigger", "all", "-n", namespace]);
    const query = new URLSearchParams(ids);
    expect((await ask("DELETE", `/v2/service_instances/i/service_bindings/b?${query}`)).status).toBe(200);
    const deprovisioned = await ask("DELETE", `/v2/service_instances/i?${query}&accepts_incomplete=true`);
    expect(deprovisioned.status).toBe(202);
    await settles();
    await until("the Broker to go", async () => (await lab.get("broker", namespace, "default")) === undefined);
    for (const group of ["events.osbert.io", "applicationconnector.kyma-project.io"]) {
      const ofGrants = group === "events.osbert.io" ? "applicationgrants" : "applicationmappings";
      await test.kubectl(["delete", `${ofGrants}.${group}`, "--all", "-n", namespace, "--wait=false"]);
      await test.kubectl(["delete", `applications.${group}`, nameIn(group, name), "--wait=false"]);
    }

    const granted = pairsOf(access);
    await until("all that is granted to be asked for", async () => [...granted].every((pair) => asked.has(pair)));
    expect([...asked].filter((pair) => !granted.has(pair))).toEqual([]);
  },
  clusterTimeoutMs,
);

test(
  "where no policies are wanted any more, the rights of the rules are enough to remove those of earlier, and no others are touched",
  async () => {
    const test = required("tests of what is granted", await sharedCluster({ knative: true, istio: true }));
    if (test === undefined) return;
    const lab = await FlowLab.open(test);
    onTestFinished(() => lab.close());
    await defineKinds(test);
    const [namespace, name, store] = [await lab.namespace(), freshNamespace("shop"), memoryStore()];
    const applications = new SaidApplications();
    applications.add(name);
    applications.grant(namespace, name);
    await lab.channel(name);
    const settings = { ...lab.settings, mirror: false };
    const before = await flowBroker({
      ...{ facts: test.facts, applications, offered: [name], store },
      settings: { ...settings, policies: "required" },
    });
    await before.provision(namespace, "i", name);
    await before.settles(namespace, "i", "succeeded");
    await before.stop();
    const foreign = { name: freshNamespace("foreign"), namespace: "knative-eventing" };
    const allow = { apiVersion: "security.istio.io/v1", kind: "AuthorizationPolicy", metadata: foreign };
    await apply(test.kubectl, [{ ...allow, spec: { action: "ALLOW", rules: [{}] } }]);
    onTestFinished(() => void test.kubectl(["delete", "authorizationpolicy", foreign.name, "-n", foreign.namespace]));
    const ours = () =>
      test.kubectl([
        ...["get", "authorizationpolicy", "-A", "-o", "name"],
        ...["-l", `events.osbert.io/integration=${lab.integration}`],
      ]);
    expect((await ours()).trim().split("\n")).toHaveLength(1);

    await grant(test, lab.integration, eventAccess({ settings: { ...defaultFlowSettings, ...settings } }));
    const kubeconfig = await serviceAccountKubeconfig(test, { namespace: lab.integration, name: "broker" });
    const after = await flowBroker({ facts: { kubeconfig }, applications, offered: [name], store, settings });
    onTestFinished(() => after.stop());
    await until("ours to go", async () => (await ours()) === "");
    expect(await test.kubectl(["get", "authorizationpolicy", foreign.name, "-n", foreign.namespace])).not.toBe("");
    await after.becomes(namespace, "i", "Healthy");
  },
  clusterTimeoutMs,
);

test("an apply needs create beside patch, where there is nothing yet", async () => {
  const test = required("tests of what is granted", await sharedCluster());
  if (test === undefined) return;
  const namespace = freshNamespace("apply");
  await apply(test.kubectl, [{ apiVersion: "v1", kind: "Namespace", metadata: { name: namespace } }]);
  const map = JSON.stringify({ apiVersion: "v1", kind: "ConfigMap", metadata: { namespace, name: "it" } });
  const applied = () =>
    test.kubectl([...applyArgs, "-f", "-", "--as", `system:serviceaccount:${namespace}:broker`], map);
  const rules = (verbs: readonly string[]): EventAccess => ({
    cluster: [],
    namespaces: [{ namespace, rules: [{ apiGroups: [""], resources: ["configmaps"], verbs }] }],
  });
  await grant(test, namespace, rules(["patch"]));
  await expect(applied()).rejects.toThrow(/cannot create resource "configmaps"/);
  await grant(test, namespace, rules(["patch", "create"]));
  await until("the grant to count", async () => (await applied()) !== "");
});

async function defineKinds({ kubectl }: TestCluster): Promise<void> {
  const own = new URL("../crds/", import.meta.url);
  const files = [...readdirSync(own).map((name) => new URL(name, own)), new URL("crds/kyma.yaml", import.meta.url)];
  for (const file of files) await kubectl([...applyArgs, "-f", "-"], readFileSync(file, "utf8"));
  await untilEstablished(kubectl);
}

/** Grants a service account `broker` in a namespace exactly this. */
async function grant({ kubectl }: TestCluster, namespace: string, access: EventAccess): Promise<void> {
  const name = `broker-${namespace}`;
  const subjects = [{ kind: "ServiceAccount", name: "broker", namespace }];
  const role = (kind: string, rules: readonly AccessRule[], within: object) => [
    { apiVersion: "rbac.authorization.k8s.io/v1", kind, metadata: { name, ...within }, rules },
    {
      ...{ apiVersion: "rbac.authorization.k8s.io/v1", kind: `${kind}Binding`, metadata: { name, ...within } },
      ...{ roleRef: { apiGroup: "rbac.authorization.k8s.io", kind, name }, subjects },
    },
  ];
  await apply(kubectl, [
    { apiVersion: "v1", kind: "ServiceAccount", metadata: { name: "broker", namespace } },
    ...role("ClusterRole", access.cluster, {}),
    ...access.namespaces.flatMap(({ namespace: within, rules }) => role("Role", rules, { namespace: within })),
  ]);
}

/** An application of Osbert's own kind with events and an API, one of Kyma's, and grants of both. */
async function offer(lab: FlowLab, namespace: string, name: string): Promise<void> {
  await lab.channel(name);
  const own = "events.osbert.io/v1alpha1";
  const kyma = "applicationconnector.kyma-project.io/v1alpha1";
  const kymaName = nameIn("applicationconnector.kyma-project.io", name);
  const api = {
    ...{ name: "orders", targetUrl: "http://shop.example", gatewayUrl: "http://gateway.example" },
    credentials: { type: "Basic", secretName: name },
  };
  await apply(lab.test.kubectl, [
    {
      ...{ apiVersion: "v1", kind: "Secret", metadata: { namespace: lab.integration, name } },
      stringData: { username: "the user", password: "the password" },
    },
    {
      ...{ apiVersion: own, kind: "Application", metadata: { name } },
      spec: { services: [{ name, events: true, apis: [api] }] },
    },
    { apiVersion: own, kind: "ApplicationGrant", metadata: { namespace, name }, spec: { application: name } },
    {
      ...{ apiVersion: kyma, kind: "Application", metadata: { name: kymaName } },
      spec: { services: [{ id: `${name}-k`, name: "k", displayName: "k", entries: [{ type: "Events" }] }] },
    },
    { apiVersion: kyma, kind: "ApplicationMapping", metadata: { namespace, name: kymaName } },
  ]);
}

function nameIn(group: string, name: string): string {
  return group === "events.osbert.io" ? name : `${name}-kyma`;
}

/** The same cluster, with a note of every right that a call needs. Namespaces that have no Role of their own are users'. */
function recording(cluster: Cluster, { namespaces }: EventAccess, asked: Set<string>): Cluster {
  const own = new Set(namespaces.map(({ namespace }) => namespace));
  const note = (verbs: readonly string[], { plural, group }: ObjectKind, namespace = "", part = "") => {
    for (const verb of verbs) asked.add(pair(verb, `${plural}${part}`, group, own.has(namespace) ? namespace : ""));
  };
  const recorded: Partial<{ [Name in keyof Cluster]: (...args: never[]) => void }> = {
    read: (kind: ObjectKind, place: { readonly namespace: string }) => note(["get"], kind, place.namespace),
    list: (kind: ObjectKind, options?: { readonly namespace?: string }) =>
      note(["list"], kind, options?.namespace ?? ""),
    apply: (kind: ObjectKind, { metadata }: ClusterObject) => note(["create", "patch"], kind, metadata.namespace),
    applyStatus: (kind: ObjectKind, { metadata }: ClusterObject) =>
      note(["patch"], kind, metadata.namespace, "/status"),
    create: (kind: ObjectKind, { metadata }: ClusterObject) => note(["create"], kind, metadata.namespace),
    patch: (kind: ObjectKind, place: { readonly namespace: string }) => note(["patch"], kind, place.namespace),
    remove: (kind: ObjectKind, place: { readonly namespace: string }) => note(["delete"], kind, place.namespace),
    watch: (kind: ObjectKind, { namespace = "" }: { readonly namespace?: string }) =>
      note(["list", "watch"], kind, namespace),
    log: () => asked.add("log"),
  };
  return new Proxy(cluster, {
    get(target, name: keyof Cluster) {
      const method = target[name] as (...args: unknown[]) => unknown;
      return (...args: unknown[]) => {
        recorded[name]?.(...(args as never[]));
        return method.apply(target, args);
      };
    },
  });
}

function pairsOf({ cluster, namespaces }: EventAccess): ReadonlySet<string> {
  const of = (rules: readonly AccessRule[], namespace: string) =>
    rules.flatMap(({ apiGroups, resources, verbs }) =>
      verbs.map((verb) => pair(verb, resources[0] ?? "", apiGroups[0] ?? "", namespace)),
    );
  return new Set([...of(cluster, ""), ...namespaces.flatMap(({ namespace, rules }) => of(rules, namespace))]);
}

function pair(verb: string, resource: string, group: string, namespace: string): string {
  return `${verb} ${resource}.${group}${namespace === "" ? "" : ` in ${namespace}`}`;
}

interface Offered {
  readonly id: string;
  readonly plans: readonly { readonly id: string; readonly name: string }[];
}

interface Answered {
  readonly status: number;
  readonly body:
    | {
        readonly services?: readonly Offered[];
        readonly state?: string;
        readonly description?: string;
        readonly metadata?: { readonly attributes?: Readonly<Record<string, unknown>> };
        readonly credentials?: object;
      }
    | undefined;
}

function asking(handle: ReturnType<typeof createHandler>, namespace: string) {
  return async (method: string, path: string, body?: object): Promise<Answered> => {
    const headers: Readonly<Record<string, string>> = { "x-broker-api-version": "2.17" };
    const bytes = new TextEncoder().encode(body === undefined ? "" : JSON.stringify(body));
    const url = `/${namespace}${path}`;
    const answer = await handle({ method, url, header: (name) => headers[name.toLowerCase()], body: bytes });
    const text = Buffer.from(answer.body).toString();
    return { status: answer.status, body: text === "" ? undefined : JSON.parse(text) };
  };
}
