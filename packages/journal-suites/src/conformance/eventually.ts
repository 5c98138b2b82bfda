import { setTimeout as sleep } from "node:timers/promises";

const withinMs = 10_000;
const lookEveryMs = 10;

/** Waits until `holds` answers true; fails with `what` if that takes too long. */
export async function eventually(what: string, holds: () => Promise<boolean>): Promise<void> {
  const end = performance.now() + withinMs;
  while (!(await holds())) {
    if (performance.now() > end) throw new Error(`waited ${withinMs} ms in vain until ${what}`);
    await sleep(lookEveryMs);
  }
}
