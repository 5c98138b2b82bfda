import { defineConfig } from "vitest/config";

// Tests run from source: no build is needed for an import of another package.
const conditions = ["@osbert/source"];

export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  test: {
    include: ["packages/*/test/**/*.test.ts", "examples/test/**/*.test.ts", "tools/**/*.test.ts"],
    globalSetup: ["tools/test-servers.ts"],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    pool: "forks",
    maxWorkers: 2,
    reporters: ["default"],
  },
});
