import { type Entry, isKeepable, type Journal, type Json } from "@osbert/journal";
import { isJsonObject, type JsonObject } from "@osbert/protocol";
import { iso, type JobView } from "../admin/views.js";
import { jobSteps } from "./run-action.js";

const entriesAtOnce = 100;
/** For one request. */
const mostPages = 20;
const mostJobs = 100;

/**
 * The jobs of an instance and its bindings, newest first, by what its operations have recorded: one look finds them all, with the operation
 * (the token that a platform polls), how far it is, where it runs, and what went wrong. `undefined`: there is no such instance.
 */
export async function instanceJobs(
  journal: Journal,
  key: string,
  wanted: { readonly binding: string | null; readonly job: string | null },
): Promise<readonly (JobView & { readonly log: string | null })[] | undefined> {
  const resource = isKeepable(key) ? await journal.read(key) : undefined;
  if (resource === undefined) return undefined;
  const states = new Map(resource.open.map(({ id, state }) => [id, state]));
  const lastErrors = new Map(resource.open.map(({ id, lastError }) => [id, lastError]));
  const parts = new Map<string, string | null>(resource.open.map(({ id, part }) => [id, part]));
  const ends = new Map<string, JsonObject>();
  const found: {
    readonly entry: Entry;
    readonly prefix: string;
    readonly job: JsonObject;
    readonly end: JsonObject;
  }[] = [];
  let before = Number.MAX_SAFE_INTEGER;
  for (let pages = 0; pages < mostPages; pages++) {
    const entries = await journal.entries(key, { before, limit: entriesAtOnce });
    for (const entry of entries) {
      before = entry.seq;
      const payload = objectOf(entry.payload);
      if (entry.kind === "accepted" && entry.operation !== null)
        parts.set(entry.operation, typeof payload.part === "string" ? payload.part : null);
      if (entry.kind !== "step") continue;
      const step = jobSteps(String(payload.step));
      // Newest first: the end of a job comes before the job.
      if (step?.kind === "end") ends.set(`${entry.operation} ${step.prefix}${step.start}`, objectOf(payload.result));
      if (step?.kind === "job") {
        const end = ends.get(`${entry.operation} ${step.prefix}${step.start}`) ?? {};
        found.push({ entry, prefix: step.prefix, job: objectOf(payload.result), end });
      }
    }
    if (entries.length < entriesAtOnce) break;
  }
  const views = found.map(({ entry: { at, operation }, prefix, job, end }) => {
    const state = states.get(operation ?? "");
    const ended = objectOf(end.end);
    return {
      job: textOf(job.id) ?? "",
      operation: operation ?? "",
      action: textOf(job.id)?.match(/-([a-z]+)-[0-9]+(?:-[0-9a-f]{8})?$/)?.[1] ?? "",
      binding: bindingOf(parts.get(operation ?? "") ?? null, prefix),
      place: textOf(job.place),
      at: iso(at),
      // Of one whose end is not recorded, nobody says that it failed, nor that it is done.
      state: textOf(ended.kind) ?? state ?? "not known",
      // Of one that waits to be tried again: why.
      error:
        textOf(ended.reason) ??
        textOf(ended.text) ??
        textOf(ended.why) ??
        (ended.kind === undefined ? (lastErrors.get(operation ?? "") ?? null) : null),
      log_kept: typeof end.log === "string",
      log: textOf(end.log),
    };
  });
  return views
    .filter(({ job }) => wanted.job === null || job === wanted.job)
    .filter(({ binding }) => wanted.binding === null || binding === wanted.binding)
    .slice(0, mostJobs);
}

/** A deprovision that takes bindings along has steps for each of them, behind its name. */
function bindingOf(part: string | null, prefix: string): string | null {
  if (part?.startsWith("binding/")) return part.slice("binding/".length);
  return /^unbind (.*): $/.exec(prefix)?.[1] ?? null;
}

function objectOf(value: Json | undefined): JsonObject {
  return isJsonObject(value) ? value : {};
}

function textOf(value: unknown): string | null {
  return typeof value === "string" ? value : null;
}
