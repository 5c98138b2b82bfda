import type { Store } from "@osbert/journal";

/** Whether requests should be sent to this process. */
export interface Readiness {
  readonly ready: boolean;
  /** Why not, for a person. */
  readonly reasons: readonly string[];
}

/** What never exists: looking for it costs a look and changes nothing. */
const probeKey = "osbert/readiness";

/** Looks whether a store answers. Several who ask at a time share one look, so that a store that hangs is not asked ever more. */
export function storeProbe(store: Store, withinMs: number): () => Promise<string | null> {
  let looking: Promise<string | null> | undefined;
  return () => {
    looking ??= answers(store).finally(() => {
      looking = undefined;
    });
    return within(looking, withinMs, `the store has not answered within ${withinMs} ms`);
  };
}

async function answers(store: Store): Promise<string | null> {
  try {
    await store.read(probeKey, []);
    return null;
  } catch {
    return "the store does not answer";
  }
}

/** The answer, or `otherwise` when it takes too long. */
export function within<T, Late>(work: Promise<T>, ms: number, otherwise: Late): Promise<T | Late> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => resolve(otherwise), ms);
    timer.unref();
    work.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}
