import { randomUUID } from "node:crypto";
import { readFile, rename, rm, writeFile } from "node:fs/promises";
import { isJsonObject, type JsonObject } from "@osbert/protocol";
import { UserError } from "../user-error.js";

/** What a bundle keeps between its actions, of an instance and of a binding. */
export interface KeptStates {
  readonly state: JsonObject;
  readonly bindingState: JsonObject;
}

/** What an earlier run has left; nothing if there is no such file yet. No error repeats what stands in it. */
export async function readStateFile(file: string): Promise<KeptStates> {
  let text: string;
  try {
    text = await readFile(file, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return { state: {}, bindingState: {} };
    throw error;
  }
  const { state, bindingState } = parse(text) ?? {};
  if (isJsonObject(state) && isJsonObject(bindingState)) return { state, bindingState };
  throw new UserError(`${file} is no file with the state of a bundle; it has an object with state and bindingState`);
}

/** Whole or not at all, and for its owner alone: state may hold secrets. */
export async function writeStateFile(file: string, states: KeptStates): Promise<void> {
  const made = `${file}.${randomUUID()}`;
  try {
    await writeFile(made, `${JSON.stringify(states, null, 2)}\n`, { mode: 0o600, flag: "wx" });
    await rename(made, file);
  } catch (error) {
    await rm(made, { force: true });
    throw error;
  }
}

function parse(text: string): JsonObject | null {
  try {
    const value: unknown = JSON.parse(text);
    return isJsonObject(value) ? value : null;
  } catch {
    return null;
  }
}
