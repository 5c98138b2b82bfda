import { spawn } from "node:child_process";

/**
 * `npm run fuzz -- --requests 1000000`: the broker's fuzz test with more requests than CI has time for. What it found can be seen
 * again with the seed that it tells.
 */
const args = process.argv.slice(2);
const at = args.indexOf("--requests");
const requests = at < 0 ? "200000" : (args[at + 1] ?? "");
if (!/^[1-9][0-9]{0,9}$/.test(requests)) throw new Error("usage: npm run fuzz -- --requests NUMBER");

const child = spawn("npx", ["vitest", "run", "packages/broker/test/fuzz.test.ts"], {
  env: { ...process.env, OSBERT_FUZZ_REQUESTS: requests },
  stdio: "inherit",
});
child.once("exit", (code) => {
  process.exitCode = code ?? 1;
});
