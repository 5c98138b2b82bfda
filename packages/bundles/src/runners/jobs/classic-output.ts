import { constants } from "node:fs";
import { open, opendir } from "node:fs/promises";
import { join } from "node:path";
import type { Json, JsonObject } from "@osbert/protocol";

/** The folder for state between actions, and the file for the last words of a failure, in the folder of a classic bundle's job. */
export const classicFiles = { state: "state", termination: "termination" } as const;

/** Encoded. Nobody has more of them, and they are in memory whole. */
export const maxCredentialsBytes = 1_048_576;
/** Beyond what a state may have: whoever reads the line refuses it, and the action has failed. */
export const maxStateBytes = 524_288;

/**
 * What a classic bundle says in ways that are not for people, as lines of the own contract: its credentials (base64 of JSON), what it has left
 * for later actions, and why it failed. To be asked when the job has ended; also before, for what is a secret.
 */
export async function classicOutput(
  folder: string,
  from: number,
): Promise<{ readonly lines: readonly string[]; readonly next: number }> {
  if (from > 0) return { lines: [], next: from };
  const credentials = (await readBounded(join(folder, "credentials"), maxCredentialsBytes)) ?? "";
  const state = await readState(join(folder, classicFiles.state));
  const termination = await readBounded(join(folder, classicFiles.termination), maxTerminationBytes);
  const lines = [
    // What is not JSON makes a line that is not, either.
    ...(credentials === ""
      ? []
      : [`{"credentials":${Buffer.from(credentials, "base64").toString("utf8")}}`.replaceAll("\n", " ")]),
    ...(state === undefined ? [] : [JSON.stringify({ state })]),
    ...(termination === null || termination.trim() === "" ? [] : [JSON.stringify({ refused: termination })]),
  ];
  return { lines, next: lines.length };
}

/** The files that an earlier state is given to a bundle as. What can be no file of such a folder is left out. */
export function stateFiles(state: JsonObject): Readonly<Record<string, string>> {
  const named = Object.entries(state).filter(([name]) => isStateName(name));
  return Object.fromEntries(named.map(([name, value]) => [`${classicFiles.state}/${name}`, textOf(value)]));
}

/** As Kubernetes has it. */
const maxTerminationBytes = 4_096;
const maxStateFiles = 1_000;

/** Names of keys in a ConfigMap, which classic bundles keep their state in on Kubernetes. */
function isStateName(name: string): boolean {
  return /^[-._A-Za-z0-9]{1,253}$/.test(name) && !name.startsWith("..") && name !== ".";
}

function textOf(value: Json): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** `undefined`: there is none. `null`, which is no state: there is too much of it. */
async function readState(folder: string): Promise<JsonObject | null | undefined> {
  const found = await opendir(folder).catch(() => null);
  if (found === null) return undefined;
  const state: Record<string, Json> = {};
  let [files, bytes] = [0, 0];
  for await (const { name } of found) {
    if (++files > maxStateFiles || bytes > maxStateBytes) return null;
    const text = isStateName(name) ? await readBounded(join(folder, name), maxStateBytes) : null;
    if (text === null) continue;
    bytes += text.length;
    state[name] = text;
  }
  return files === 0 ? undefined : state;
}

/**
 * The beginning of a file that a bundle could write. The bundle is not trusted: a link leads out of its container, and whoever opens a pipe
 * waits for ever. `null`: it is not a file.
 */
async function readBounded(path: string, maxBytes: number): Promise<string | null> {
  const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
  const file = await open(path, flags).catch(() => null);
  if (file === null) return null;
  try {
    if (!(await file.stat()).isFile()) return null;
    const { buffer, bytesRead } = await file.read(Buffer.alloc(maxBytes), 0, maxBytes, 0);
    return buffer.toString("utf8", 0, bytesRead);
  } finally {
    await file.close();
  }
}
