import type { LeftOut } from "./servers.js";

/**
 * What a test needs of its machine, or nothing if this machine lacks it: the test then ends, and one line says so. With
 * OSBERT_TEST_REQUIRE=all that is a failure instead.
 */
export function required<T extends object>(what: string, found: T | LeftOut): T | undefined {
  if (!("leftOut" in found)) return found;
  const line = `left out: ${what} — ${found.leftOut}`;
  if (process.env.OSBERT_TEST_REQUIRE === "all") throw new Error(`OSBERT_TEST_REQUIRE=all, but ${line}`);
  console.log(line);
  return undefined;
}
