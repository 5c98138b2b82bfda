import { setFlagsFromString } from "node:v8";

/** By how much what is old may grow, in percent of what was left by the last look through all of it. */
const growthPercent = 30;

/**
 * Has V8 look through the whole heap more often than it would by itself, which is each time that it has doubled, or more. A server has much that
 * stays, as thousands of bundles, and a reading of a registry leaves garbage among it, which would be in memory for long. That costs time, as more
 * is looked through. V8 asks for this flag each time that it decides when to look next, so that it
 * counts from now on.
 */
export function boundHeapGrowth(): void {
  setFlagsFromString(`--heap-growing-percent=${growthPercent}`);
}
