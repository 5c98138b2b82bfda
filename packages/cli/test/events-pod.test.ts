import { execFile } from "node:child_process";
import { chownSync, existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, onTestFinished, test } from "vitest";
import { parseAllDocuments } from "yaml";
import { apply } from "../../../tools/cluster/kubectl.js";
import { takePort } from "../../../tools/cluster/ports.js";
import { pushProgram } from "../../../tools/cluster/program-image.js";
import { provideProgram } from "../../../tools/cluster/programs.js";
import { clusterTimeoutMs, freshNamespace, sharedCluster } from "../../../tools/cluster/test-cluster.js";
import { required } from "../../../tools/required.js";
import { until } from "../../../tools/until.js";
import { eventsCluster, eventsLab, instanceIn } from "./events-lab.js";
import { folderWith } from "./program.js";

const run = promisify(execFile);
const chart = fileURLToPath(new URL("../../../deploy/helm/osbert-events", import.meta.url));

interface PodSpec {
  hostNetwork?: boolean;
  containers: { image: string; env?: object[] }[];
}

test(
  "the chart's pod runs in the cluster, as nobody in particular and with a root that it cannot write to, with TLS and a volume, and events flow",
  async () => {
    await eventsCluster();
    const cluster = required(
      "tests of the chart's pod",
      await sharedCluster({ node: true, knative: true, istio: true }),
    );
    const helm = await provideProgram("helm", console.log);
    if (cluster?.facts.node === undefined || typeof helm !== "string") return;
    const { kubectl, facts } = cluster;
    const { ip, registry } = cluster.facts.node;
    const [lab, image, port] = [await eventsLab(cluster), await pushProgram(registry), await takePort()];
    const namespace = freshNamespace("pod");
    const secret = (name: string, stringData: object) => ({
      ...{ apiVersion: "v1", kind: "Secret", metadata: { namespace, name }, stringData },
    });
    await apply(kubectl, [{ apiVersion: "v1", kind: "Namespace", metadata: { name: namespace } }]);
    const disk = folderWith({});
    chownSync(disk, nobody, nobody);
    await apply(kubectl, [
      { ...secret("tls", await selfSigned(ip)), type: "kubernetes.io/tls" },
      secret("platform", { password: "p" }),
      secret("metrics", { password: "m" }),
      // Stands in for a driver that makes a volume of a claim.
      {
        ...{ apiVersion: "v1", kind: "PersistentVolume", metadata: { name: namespace } },
        spec: {
          ...{ capacity: { storage: "1Gi" }, accessModes: ["ReadWriteOnce"], storageClassName: namespace },
          ...{ persistentVolumeReclaimPolicy: "Retain", hostPath: { path: disk } },
        },
      },
    ]);
    onTestFinished(async () => void (await kubectl(["delete", "persistentvolume", namespace, "--wait=false"])));
    const values = {
      store: { volume: { storageClass: namespace } },
      tls: { secret: "tls" },
      credentials: [{ username: "platform", secret: "platform" }],
      metrics: { secret: "metrics" },
      events: { integrationNamespace: lab.integration, linger: "500ms", debounce: "500ms", hysteresis: "500ms" },
    };
    const folder = folderWith({ "values.json": JSON.stringify(values) });
    const args = ["template", namespace, chart, "--namespace", namespace, "--values", join(folder, "values.json")];
    const options = { env: { PATH: process.env.PATH, HOME: folder } };
    const { stdout } = await run(join(helm, "helm"), [...args, "--kube-version", "1.34.4"], options);
    // It has this machine's network, because the API server answers there alone: at the node's address, on a port that is free.
    const here = stdout.replaceAll("8080", String(port)).replaceAll(/0\.0\.0\.0|127\.0\.0\.1/g, ip);
    const objects = parseAllDocuments(here).flatMap((document) => document.toJS() ?? []);
    const deployment = objects.find(({ kind }) => kind === "Deployment");
    const pod: PodSpec = deployment.spec.template.spec;
    const [container] = pod.containers;
    if (container === undefined) throw new Error("the chart has a container");
    pod.hostNetwork = true;
    container.image = image;
    const server = new URL(facts.url);
    container.env = [
      { name: "KUBERNETES_SERVICE_HOST", value: server.hostname },
      { name: "KUBERNETES_SERVICE_PORT", value: server.port },
    ];
    for (const object of objects.filter(({ metadata, kind }) => !metadata.namespace && !kind.startsWith("Cluster")))
      object.metadata.namespace = namespace;
    await apply(kubectl, objects);

    const { name } = deployment.metadata;
    // Its readiness probe is let in at /readyz.
    await until("the pod to be ready", async () => {
      const ready = "jsonpath={.status.readyReplicas}";
      return (await kubectl(["get", "deployment", name, "-n", namespace, "-o", ready])) === "1";
    });
    // Who asks here has no place for an authority.
    process.env.NODE_TLS_REJECT_UNAUTHORIZED = "0";
    onTestFinished(() => void delete process.env.NODE_TLS_REJECT_UNAUTHORIZED);
    const url = `https://${ip}:${port}`;
    const instance = instanceIn(lab.granted, lab.application, "platform:p");
    await instance.offered(url);
    expect(await instance.provision(url)).toBe(202);
    await instance.settles(url);
    await lab.trigger();
    await lab.arrives();
    await instance.isHealthy(url);
    expect(await instance.deprovision(url)).toBe(202);
    await instance.settles(url);
    expect(await kubectl(["logs", `deployment/${name}`, "-n", namespace])).not.toMatch(/forbidden/i);
    expect(existsSync(join(disk, "broker.db"))).toBe(true);
    await kubectl(["delete", "deployment", name, "-n", namespace]);
  },
  clusterTimeoutMs,
);

/** As whom the chart runs it. */
const nobody = 65_532;

async function selfSigned(ip: string): Promise<Readonly<Record<string, string>>> {
  const folder = folderWith({});
  const [key, certificate] = [join(folder, "tls.key"), join(folder, "tls.crt")];
  const made = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", key, "-out", certificate];
  await run("openssl", ["req", "-x509", ...made, "-subj", "/CN=broker", "-addext", `subjectAltName=IP:${ip}`]);
  return { "tls.key": readFileSync(key, "utf8"), "tls.crt": readFileSync(certificate, "utf8") };
}
