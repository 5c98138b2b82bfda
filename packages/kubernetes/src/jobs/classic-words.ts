import type { Action } from "@osbert/bundles";
import { isJsonObject } from "@osbert/protocol";
import type { Cluster } from "../cluster/cluster.js";
import type { ClusterObject, ObjectPlace } from "../cluster/cluster-object.js";
import type { PodExec } from "../cluster/pod-exec.js";
import type { JobMemory } from "./job-memory.js";
import { containers } from "./job-objects.js";
import { orNull } from "./job-pods.js";
import type { JobRecord, RecordFacts } from "./job-record.js";
import type { JobRunnerSettings } from "./job-runner-options.js";
import { kinds } from "./kinds.js";
import { podState } from "./pod-state.js";
import { type Said, secretBytes } from "./said.js";

/** Actions that a classic bundle can hand credentials over in. */
const withCredentials: readonly Action[] = ["provision", "update", "bind"];
const mostCredentialsBytes = 1_048_576;
/** What a state may have, and a little more: whoever reads the line refuses it, and the action has failed. */
const mostStateCharacters = 393_216;
/** Of one word of progress: an annotation may have a quarter of a megabyte, and all of them have to go into one Secret, with the credentials. */
const mostProgressCharacters = 2_000;
const annotations = { progress: "apb_last_operation", dashboard: "apb_dashboard_url" } as const;

/** Hears what classic bundles tell while they run. */
export class ClassicWords {
  readonly #settings: JobRunnerSettings;
  readonly #said: Said;
  readonly #memory: JobMemory;

  constructor(settings: JobRunnerSettings, said: Said, memory: JobMemory) {
    this.#settings = settings;
    this.#said = said;
    this.#memory = memory;
  }

  /** One look after the other: each line is written once. */
  async hear(record: JobRecord, pod: ClusterObject): Promise<void> {
    const said = (await this.#said.soFar(record)).out;
    const lines = said.toString("utf8").split("\n");
    const progress = progressLine(pod);
    if (progress !== null && lines.findLast((line) => line.startsWith('{"progress"')) !== progress) {
      await this.#said.add(record, said, progress);
      return;
    }
    const { id, namespace } = record.facts;
    if (!isAskedForCredentials(record.facts) || lines.some((line) => line.startsWith('{"credentials"'))) return;
    if (podState(pod).kind !== "running" || !this.#memory.isAskedAgain(id, this.#settings.readEveryMs)) return;
    const place = { namespace, name: pod.metadata.name };
    const credentials = await askForCredentials(this.#settings.exec, place).catch(orNull);
    if (credentials !== null) await this.#said.add(record, said, credentials);
  }
}

/** What a classic bundle says while it runs, on its own pod, as a line of the contract. `null`: nothing. Pure. */
function progressLine({ metadata }: ClusterObject): string | null {
  const text = metadata.annotations?.[annotations.progress];
  return text === undefined || text === "" ? null : JSON.stringify({ progress: text.slice(0, mostProgressCharacters) });
}

/** Whether the running pod is to be asked for credentials. */
function isAskedForCredentials({ runtime, action }: RecordFacts): boolean {
  return runtime === 1 && withCredentials.includes(action);
}

/** Asks a bundle of runtime 1. `null`: it has none (yet). */
async function askForCredentials(exec: PodExec, place: ObjectPlace): Promise<string | null> {
  const options = { container: containers.bundle, command: ["broker-bind-creds"], mostBytes: mostCredentialsBytes };
  const { exitCode, output } = await exec.run(place, options);
  return exitCode === 0 && output.length > 0 ? credentialsLine(output) : null;
}

/** What a bundle has left when it has ended: lines of the contract, in the order in which they count. */
export async function leftLines(
  cluster: Cluster,
  { runtime, action, sandbox }: RecordFacts,
  pod: ClusterObject,
  message: string,
): Promise<readonly string[]> {
  const place = { namespace: pod.metadata.namespace ?? "", name: pod.metadata.name };
  const lines: string[] = [];
  // Only in a namespace of its own it could write; in another, what has its name is not its own.
  if (sandbox && runtime === 2 && withCredentials.includes(action)) {
    const fields = secretBytes(await cluster.read(kinds.secret, place), "fields");
    if (fields.length > 0) lines.push(jsonLine("credentials", fields.toString("utf8")));
  }
  if (sandbox) {
    const state = stateOf(await cluster.read(kinds.configMap, place));
    if (state !== undefined) lines.push(JSON.stringify({ state }));
  }
  const dashboard = pod.metadata.annotations?.[annotations.dashboard];
  if (dashboard !== undefined && dashboard !== "" && (action === "provision" || action === "update"))
    lines.push(JSON.stringify({ dashboard }));
  if (message.trim() !== "") lines.push(JSON.stringify({ refused: message }));
  return lines;
}

export function withLines(said: Buffer, lines: readonly string[]): Buffer {
  return Buffer.concat([said, ...lines.map((line) => Buffer.from(`${line}\n`))]);
}

function credentialsLine(base64: Buffer): string {
  return jsonLine("credentials", Buffer.from(base64.toString("utf8"), "base64").toString("utf8"));
}

/** What is not JSON makes a line that is not, either. */
function jsonLine(name: string, json: string): string {
  return `{"${name}":${json}}`.replaceAll("\n", " ");
}

/** `null`, which is no state: there is too much of it. */
function stateOf(configMap: ClusterObject | undefined): Readonly<Record<string, unknown>> | null | undefined {
  if (!isJsonObject(configMap?.data)) return undefined;
  return JSON.stringify(configMap.data).length > mostStateCharacters ? null : configMap.data;
}
