import type { Looked } from "../admin/read-view.js";
import { readRef } from "../sources/read-ref.js";
import type { Ref, Source } from "../sources/source.js";
import { SourceError } from "../sources/source-error.js";

/** Shorter than those who ask wait for an answer. */
const lookMs = 45_000;

/** Asks a source what a tag is now. Only a SourceError is known to hold no credentials. */
export async function lookAtTag(source: Source, ref: Ref): Promise<Looked> {
  const signal = AbortSignal.timeout(lookMs);
  try {
    const found = await readRef(source, ref, signal);
    return found === null ? { kind: "absent" } : { kind: "read", ...found };
  } catch (error) {
    if (error instanceof SourceError) return { kind: "unreadable", why: error.message };
    if (signal.aborted) return { kind: "unreadable", why: `the source took longer than ${lookMs / 1_000} seconds` };
    throw error;
  }
}
