import type { Job } from "@osbert/bundles";
import { isJsonObject, type JsonObject } from "@osbert/protocol";
import type { ClusterObject } from "../cluster/cluster-object.js";
import { idAnnotation, jobLabels, labels, resumedAnnotation } from "./job-names.js";
import type { RecordFacts } from "./job-record.js";
import type { JobRunnerSettings } from "./job-runner-options.js";
import { kinds } from "./kinds.js";
import { bundleScript, keeperScript, podPlaces, prepareScript } from "./pod-scripts.js";

/** What a job is made of, before anything is written. */
export interface JobPlan {
  readonly name: string;
  readonly facts: RecordFacts;
  readonly job: Job;
  readonly image: string;
  /** Of the own format: what is run, with its arguments, before the action. */
  readonly command: readonly string[];
  /** The bundle's files, packed; of a bundle of files. */
  readonly files: Buffer | null;
}

export const containers = { bundle: "bundle", keeper: "keeper", prepare: "prepare" } as const;
/** In the Secret with the input. */
export const inputKey = "input.json";

/**
 * The Job, suspended: no controller makes a pod of it before it is told to. It has one pod, which nothing starts a second time. All that the bundle is
 * given is in Secrets, none of it here. Pure.
 */
export function jobObject(plan: JobPlan, settings: JobRunnerSettings): ClusterObject {
  const { name, facts, job } = plan;
  const isClassic = facts.format === "apb";
  const seconds = (ms: number) => Math.ceil(ms / 1_000);
  // The backstop of a pod whose own watch does not work, and of one that never begins. A keeper has the time to be asked besides.
  const deadline =
    settings.startWithinMs + facts.timeoutMs + settings.graceMs + (isClassic ? 0 : settings.uncollectedMs);
  return {
    apiVersion: "batch/v1",
    kind: "Job",
    metadata: {
      ...{ name, namespace: facts.namespace, labels: jobLabels(name) },
      annotations: { [idAnnotation]: facts.id, [resumedAnnotation]: "no" },
    },
    spec: {
      suspend: true,
      ...{ backoffLimit: 0, parallelism: 1, completions: 1 },
      activeDeadlineSeconds: seconds(deadline),
      template: {
        metadata: { labels: jobLabels(name), annotations: { [idAnnotation]: facts.id } },
        spec: {
          ...settings.podSpec,
          restartPolicy: "Never",
          serviceAccountName: name,
          automountServiceAccountToken: hasToken(facts, settings),
          enableServiceLinks: false,
          ...(settings.hostNetwork && job.limits.network && { hostNetwork: true }),
          ...(settings.imagePullSecrets.length > 0 && {
            imagePullSecrets: settings.imagePullSecrets.map((each) => ({ name: each })),
          }),
          securityContext: { seccompProfile: { type: "RuntimeDefault" } },
          terminationGracePeriodSeconds: seconds(settings.graceMs) + 5,
          ...(isClassic ? classicPod(plan, settings) : ownPod(plan, settings)),
        },
      },
    },
  };
}

/** A bundle that may do something in the cluster. */
export function hasToken({ sandbox, target, format }: RecordFacts, { role }: JobRunnerSettings): boolean {
  return (role !== null && (sandbox || target !== null)) || (format === "apb" && sandbox);
}

function ownPod({ name, facts, job, image, command, files }: JobPlan, settings: JobRunnerSettings) {
  const seconds = (ms: number) => String(Math.max(1, Math.ceil(ms / 1_000)));
  const helper = {
    image: settings.helperImage,
    imagePullPolicy: settings.imagePullPolicy,
    // They print only why they could not do their work.
    terminationMessagePolicy: "FallbackToLogsOnError",
    securityContext: {
      ...shutIn,
      readOnlyRootFilesystem: true,
      runAsNonRoot: true,
      runAsUser: nobody,
      runAsGroup: nobody,
    },
    resources: { limits: { cpu: "500m", memory: "64Mi" }, requests: { cpu: "10m", memory: "16Mi" } },
  };
  const hide = hasToken(facts, settings) ? "no" : "yes";
  const bundleArguments = [seconds(settings.graceMs), seconds(job.limits.cpuSeconds * 1_000), hide];
  const keeperArguments = [facts.outputBytes, seconds(facts.timeoutMs), seconds(settings.uncollectedMs)].map(String);
  return {
    initContainers: [
      {
        ...helper,
        name: containers.prepare,
        command: ["sh", "-c", prepareScript, "osbert", files === null ? "no" : "yes"],
        volumeMounts: [
          { name: "tools", mountPath: podPlaces.tools },
          ...(files === null
            ? []
            : [
                { name: "bundle", mountPath: podPlaces.bundle },
                { name: "files", mountPath: "/files", readOnly: true },
              ]),
        ],
      },
    ],
    containers: [
      // The kubelet starts them in this order: the time begins when the bundle's image is there.
      {
        name: containers.bundle,
        image,
        imagePullPolicy: settings.imagePullPolicy,
        command: [podPlaces.busybox, "sh", "-c", bundleScript, "osbert", ...bundleArguments, ...command, job.action],
        env: [...environment],
        ...(files !== null && { workingDir: podPlaces.bundle }),
        securityContext:
          files === null
            ? { ...shutIn, ...(settings.runAsNonRoot && { runAsNonRoot: true }) }
            : { ...shutIn, readOnlyRootFilesystem: true, runAsNonRoot: true, runAsUser: nobody, runAsGroup: nobody },
        resources: resourcesOf(job, settings),
        volumeMounts: [
          { name: "tools", mountPath: podPlaces.tools, readOnly: true },
          { name: "input", mountPath: podPlaces.inputFolder, readOnly: true },
          { name: "tmp", mountPath: "/tmp" },
          ...(files === null ? [] : [{ name: "bundle", mountPath: podPlaces.bundle, readOnly: true }]),
        ],
      },
      {
        ...helper,
        name: containers.keeper,
        command: [podPlaces.busybox, "sh", "-c", keeperScript, "osbert", ...keeperArguments],
        volumeMounts: [
          { name: "tools", mountPath: podPlaces.tools, readOnly: true },
          { name: "kept", mountPath: podPlaces.kept },
        ],
      },
    ],
    volumes: [
      { name: "tools", emptyDir: {} },
      { name: "kept", emptyDir: {} },
      { name: "tmp", emptyDir: { sizeLimit: settings.temporaryStorage } },
      inputVolume(name),
      ...(files === null
        ? []
        : [
            { name: "bundle", emptyDir: {} },
            { name: "files", secret: { secretName: filesName(name), defaultMode: 0o444 } },
          ]),
    ],
  };
}

/**
 * As a classic bundle expects it: its own entry point, the action and its variables as arguments, the state of earlier actions and the operator's
 * secrets in folders, and its name, under which it leaves what it has to say. What it prints is for people, and goes to the container's log.
 */
function classicPod({ name, facts, job, image }: JobPlan, settings: JobRunnerSettings) {
  const secrets = job.secrets ?? {};
  return {
    activeDeadlineSeconds: Math.max(1, Math.ceil(facts.timeoutMs / 1_000)),
    containers: [
      {
        name: containers.bundle,
        image,
        imagePullPolicy: settings.imagePullPolicy,
        args: [job.action, "--extra-vars", `@${podPlaces.input}`],
        env: [
          ...environment,
          { name: "POD_NAME", valueFrom: { fieldRef: { fieldPath: "metadata.name" } } },
          { name: "POD_NAMESPACE", valueFrom: { fieldRef: { fieldPath: "metadata.namespace" } } },
          { name: "BUNDLE_STATE_LOCATION", value: statePath },
        ],
        securityContext: { ...shutIn, ...(settings.runAsNonRoot && { runAsNonRoot: true }) },
        resources: resourcesOf(job, settings),
        volumeMounts: [
          { name: "input", mountPath: podPlaces.inputFolder, readOnly: true },
          { name: "state", mountPath: statePath, readOnly: true },
          { name: "tmp", mountPath: "/tmp" },
          ...(Object.keys(secrets).length === 0
            ? []
            : [{ name: "secrets", mountPath: "/etc/apb-secrets", readOnly: true }]),
        ],
      },
    ],
    volumes: [
      inputVolume(name),
      { name: "state", secret: { secretName: stateName(name), defaultMode: 0o444 } },
      { name: "tmp", emptyDir: { sizeLimit: settings.temporaryStorage } },
      ...(Object.keys(secrets).length === 0
        ? []
        : [
            {
              name: "secrets",
              secret: {
                secretName: secretsName(name),
                defaultMode: 0o444,
                items: secretItems(secrets).map(({ key, path }) => ({ key, path })),
              },
            },
          ]),
    ],
  };
}

/** The Secrets that a job's pod mounts. They belong to the Job, and go with it. */
export function inputSecrets(plan: JobPlan, jobUid: string): readonly ClusterObject[] {
  const { name, facts, job, files } = plan;
  const secret = (called: string, data: Readonly<Record<string, Buffer>>): ClusterObject => ({
    apiVersion: "v1",
    kind: "Secret",
    metadata: {
      name: called,
      namespace: facts.namespace,
      labels: jobLabels(name),
      ownerReferences: [ownerJob(name, jobUid)],
    },
    type: "Opaque",
    immutable: true,
    data: Object.fromEntries(Object.entries(data).map(([key, bytes]) => [key, bytes.toString("base64")])),
  });
  const input = secret(name, { [inputKey]: Buffer.from(`${JSON.stringify(job.input)}\n`) });
  if (facts.format === "osbert")
    return files === null ? [input] : [input, secret(filesName(name), { "files.tar.gz": files })];
  const items = secretItems(job.secrets ?? {});
  return [
    input,
    secret(stateName(name), stateFiles(isJsonObject(job.input._apb_state) ? job.input._apb_state : {})),
    ...(items.length === 0
      ? []
      : [secret(secretsName(name), Object.fromEntries(items.map(({ key, text }) => [key, Buffer.from(text)])))]),
  ];
}

export function ownerJob(name: string, uid: string) {
  return { apiVersion: "batch/v1", kind: "Job", name, uid, blockOwnerDeletion: true, controller: false };
}

/** Whom the pod runs as in the cluster. Without a role it may do nothing there. */
export function serviceAccount({ name, facts }: JobPlan, jobUid: string): ClusterObject {
  return {
    apiVersion: "v1",
    kind: "ServiceAccount",
    metadata: { name, namespace: facts.namespace, labels: jobLabels(name), ownerReferences: [ownerJob(name, jobUid)] },
    automountServiceAccountToken: false,
  };
}

/** Nothing in, nothing out. It holds where the cluster's network enforces policies, and nowhere else. */
export function denyAll({ name, facts }: JobPlan, jobUid: string): ClusterObject {
  return {
    apiVersion: "networking.k8s.io/v1",
    kind: kinds.networkPolicy.kind,
    metadata: { name, namespace: facts.namespace, labels: jobLabels(name), ownerReferences: [ownerJob(name, jobUid)] },
    spec: { podSelector: { matchLabels: { [labels.job]: name } }, policyTypes: ["Ingress", "Egress"] },
  };
}

/** The roles of a job's service account: in its sandbox, and in the namespace that its instance is for, which does not go with the Job. */
export function roleBindings(
  { name, facts }: Pick<JobPlan, "name" | "facts">,
  settings: JobRunnerSettings,
): readonly ClusterObject[] {
  const binding = (called: string, namespace: string, role: string): ClusterObject => ({
    apiVersion: "rbac.authorization.k8s.io/v1",
    kind: kinds.roleBinding.kind,
    metadata: { name: called, namespace, labels: jobLabels(name), annotations: { [idAnnotation]: facts.id } },
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: role },
    subjects: [{ kind: "ServiceAccount", name, namespace: facts.namespace }],
  });
  const { role, sandboxRole } = settings;
  return [
    ...(facts.sandbox && facts.format === "apb" ? [binding(`${name}-sandbox`, facts.namespace, sandboxRole)] : []),
    ...(role !== null && facts.sandbox ? [binding(name, facts.namespace, role)] : []),
    ...(role !== null && facts.target !== null ? [binding(name, facts.target, role)] : []),
  ];
}

export function sandboxNamespace({ name, facts }: JobPlan): ClusterObject {
  return {
    apiVersion: "v1",
    kind: "Namespace",
    metadata: { name: facts.namespace, labels: jobLabels(name), annotations: { [idAnnotation]: facts.id } },
  };
}

const nobody = 65_534;
const statePath = "/etc/apb/state";
const shutIn = { allowPrivilegeEscalation: false, capabilities: { drop: ["ALL"] } };
const environment = [
  { name: "OSBERT_INPUT", value: podPlaces.input },
  { name: "TMPDIR", value: "/tmp" },
  { name: "LANG", value: "C.UTF-8" },
  { name: "HOME", value: "/tmp" },
] as const;

function inputVolume(name: string) {
  return {
    name: "input",
    // Only this key, and only if it is there: without the input no pod begins.
    secret: { secretName: name, defaultMode: 0o444, items: [{ key: inputKey, path: inputKey }] },
  };
}

const filesName = (name: string) => `${name}-files`;
const stateName = (name: string) => `${name}-state`;
const secretsName = (name: string) => `${name}-secrets`;

function resourcesOf({ limits }: Job, { cpu, memoryRequest }: JobRunnerSettings) {
  const memory = String(limits.memoryBytes);
  return {
    limits: { cpu: cpu.limit, memory },
    requests: { cpu: cpu.request, memory: bytesOf(memoryRequest) > limits.memoryBytes ? memory : memoryRequest },
  };
}

const units: Readonly<Record<string, number>> = {
  ...{ "": 1, k: 1e3, M: 1e6, G: 1e9, T: 1e12 },
  ...{ Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30, Ti: 2 ** 40 },
};

function bytesOf(quantity: string): number {
  const [, number = "0", unit = ""] = /^([0-9.]+)([A-Za-z]*)$/.exec(quantity) ?? [];
  return Number(number) * (units[unit] ?? 1);
}

/** Keys of a Secret have no slashes: their paths in the folder are said apart. */
function secretItems(
  secrets: NonNullable<Job["secrets"]>,
): readonly { readonly key: string; readonly path: string; readonly text: string }[] {
  return Object.entries(secrets).flatMap(([name, values], at) =>
    Object.entries(values).map(([key, text], of) => ({ key: `${at}-${of}`, path: `apb-${name}/${key}`, text })),
  );
}

/** As keys of a ConfigMap, which classic bundles keep their state in. What can be none is left out. */
function stateFiles(state: JsonObject): Readonly<Record<string, Buffer>> {
  const named = Object.entries(state).filter(
    ([name]) => /^[-._A-Za-z0-9]{1,253}$/.test(name) && !name.startsWith("..") && name !== ".",
  );
  return Object.fromEntries(
    named.map(([name, value]) => [name, Buffer.from(typeof value === "string" ? value : JSON.stringify(value))]),
  );
}
