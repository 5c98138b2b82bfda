import { randomBytes } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { answers } from "./answers.js";
import { makeCertificates } from "./certificates.js";
import type { ClusterFacts } from "./options.js";
import { makePart, type Part } from "./part.js";
import { takePort } from "./ports.js";

export interface ControlPlane {
  readonly facts: ClusterFacts;
  /** In the order in which they start. */
  readonly parts: readonly Part[];
}

/** etcd, kube-apiserver, kube-controller-manager and kube-scheduler: each as a process, on ports of the loopback interface. */
export async function prepareControlPlane(directory: string, program: string): Promise<ControlPlane> {
  const { file } = await makeCertificates(join(directory, "pki"));
  const [etcdPort, peerPort, port, managerPort, schedulerPort] = await Promise.all([
    takePort(),
    takePort(),
    takePort(),
    takePort(),
    takePort(),
  ]);
  const url = `https://127.0.0.1:${port}`;
  const [admin, plain] = [randomBytes(18).toString("hex"), randomBytes(18).toString("hex")];
  const authority = readFileSync(file("ca", "crt"));
  const kubeconfig = writeKubeconfig(join(directory, "kubeconfig"), url, authority, "admin", admin);
  const plainKubeconfig = writeKubeconfig(join(directory, "plain.kubeconfig"), url, authority, "plain", plain);
  const tokens = join(directory, "tokens.csv");
  writeFileSync(tokens, `${admin},admin,admin,"system:masters"\n${plain},plain,plain\n`, { mode: 0o600 });

  const part = (name: string, args: readonly string[], isReady: () => Promise<boolean>) =>
    makePart(name, { command: [program, ...args], log: join(directory, `${name}.log`), isReady });
  const asAdmin = { authorization: `Bearer ${admin}` };
  const [etcdUrl, peerUrl] = [`http://127.0.0.1:${etcdPort}`, `http://127.0.0.1:${peerPort}`];
  const etcd = part(
    "etcd",
    [
      "etcd",
      "--name=only",
      `--data-dir=${join(directory, "etcd")}`,
      // What a test cluster has written need not outlive the machine.
      "--unsafe-no-fsync",
      `--listen-client-urls=${etcdUrl}`,
      `--advertise-client-urls=${etcdUrl}`,
      `--listen-peer-urls=${peerUrl}`,
      `--initial-advertise-peer-urls=${peerUrl}`,
      `--initial-cluster=only=${peerUrl}`,
      "--log-level=warn",
    ],
    () => answers(`${etcdUrl}/health`),
  );
  const apiserver = part(
    "apiserver",
    [
      "kube-apiserver",
      `--etcd-servers=${etcdUrl}`,
      "--bind-address=127.0.0.1",
      `--secure-port=${port}`,
      "--advertise-address=127.0.0.1",
      "--endpoint-reconciler-type=none",
      `--tls-cert-file=${file("apiserver", "crt")}`,
      `--tls-private-key-file=${file("apiserver", "key")}`,
      `--client-ca-file=${file("ca", "crt")}`,
      `--token-auth-file=${tokens}`,
      `--kubelet-client-certificate=${file("kubelet-client", "crt")}`,
      `--kubelet-client-key=${file("kubelet-client", "key")}`,
      "--kubelet-preferred-address-types=InternalIP",
      "--authorization-mode=Node,RBAC",
      "--allow-privileged=true",
      "--service-account-issuer=https://kubernetes.default.svc",
      `--service-account-key-file=${file("service-accounts", "crt")}`,
      `--service-account-signing-key-file=${file("service-accounts", "key")}`,
      "--service-cluster-ip-range=10.0.0.0/24",
      "--profiling=false",
    ],
    () => answers(`${url}/readyz`, asAdmin),
  );
  const manager = part(
    "controller-manager",
    [
      "kube-controller-manager",
      `--kubeconfig=${kubeconfig}`,
      "--bind-address=127.0.0.1",
      `--secure-port=${managerPort}`,
      "--leader-elect=false",
      "--use-service-account-credentials=false",
      `--service-account-private-key-file=${file("service-accounts", "key")}`,
      `--root-ca-file=${file("ca", "crt")}`,
      `--cluster-signing-cert-file=${file("ca", "crt")}`,
      `--cluster-signing-key-file=${file("ca", "key")}`,
      "--profiling=false",
    ],
    // It works once a namespace has its account: without that, no pod can be made there.
    async () =>
      (await answers(`https://127.0.0.1:${managerPort}/healthz`)) &&
      (await answers(`${url}/api/v1/namespaces/default/serviceaccounts/default`, asAdmin)),
  );
  const scheduler = part(
    "scheduler",
    [
      "kube-scheduler",
      `--kubeconfig=${kubeconfig}`,
      "--bind-address=127.0.0.1",
      `--secure-port=${schedulerPort}`,
      "--leader-elect=false",
      "--profiling=false",
    ],
    () => answers(`https://127.0.0.1:${schedulerPort}/healthz`),
  );
  const facts: ClusterFacts = { directory, kubeconfig, plainKubeconfig, url, program };
  return { facts, parts: [etcd, apiserver, manager, scheduler] };
}

/** JSON is YAML. */
export function writeKubeconfig(path: string, server: string, authority: Buffer, user: string, token: string): string {
  const cluster = { server, "certificate-authority-data": authority.toString("base64") };
  const config = {
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: "osbert", cluster }],
    users: [{ name: user, user: { token } }],
    contexts: [{ name: "osbert", context: { cluster: "osbert", user } }],
    "current-context": "osbert",
  };
  writeFileSync(path, `${JSON.stringify(config, undefined, 2)}\n`, { mode: 0o600 });
  return path;
}
