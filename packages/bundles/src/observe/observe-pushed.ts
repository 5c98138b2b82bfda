import type { KnownRefs } from "../reconcile/known-digests.js";
import { type Observation, type RefSeen, specId } from "../reconcile/observation.js";
import type { PushedBundles } from "../sources/push-source.js";
import type { Digest, Ref } from "../sources/source.js";
import { SourceError } from "../sources/source-error.js";
import { type BundleJudge, judgeBundle } from "./judge-bundle.js";

export interface ObservePushedRequest extends BundleJudge {
  readonly id: string;
  readonly generation: string;
  readonly pushed: PushedBundles;
  readonly known: KnownRefs;
  readonly signal: AbortSignal;
}

/** The tag that leaves no trace in an id, as the default one of other sources. */
export const defaultPushTag = "latest";

/** The spec that a pushed tag is. */
export function pushedSpecId({ repository, tag }: Ref): string {
  return specId({ repository, channel: tag === defaultPushTag ? "" : tag });
}

/**
 * Reads what was pushed. It lies in the broker's own journal, so that what is not kept there was taken back, or its time is over: that is
 * no absence to be doubted, and is told as what it is. A journal that cannot be read says nothing (F5-64).
 */
export async function observePushed(request: ObservePushedRequest): Promise<Observation> {
  const { id, generation, pushed, known, parserVersion, signal } = request;
  const base = { id, generation, retryAfterMs: null, parserVersion };
  const refs = new Map<string, { readonly ref: Ref & { readonly channel: string }; readonly seen: RefSeen }>();
  try {
    for (const { ref, digest } of await pushed.list(signal)) {
      const spec = pushedSpecId(ref);
      const channel = ref.tag === defaultPushTag ? "" : ref.tag;
      const seen = known.get(spec)?.digests.includes(digest)
        ? ({ kind: "same", digest } as const)
        : await lookAt(request, ref.repository, digest);
      refs.set(spec, { ref: { repository: ref.repository, tag: ref.tag, channel }, seen });
    }
  } catch (error) {
    signal.throwIfAborted();
    return { ...base, completeness: "failed", refs: new Map(), error: sentenceOf(error) };
  }
  signal.throwIfAborted();
  for (const [spec, { ref }] of known)
    if (!refs.has(spec))
      refs.set(spec, { ref, seen: { kind: "removed", why: "it was taken back, or its time was over" } });
  const unreadable = [...refs].find(([, { seen }]) => seen.kind === "unreadable");
  const error = unreadable?.[1].seen.kind === "unreadable" ? `${unreadable[0]}: ${unreadable[1].seen.why}` : null;
  return { ...base, completeness: error === null ? "complete" : "partial", refs, error };
}

async function lookAt(request: ObservePushedRequest, repository: string, digest: Digest): Promise<RefSeen> {
  try {
    const read = await request.pushed.read(repository, digest, request.signal);
    if (read === null) return { kind: "unreadable", why: "its content is not kept any more" };
    return judgeBundle(read, digest, request);
  } catch (error) {
    if (!(error instanceof SourceError)) throw error;
    return { kind: "unreadable", why: error.message };
  }
}

function sentenceOf(error: unknown): string {
  return `what was pushed could not be read (${error instanceof Error ? error.name : "unknown"})`;
}
