import type { Digest, ReadBundle, Ref, Source } from "./source.js";

/** What a tag of a repository is now: one bundle, without a list of anything. `null`: the source says that there is no such tag. */
export async function readRef(
  source: Source,
  ref: Ref,
  signal: AbortSignal,
): Promise<{ readonly digest: Digest; readonly bundle: ReadBundle } | null> {
  const digest = await source.resolve(ref, signal);
  if (digest === null) return null;
  const why = (await source.signatureProblem?.(ref.repository, digest, signal)) ?? null;
  return {
    digest,
    bundle: why === null ? await source.read(ref.repository, digest, signal) : { kind: "invalid", why },
  };
}
