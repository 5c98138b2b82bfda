import type { Draft } from "../decisions/draft.js";
import { JournalError } from "../errors.js";
import { checkJsonType, type Json, toJsonText } from "../json.js";
import { limits } from "../limits.js";
import type { OpenOperation } from "../operation.js";
import type { Reader } from "../reader.js";
import type { Store, StoredPart } from "../store.js";
import type { StoreTime } from "./time.js";

/**
 * What an operation has done to another resource is noted there, in a part under the idempotency key of its step, with the same commit:
 * an attempt that finds the note gets what came of it and does nothing. When the step is recorded the note is not needed any more. It
 * goes when its operation has ended, with the next effect on that resource, so that there is never a commit just for that. A resource that
 * is gone is not removed before, or the effect would be had again on a new one of its key.
 */
export const effectPrefix = "osbert.effect/";

/** An effect that is about to happen. */
export interface Effect {
  /** The part with the note. */
  readonly part: string;
  /** The operation whose effect it is. */
  readonly of: { readonly key: string; readonly operation: string };
  /** Notes that are not needed any more. */
  readonly outlived: readonly string[];
  /**
   * Rejects if the operation is not this engine's to carry out any more. Asked between the look at the other resource and its commit:
   * whoever took over after that has changed the other resource if it did anything there, and so this commit is refused.
   */
  readonly confirm: () => Promise<void>;
}

/** The note. */
export interface EffectNote {
  readonly at: number;
  readonly key: string;
  readonly operation: string;
  readonly result: Json;
  readonly accepted: readonly OpenOperation[];
}

export function effectPart(idempotencyKey: string): string {
  return `${effectPrefix}${idempotencyKey}`;
}

/** Part of the change that has the effect, so that there is never one without the other. */
export function noteEffect(draft: Draft, { part, of, outlived }: Effect, result: unknown): void {
  const note = { at: draft.base.now, ...of, result: result === undefined ? null : result, accepted: draft.accepted };
  checkJsonType(result, "the result of a transaction");
  // As large as the result of a step may be: it becomes one, after this commit.
  draft.parts.writeText(part, toJsonText(note, limits.jsonBytes - 65_536, "the result of a transaction"));
  for (const id of outlived) draft.parts.remove(id);
}

/**
 * A runner that was taken over from may still be on its way to the other resource: for so long its successor's note is kept. One that stands
 * still for longer, between the last look at its lease and a commit that makes the resource, has the effect twice, if its successor has
 * ended the operation and the resource was removed meanwhile: nothing is left then that could tell.
 */
const keptMs = 120_000;
/** With each effect, which adds one, so many notes are looked at: those that are not needed any more become few. */
const lookedAt = 4;
/** Notes that are read in one go. */
const notesPage = 100;

export interface EffectPorts {
  readonly store: Store;
  readonly reader: Reader;
  readonly time: StoreTime;
}

/** Notes on a resource whose operations have ended. The ids follow from chance, and so it is chance which are looked at. */
export async function outlivedNotes(ports: EffectPorts, key: string, part: string): Promise<readonly string[]> {
  try {
    const found = await ports.store.parts(key, { prefix: effectPrefix, after: part, limit: lookedAt });
    const outlived = await Promise.all(found.map(async (note) => ((await isOutlived(ports, note)) ? [note.id] : [])));
    return outlived.flat();
  } catch {
    // There is always a next time, and what is wrong is told to whoever needs it.
    return [];
  }
}

/** Whether a note on the resource may still be looked for. Asked before the resource is removed; a new note would raise its seq. */
export async function hasNeededNotes(ports: EffectPorts, key: string): Promise<boolean> {
  for (let after: string | null = null; ; ) {
    const page: readonly StoredPart[] = await ports.store.parts(key, { prefix: effectPrefix, after, limit: notesPage });
    for (const note of page) if (!(await isOutlived(ports, note))) return true;
    after = page.at(-1)?.id ?? null;
    if (page.length < notesPage) return false;
  }
}

async function isOutlived({ reader, time }: EffectPorts, { body }: StoredPart): Promise<boolean> {
  try {
    const note = JSON.parse(body) as EffectNote;
    if (note.at > time.now() - keptMs) return false;
    return (await reader.operation(note.key, note.operation))?.status !== "open";
  } catch (error) {
    if (error instanceof JournalError && error.code === "store-unavailable") throw error;
    // An operation that cannot be read may be open, and that is no fault of the resource with the note.
    return false;
  }
}
