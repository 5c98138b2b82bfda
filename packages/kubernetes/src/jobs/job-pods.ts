import { addressSecrets, type JobState, noOutput, readOutput, redact, secretParts } from "@osbert/bundles";
import { isJsonObject, type JsonObject } from "@osbert/protocol";
import type { Cluster } from "../cluster/cluster.js";
import { ClusterError, isPassing } from "../cluster/cluster-error.js";
import type { ClusterObject } from "../cluster/cluster-object.js";
import { labels } from "./job-names.js";
import { containers, inputKey } from "./job-objects.js";
import type { JobRecord } from "./job-record.js";
import type { JobRunnerSettings } from "./job-runner-options.js";
import { kinds } from "./kinds.js";
import { keeperCommands } from "./pod-scripts.js";
import { type PodState, podState } from "./pod-state.js";
import { type Lines, lastLines, secretBytes, wholeLines } from "./said.js";

type Cause = Extract<JobState, { kind: "ended" }>["cause"];

/** At a time. */
const readBytes = 1_048_576;

/** Finds the pods of jobs, and asks them: by their log, and by commands in the container that keeps what a bundle prints. */
export class JobPods {
  readonly #settings: JobRunnerSettings;
  readonly #cluster: Cluster;

  constructor(settings: JobRunnerSettings) {
    this.#settings = settings;
    this.#cluster = settings.cluster;
  }

  /** The pod of a job. There is one at most; were there two, the older one counts, which has begun first. */
  async find({ name, facts, state }: JobRecord): Promise<ClusterObject | undefined> {
    if (state.kind !== "started") return undefined;
    const found: ClusterObject[] = [];
    for await (const pod of this.#cluster.list(kinds.pod, {
      namespace: facts.namespace,
      labels: `${labels.job}=${name}`,
    })) {
      const given = pod.metadata.labels ?? {};
      if ((given["batch.kubernetes.io/controller-uid"] ?? given["controller-uid"]) === state.uid) found.push(pod);
    }
    return found.sort((one, other) =>
      (one.metadata.creationTimestamp ?? "").localeCompare(other.metadata.creationTimestamp ?? ""),
    )[0];
  }

  /** Whether the program could be told. */
  async tellToStop(record: JobRecord): Promise<boolean> {
    const pod = record.facts.format === "apb" ? undefined : await this.find(record);
    if (pod === undefined || !isAsked(podState(pod))) return false;
    return (await this.#keeper(pod, keeperCommands.stop(), readBytes).catch(orNull)) !== null;
  }

  async lookAtKeeper(pod: ClusterObject): Promise<{ readonly isDone: boolean; readonly cause: Cause }> {
    const [done, cause] = (await this.#keeper(pod, keeperCommands.look(), readBytes)).toString("utf8").split("\n");
    return { isDone: done === "done", cause: causes.find((each) => each === cause) ?? "exit" };
  }

  /** As much as it may have printed. */
  async wholeOutput({ facts }: JobRecord, pod: ClusterObject): Promise<Buffer> {
    return this.#keeper(pod, keeperCommands.read("out", 0, facts.outputBytes), facts.outputBytes);
  }

  /** The end of what it printed for people, with whatever secret is in it. */
  async rawLog({ facts }: JobRecord, pod: ClusterObject, state: PodState, lastBytes: number): Promise<string> {
    const place = { namespace: facts.namespace, name: pod.metadata.name };
    if (facts.format === "apb") {
      // A byte more, to know whether it begins with a line.
      const options = { container: containers.bundle, lastBytes: lastBytes + 1 };
      return lastLines(Buffer.from((await this.#cluster.log(place, options).catch(orNull)) ?? ""), lastBytes);
    }
    if (!isAsked(state)) return "";
    const bytes = await this.#keeper(pod, keeperCommands.read("err", 0, facts.outputBytes), facts.outputBytes).catch(
      orNull,
    );
    return bytes === null ? "" : lastLines(bytes, lastBytes);
  }

  /** Without what the bundle was given and has made as a secret. Where its input is gone nobody knows what that is: then nothing is told. */
  async masked({ name, facts }: JobRecord, text: string, out: Buffer): Promise<string> {
    const found = await this.#cluster.read(kinds.secret, { namespace: facts.namespace, name });
    if (found === undefined) return "";
    const input = secretBytes(found, inputKey);
    const { credentials, state, dashboard } = readOutput(noOutput, wholeLines(out, 0, true).lines);
    return redact(text, [
      ...secretParts(facts.format, parseInput(input)),
      credentials,
      state,
      addressSecrets(dashboard),
    ]);
  }

  async #keeper(pod: ClusterObject, command: readonly string[], mostBytes: number): Promise<Buffer> {
    const place = { namespace: pod.metadata.namespace ?? "", name: pod.metadata.name };
    const { exitCode, output } = await this.#settings.exec.run(place, {
      container: containers.keeper,
      command,
      mostBytes,
    });
    if (exitCode !== 0) throw new ClusterError("unavailable", `the keeper of ${place.name} answers with ${exitCode}`);
    return output;
  }

  /** Output of a job that runs, from a byte on, as far as it is there. */
  async output(record: JobRecord, from: number): Promise<Lines> {
    const nothing = { lines: [], next: from };
    const pod = await this.find(record);
    if (pod === undefined || !isAsked(podState(pod))) return nothing;
    // A line that is longer than a piece is read whole.
    for (let most = readBytes; ; most *= 4) {
      const bytes = await this.#keeper(pod, keeperCommands.read("out", from, most), most).catch(orNull);
      if (bytes === null) return nothing;
      const lines = wholeLines(bytes, from, false);
      if (lines.next > from || bytes.length < most || most >= record.facts.outputBytes) return lines;
    }
  }
}

const causes: readonly Cause[] = ["exit", "timeout", "output", "memory", "disk", "start", "stopped"];

/** Whether the keeper can be asked. */
function isAsked(state: PodState): boolean {
  return (state.kind === "running" || state.kind === "ended") && state.keeper === "there";
}

function parseInput(bytes: Buffer): JsonObject {
  const value: unknown = bytes.length === 0 ? {} : JSON.parse(bytes.toString("utf8"));
  return isJsonObject(value) ? value : {};
}

/** What does not answer now is asked again. */
export function orNull(error: unknown): null {
  if (error instanceof ClusterError && (isPassing(error) || error.failure === "not found")) return null;
  throw error;
}
