import type { Digest, ReadBundle, Ref, Source } from "./source.js";
import { SourceError } from "./source-error.js";

/**
 * What was pushed to Osbert itself, wherever that is kept. There is no list elsewhere that it could be missing from: it goes when somebody
 * removes it, or when its time is over (F5-64).
 */
export interface PushedBundles {
  /** All that are kept now. */
  list(signal: AbortSignal): Promise<readonly { readonly ref: Ref; readonly digest: Digest }[]>;
  /** `null`: it is not kept any more. */
  read(repository: string, digest: Digest, signal: AbortSignal): Promise<ReadBundle | null>;
  /** As of a source. */
  fetch(repository: string, digest: Digest, folder: string, signal: AbortSignal): Promise<void>;
}

/** The built-in source of what was pushed. */
export function pushSource(pushed: PushedBundles): Source {
  const digestOf = async (repository: string, tag: string | null, signal: AbortSignal) => {
    const all = await pushed.list(signal);
    return all.filter(({ ref }) => ref.repository === repository && (tag === null || ref.tag === tag));
  };
  return {
    async *repositories(signal) {
      yield [...new Set((await pushed.list(signal)).map(({ ref }) => ref.repository))];
    },
    async tags(repository, signal) {
      const found = await digestOf(repository, null, signal);
      return found.length === 0 ? null : found.map(({ ref }) => ref.tag);
    },
    async resolve({ repository, tag }, signal) {
      return (await digestOf(repository, tag, signal))[0]?.digest ?? null;
    },
    async read(repository, digest, signal) {
      const bundle = await pushed.read(repository, digest, signal);
      if (bundle === null) throw new SourceError("not found", `push/${repository}@${digest}`, "it was removed");
      return bundle;
    },
    fetch: (repository, digest, folder, signal) => pushed.fetch(repository, digest, folder, signal),
    probe: async () => undefined,
  };
}
