import { setTimeout as sleep } from "node:timers/promises";

/** Waits until it is so; an error counts as not yet, and is the cause of the one that is thrown when nothing came of it in two minutes. */
export async function until(what: string, isSo: () => Promise<boolean>): Promise<void> {
  const giveUpAtMs = performance.now() + 120_000;
  let cause: unknown;
  const isNow = () =>
    isSo().catch((error: unknown) => {
      cause = error;
      return false;
    });
  while (!(await isNow())) {
    if (performance.now() > giveUpAtMs) throw new Error(`waited in vain for ${what}`, { cause });
    await sleep(100);
  }
}
