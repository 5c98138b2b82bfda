import { randomUUID } from "node:crypto";
import { readFile, rename, rm, writeFile } from "node:fs/promises";
import type { Action } from "@osbert/bundles";
import type { TriedAction } from "@osbert/bundles/author";
import { isJsonObject, type JsonObject } from "@osbert/protocol";
import { UserError } from "../user-error.js";

/** What a broker keeps between the actions of a bundle, of one instance and of its bindings. */
export interface KeptStates extends Kept {
  /** By id. */
  readonly bindings: { readonly [id: string]: Kept };
}

/** Of an instance, or of a binding. */
export interface Kept {
  readonly state: JsonObject;
  /** Those of a classic bundle's provision are given to its later actions, and those of its bind to unbind. */
  readonly credentials: JsonObject | null;
  /** What it was asked for with. */
  readonly parameters: JsonObject;
}

export const nothingKept: Kept = { state: {}, credentials: null, parameters: {} };

/** One action that was run, and what it was asked with. */
export interface KeptRun {
  readonly action: Action;
  readonly binding: string;
  readonly parameters: JsonObject;
  readonly tried: Pick<TriedAction, "end" | "output">;
}

/** What a broker keeps after an action. What was said is kept whatever became of the action; what is gone leaves nothing behind. Pure. */
export function keptAfter(before: KeptStates, { action, binding, parameters, tried }: KeptRun): KeptStates {
  const { end, output } = tried;
  const said = ({ state, credentials }: Kept) => ({
    state: { ...state, ...output.state },
    credentials: output.credentials ?? credentials,
  });
  const { [binding]: kept = nothingKept, ...others } = before.bindings;
  switch (action) {
    case "provision":
      return { ...before, ...said(before), parameters };
    case "update": {
      const changed = end.kind === "done" ? { ...before.parameters, ...parameters } : before.parameters;
      return { ...before, ...said(before), parameters: changed };
    }
    case "deprovision":
      return end.kind === "done" ? { ...nothingKept, bindings: {} } : { ...before, ...said(before) };
    case "bind": {
      // A bundle that has nothing to do for a binding gives out what its provision gave.
      const given = end.kind === "not known" ? { credentials: before.credentials } : {};
      return { ...before, bindings: { ...others, [binding]: { ...said(nothingKept), parameters, ...given } } };
    }
    case "unbind":
      return end.kind === "done" || end.kind === "not known"
        ? { ...before, bindings: others }
        : { ...before, bindings: { ...others, [binding]: { ...kept, ...said(kept) } } };
  }
}

/**
 * What an earlier run has left; nothing if there is no such file yet. Files of earlier versions had the state alone, and that of one binding,
 * which is taken for the one that is asked about. No error repeats what stands in it.
 */
export async function readStateFile(file: string, binding: string): Promise<KeptStates> {
  let text: string;
  try {
    text = await readFile(file, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return { ...nothingKept, bindings: {} };
    throw error;
  }
  const found = parse(text);
  const { bindingState, bindings = bindingState === undefined ? {} : { [binding]: { state: bindingState } } } = found;
  const instance = keptIn(found);
  const each = isJsonObject(bindings) ? Object.entries(bindings).map(([id, kept]) => [id, keptIn(kept)] as const) : [];
  if (instance !== null && isJsonObject(bindings) && each.every(([, kept]) => kept !== null))
    return { ...instance, bindings: Object.fromEntries(each) as Record<string, Kept> };
  throw new UserError(
    `${file} is no file with the state of a bundle; it has an object with state, and with bindings by their ids`,
  );
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

function keptIn(value: unknown): Kept | null {
  if (!isJsonObject(value)) return null;
  const { state, credentials = null, parameters = {} } = value;
  if (!isJsonObject(state) || !isJsonObject(parameters)) return null;
  return credentials === null || isJsonObject(credentials) ? { state, credentials, parameters } : null;
}

function parse(text: string): JsonObject {
  try {
    const value: unknown = JSON.parse(text);
    return isJsonObject(value) ? value : {};
  } catch {
    return {};
  }
}
