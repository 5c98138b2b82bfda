import { exitCodes, type JobState, pullFailure, type RunnerFailure } from "@osbert/bundles";
import { containers } from "./job-objects.js";

type Cause = Extract<JobState, { kind: "ended" }>["cause"];

/**
 * What a pod says of the job that it runs. `waiting`: nothing of the bundle has run; `failure`: why it may not for a while, and who can help.
 * `ended`: the bundle's container has; `keeper`: whether that is there to be asked what it said; classic bundles have none. `gone`: the pod does nothing any more, and says nothing of
 * the bundle's end.
 */
export type PodState =
  | { readonly kind: "waiting"; readonly why: string; readonly failure: RunnerFailure | null }
  | { readonly kind: "running"; readonly keeper: KeeperState }
  | {
      readonly kind: "ended";
      readonly exitCode: number;
      readonly cause: Cause;
      readonly why: string;
      readonly message: string;
      readonly keeper: KeeperState;
    }
  | { readonly kind: "gone"; readonly why: string; readonly cause: Cause | null };

/** Characters of what is told of a pod: it is kept with the job. */
export const mostWhy = 500;

export type KeeperState = "not yet" | "there" | "over";

/** Pure. What the cluster says is looked at, not believed to be complete. */
export function podState({ status }: { readonly [field: string]: unknown }): PodState {
  const { phase, reason, message, conditions, containerStatuses, initContainerStatuses } = (status ?? {}) as PodStatus;
  const bundle = containerStatuses?.find(({ name }) => name === containers.bundle);
  const keeper = containerStatuses?.find(({ name }) => name === containers.keeper);
  const isOver = phase === "Failed" || phase === "Succeeded";
  const kept =
    keeper?.state?.running !== undefined
      ? "there"
      : isOver || keeper?.state?.terminated !== undefined
        ? "over"
        : "not yet";
  const why = [reason, message]
    .filter((text) => text !== undefined && text !== "")
    .join(": ")
    .slice(0, mostWhy);
  const end = bundle?.state?.terminated;
  if (end !== undefined && !isUnknown(end)) {
    const cause = podCause(reason, message) ?? containerCause(end);
    return {
      kind: "ended",
      exitCode: end.exitCode ?? 1,
      cause,
      why: why || (end.reason ?? ""),
      message: end.message ?? "",
      keeper: kept,
    };
  }
  if (isOver) {
    const prepare = initContainerStatuses?.[0]?.state?.terminated;
    const failed =
      prepare !== undefined && prepare.exitCode !== 0
        ? `it could not be prepared (${prepare.reason ?? ""} ${prepare.exitCode}): ${prepare.message ?? ""}`.slice(
            0,
            mostWhy,
          )
        : "";
    return {
      kind: "gone",
      why: why || failed || "its pod has ended",
      cause: podCause(reason, message) ?? (failed === "" ? null : "start"),
    };
  }
  const running = bundle?.state?.running;
  if (running !== undefined) return { kind: "running", keeper: kept };
  const waits = [bundle, keeper, ...(initContainerStatuses ?? [])].flatMap((each) => each?.state?.waiting ?? []);
  const trouble = waits.find(({ reason: word }) => word !== undefined && troubles.has(word));
  if (trouble !== undefined) {
    const told = trouble.message ?? trouble.reason ?? "";
    return {
      kind: "waiting",
      why: told.slice(0, mostWhy),
      failure: troubles.get(trouble.reason ?? "") === "image" ? pullFailure(told) : "not started",
    };
  }
  const unscheduled = conditions?.find(({ type, status: held }) => type === "PodScheduled" && held === "False");
  if (unscheduled !== undefined)
    return {
      kind: "waiting",
      why: `no node has room for it: ${unscheduled.message ?? unscheduled.reason ?? ""}`.slice(0, mostWhy),
      failure: "not started",
    };
  return { kind: "waiting", why: "its pod is being made", failure: null };
}

interface PodStatus {
  readonly phase?: string;
  readonly reason?: string;
  readonly message?: string;
  readonly conditions?: readonly {
    readonly type: string;
    readonly status: string;
    readonly reason?: string;
    readonly message?: string;
  }[];
  readonly containerStatuses?: readonly ContainerStatus[];
  readonly initContainerStatuses?: readonly ContainerStatus[];
}

interface ContainerStatus {
  readonly name: string;
  readonly state?: {
    readonly waiting?: { readonly reason?: string; readonly message?: string };
    readonly running?: object;
    readonly terminated?: Terminated;
  };
}

interface Terminated {
  readonly exitCode?: number;
  readonly reason?: string;
  readonly message?: string;
}

/** Words of the kubelet that mean that something has to change before the container begins. */
const troubles: ReadonlyMap<string, "image" | "container"> = new Map([
  ...(
    [
      "ErrImagePull",
      "ImagePullBackOff",
      "InvalidImageName",
      "ErrImageNeverPull",
      "RegistryUnavailable",
      "ImageInspectError",
    ] as const
  ).map((word) => [word, "image"] as const),
  ...(["CreateContainerConfigError", "CreateContainerError", "RunContainerError", "CrashLoopBackOff"] as const).map(
    (word) => [word, "container"] as const,
  ),
]);

/** The kubelet had to make it up: it was restarted, and found no trace of the container. */
function isUnknown({ reason }: Terminated): boolean {
  return reason === "ContainerStatusUnknown";
}

function podCause(reason = "", message = ""): Cause | null {
  if (reason === "DeadlineExceeded") return "timeout";
  // More than it may write is its own doing; a node without room is not.
  if (reason === "Evicted" && /exceeds? (the|its)? ?(total )?(limit|local ephemeral)/i.test(message)) return "disk";
  return null;
}

function containerCause({ reason, exitCode }: Terminated): Cause {
  if (reason === "StartError" || reason === "ContainerCannotRun") return "start";
  // One of its processes was killed for the memory: what the bundle says of its end in words of the contract still counts.
  const isContract = (Object.values(exitCodes) as readonly (number | undefined)[]).includes(exitCode);
  return reason === "OOMKilled" && !isContract ? "memory" : "exit";
}
