import { defaultExclude, defineConfig } from "vitest/config";

// Tests run from source: no build is needed for an import of another package.
const conditions = ["@osbert/source"];

// Left out where a second Node.js runs the tests without servers: what is about servers, and what costs minutes and tells nothing of the
// Node.js that runs it. The packages themselves are tested with every Node.js by tools/packages.test.ts.
const withServers = [
  "{postgres,mysql}-*",
  "several-processes",
  "admin-replicas",
  "service-source-replicas",
  "storms",
  "rolling-restart",
  "migrate",
];
const slow = ["crash*", "fuzz", "faults-steps"];
const leftOut = [
  "tools/**",
  "examples/**",
  ...[...withServers, ...slow].map((name) => `packages/*/test/**/${name}.test.ts`),
];

export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  test: {
    include: ["packages/*/test/**/*.test.ts", "examples/test/**/*.test.ts", "tools/**/*.test.ts"],
    exclude: [...defaultExclude, ...(process.env.OSBERT_TEST_SERVERS === "none" ? leftOut : [])],
    globalSetup: ["tools/test-servers.ts"],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    pool: "forks",
    maxWorkers: 2,
    reporters: ["default"],
  },
});
