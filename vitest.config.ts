import { defaultExclude, defineConfig } from "vitest/config";

// Tests run from source: no build is needed for an import of another package.
const conditions = ["@osbert/source"];

// What costs minutes and tells nothing of the Node.js that runs it: left out where a second Node.js runs the tests without servers. The
// packages themselves are tested with every Node.js by tools/packages.test.ts.
const slow = ["tools/**", "examples/**", "packages/journal/test/crash*.test.ts", "packages/*/test/**/fuzz.test.ts"];

export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  test: {
    include: ["packages/*/test/**/*.test.ts", "examples/test/**/*.test.ts", "tools/**/*.test.ts"],
    exclude: [...defaultExclude, ...(process.env.OSBERT_TEST_SERVERS === "none" ? slow : [])],
    globalSetup: ["tools/test-servers.ts"],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    pool: "forks",
    maxWorkers: 2,
    reporters: ["default"],
  },
});
