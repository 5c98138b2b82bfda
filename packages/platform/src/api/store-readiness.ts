import type { Readiness } from "@osbert/server";
import type { Platform } from "../platform.js";

const patienceMs = 2_000;

/** Whether requests should be sent to this process: its store answers. Several who ask at a time share one look at a store that hangs. */
export function storeReadiness({ instances }: Pick<Platform, "instances">): () => Promise<Readiness> {
  let looking: Promise<Readiness> | undefined;
  const look = () =>
    instances.list({ limit: 1 }).then(
      () => ({ ready: true, reasons: [] }),
      () => ({ ready: false, reasons: ["the store does not answer"] }),
    );
  return () => {
    looking ??= look().finally(() => {
      looking = undefined;
    });
    return within(looking, { ready: false, reasons: [`the store has not answered within ${patienceMs} ms`] });
  };
}

async function within(work: Promise<Readiness>, otherwise: Readiness): Promise<Readiness> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<Readiness>((resolve) => {
    timer = setTimeout(() => resolve(otherwise), patienceMs);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
