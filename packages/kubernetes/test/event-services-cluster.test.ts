import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Cluster as OwnCluster, startCluster } from "../../../tools/cluster/cluster.js";
import { apply } from "../../../tools/cluster/kubectl.js";
import { clusterTimeoutMs } from "../../../tools/cluster/test-cluster.js";
import { required } from "../../../tools/required.js";
import { until } from "../../../tools/until.js";
import { openCluster } from "../src/cluster/open-cluster.js";
import { startEventBroker } from "./event-broker.js";

let own: OwnCluster | undefined;
beforeAll(async () => {
  own = required("tests of applications on an API server of their own", await startCluster({}));
}, clusterTimeoutMs);
afterAll(() => own?.stop());

/** Watches that look again soon: tests wait for what they see. */
const pace = { lookAgainMs: 500, behindAfterMs: 1_000, firstDelayMs: 100, longestDelayMs: 1_000 };
const kyma = "applicationconnector.kyma-project.io/v1alpha1";
const osbert = "events.osbert.io/v1alpha1";

function application(name: string, ids: readonly string[]) {
  const services = ids.map((id) => ({ id, name: id, entries: [{ type: "Events" }] }));
  return { apiVersion: kyma, kind: "Application", metadata: { name }, spec: { services } };
}

function mapping(namespace: string, name: string, ids?: readonly string[]) {
  const spec = ids === undefined ? {} : { services: ids.map((id) => ({ id })) };
  return { apiVersion: kyma, kind: "ApplicationMapping", metadata: { namespace, name }, spec };
}

test(
  "what applications offer follows the API server: without its kinds, with them, by watch, while it is down, and after it",
  async () => {
    if (own === undefined) return;
    const { kubectl, facts } = own;
    const open = () => openCluster({ access: { kind: "kubeconfig", file: facts.kubeconfig }, pace });
    const cluster = await open();
    const first = await startEventBroker({ cluster });
    const { sees, plans, ask, source } = first;
    await until("the kinds are known not to be there", async () => source.applications.state === "no such kind");
    expect(await plans("shop")).toEqual(["503"]);

    for (const file of ["../crds/application.yaml", "../crds/application-grant.yaml", "./crds/kyma.yaml"])
      await kubectl(["apply", "-f", "-"], await readFile(fileURLToPath(new URL(file, import.meta.url)), "utf8"));
    await kubectl(["wait", "--for=condition=Established", "crd", "--all", "--timeout=60s"]);
    for (const namespace of ["shop", "other"]) await kubectl(["create", "namespace", namespace]);
    await apply(kubectl, [
      application("commerce", ["a", "b"]),
      mapping("shop", "commerce"),
      mapping("other", "commerce", ["b"]),
    ]);
    await sees("shop", ["a-plan", "b-plan"]);
    await sees("other", ["b-plan"]);
    const etags = [await ask("GET", "/shop/v2/catalog"), await ask("GET", "/other/v2/catalog")].map(
      ({ headers }) => headers.etag,
    );
    expect(new Set(etags).size).toBe(2);
    expect((await ask("GET", "/other/v2/catalog", { as: "shop" })).status).toBe(401);

    await apply(kubectl, [application("commerce", ["a", "b", "c"])]);
    await sees("shop", ["a-plan", "b-plan", "c-plan"]);
    await apply(kubectl, [
      {
        apiVersion: osbert,
        kind: "Application",
        metadata: { name: "crm" },
        spec: { services: [{ name: "leads", id: "leads", events: true }] },
      },
      {
        apiVersion: osbert,
        kind: "ApplicationGrant",
        metadata: { name: "crm", namespace: "shop" },
        spec: { application: "crm" },
      },
    ]);
    await sees("shop", ["a-plan", "b-plan", "c-plan", "leads-events"]);
    const nothing = {
      apiVersion: osbert,
      kind: "Application",
      metadata: { name: "nothing" },
      spec: { services: [{ name: "x" }] },
    };
    await expect(apply(kubectl, [nothing])).rejects.toThrow("a service has events, APIs or both");
    expect((await first.provision("shop", "i1", "a")).status).toBe(201);

    await own.stopPart("apiserver");
    await until("the server is not heard of", async () => source.applications.state === "behind");
    expect(await plans("shop")).toEqual(["a-plan", "b-plan", "c-plan", "leads-events"]);
    await first.stop();
    cluster.close();
    const again = await startEventBroker({ cluster: await open(), store: first.store });
    expect(await again.plans("shop")).toEqual(["a-plan", "b-plan", "c-plan", "leads-events"]);
    expect(await again.plans("other")).toEqual(["b-plan"]);

    await own.startPart("apiserver");
    await until("it is current again", async () => again.source.applications.state === "current");
    await kubectl(["delete", "applicationmapping", "commerce", "-n", "other"]);
    await again.sees("other", ["404"]);
    await kubectl(["delete", `applications.${kyma.split("/")[0]}`, "commerce"]);
    await again.sees("shop", ["leads-events"]);
    expect((await again.deprovision("shop", "i1", "a")).status).toBe(200);
    expect(again.made).toEqual(["deprovision commerce a events gone"]);
  },
  clusterTimeoutMs,
);
