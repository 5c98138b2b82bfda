import type { Artifact } from "@osbert/bundles";
import type { Cluster } from "../cluster/cluster.js";
import type { PodExec } from "../cluster/pod-exec.js";

export interface JobRunnerOptions {
  readonly cluster: Cluster;
  readonly exec: PodExec;
  /** Where records are kept, and where jobs run that need no sandbox. It must be there, and nobody else may work in it. */
  readonly namespace: string;
  /** An image with a busybox that needs no library in its PATH, such as `busybox:musl`. It prepares pods, and keeps what bundles print. */
  readonly helperImage: string;
  /** What bundles of files are run in. `null`: they are refused. */
  readonly baseImage: string | null;
  /** Where the files of an artifact lie. Of an image: a folder with it as an OCI layout; where there is none, it throws. */
  readonly files: (artifact: Artifact, signal: AbortSignal) => Promise<string>;
  /**
   * The ClusterRole that a bundle gets in the namespace that its instance is for (`context.namespace`), and in its sandbox. `null`, the default:
   * it gets none, and no token.
   */
  readonly role?: string | null;
  /** Which bundles get a namespace of their own for each action. Default `classic`: those that write Secrets into it. */
  readonly sandbox?: "classic" | "always" | "never";
  /** The ClusterRole that classic bundles get in their sandbox, to leave credentials and state there. Default `osbert-bundle-sandbox`. */
  readonly sandboxRole?: string;
  /** Names of Secrets in `namespace` that images are pulled with. */
  readonly imagePullSecrets?: readonly string[];
  /** Default `IfNotPresent`: images are named by their digests. */
  readonly imagePullPolicy?: "Always" | "IfNotPresent" | "Never";
  /** Of the bundle's container. `true`: an image that would run as root is refused by the kubelet. Default false; bundles of files never run as root. */
  readonly runAsNonRoot?: boolean;
  /** How much processor a bundle may use at a time, and what is reserved for it, as Kubernetes writes it. Default `1`, and a tenth of a core. */
  readonly cpu?: { readonly limit?: string; readonly request?: string };
  /** What is reserved of its memory, as Kubernetes writes it; never more than it may have. Default `128Mi`. */
  readonly memoryRequest?: string;
  /** How much a bundle may write into its temporary directory, as Kubernetes writes it. Default `1Gi`. */
  readonly temporaryStorage?: string;
  /** More for the pods of jobs, such as `nodeSelector`, `tolerations`, `priorityClassName`, `runtimeClassName`. */
  readonly podSpec?: Readonly<Record<string, unknown>>;
  /** Jobs that may have a network have that of their node. For trials: no network policy reaches them there. Default false. */
  readonly hostNetwork?: boolean;
  /** At most so much of each output, whatever a job's limit is: it goes through objects of the cluster. Default 4 MiB. */
  readonly mostOutputBytes?: number;
  /** How long a program has to clear up after TERM. Default 5 seconds. */
  readonly graceMs?: number;
  /** A pod that has not begun after so long is given up. Default 10 minutes. */
  readonly startWithinMs?: number;
  /** A pod that has ended waits so long for somebody to read what it said. Default a day. */
  readonly uncollectedMs?: number;
  /** Output of a job that runs is read at most so often. Default 3 seconds. */
  readonly readEveryMs?: number;
  /** Records of jobs that ended longer ago are removed. Default 30 days. */
  readonly keepMs?: number;
  /** What the place is called that its jobs are at. Default: made of the namespace's uid. */
  readonly place?: string;
  /** Told of what went wrong beside the calls, such as something that could not be cleared up and is tried again. */
  readonly observe?: (event: JobRunnerEvent) => void;
}

export interface JobRunnerEvent {
  /** `not read`: the record of a job is not as it was written. */
  readonly kind: "not cleared" | "not swept" | "not read";
  /** The id of the job, if it is about one. */
  readonly job: string | null;
  readonly error: unknown;
}

/** What is meant where the options say nothing. */
export const jobRunnerDefaults = {
  role: null,
  sandbox: "classic",
  sandboxRole: "osbert-bundle-sandbox",
  imagePullSecrets: [],
  imagePullPolicy: "IfNotPresent",
  runAsNonRoot: false,
  memoryRequest: "128Mi",
  temporaryStorage: "1Gi",
  podSpec: {},
  hostNetwork: false,
  mostOutputBytes: 4_194_304,
  graceMs: 5_000,
  startWithinMs: 600_000,
  uncollectedMs: 86_400_000,
  readEveryMs: 3_000,
  keepMs: 30 * 86_400_000,
} as const satisfies Partial<JobRunnerOptions>;

/** Options with all that has a default filled in. */
export type JobRunnerSettings = Omit<JobRunnerOptions, keyof typeof jobRunnerDefaults | "cpu"> &
  Required<Pick<JobRunnerOptions, keyof typeof jobRunnerDefaults>> & {
    readonly cpu: { readonly limit: string; readonly request: string };
  };

export function fillOptions(options: JobRunnerOptions): JobRunnerSettings {
  const given = Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
  const cpu = { limit: options.cpu?.limit ?? "1", request: options.cpu?.request ?? "100m" };
  return { ...jobRunnerDefaults, ...(given as unknown as JobRunnerOptions), cpu };
}
