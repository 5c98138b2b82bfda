import { defaultExclude, defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";

// Tests run from source: no build is needed for an import of another package.
const conditions = ["@osbert/source"];

// Left out where a second Node.js runs the tests without servers: what is about servers, and what costs minutes and tells nothing of the
// Node.js that runs it. The packages themselves are tested with every Node.js by tools/packages.test.ts.
const withServers = [
  "{postgres,mysql}-*",
  "api-server*",
  "several-processes",
  "admin-replicas",
  "platform-replicas",
  "service-source-replicas",
  "bundle-{replicas,kills}",
  "event-flow-{killed,outages,refusals}",
  "registry-{replicas,storm}",
  "reconcile-kills",
  "job-take-over",
  "job-{runner,trouble}",
  "classic-jobs",
  "storms",
  "rolling-restart",
  "migrate",
];
const slow = [
  "async-bind-seed",
  "crash*",
  "fuzz",
  "faults-steps",
  "process-runner*",
  "cancelled-jobs",
  "killed-platform",
  "jobs-of-a-broker",
  "container-runner",
  "engine-trouble",
  "open-runner",
  "image-mirror",
  "classic-and-ansible",
  "bundles-in-containers",
  // Of programs that are started for each test, the packages' tests start enough.
  ...[
    "admin-commands",
    "misbehave",
    "bundle",
    "bundle-guide",
    "bundle-preview",
    "bundles",
    "config",
    "events-chart",
    "events-pod",
    "events-serve",
    "keys",
    "operating",
    "platform-serve",
    "program",
    "serve",
  ],
  ...["answer-classes", "answers-of-brokers", "waiting", "engine-limits", "wire"],
  ...["brokers", "flow-operations", "interrupted-creates", "killed-execution", "late-creates", "mixed-replicas"],
];
const leftOut = [
  "tools/**",
  "examples/**",
  ...[...withServers, ...slow].map((name) => `packages/*/test/**/${name}.test.ts`),
];

// Those that take a minute or more, the longest first: whatever begins last is waited for alone. Without a cache, vitest goes by size.
const longest = [
  ...[
    "engine-conformance",
    "cluster",
    "crash",
    "packages",
    "tutorial",
    "created-project",
    "store-conformance",
    "model",
    "crash-chaos",
    "keys",
    "postgres-plans",
  ],
  ...[
    "job-trouble",
    "job-runner",
    "operating",
    "serve",
    "admin-commands",
    "several-processes",
    "storms",
    "fuzz",
    "rolling-restart",
    "events-tutorial",
  ],
];

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification) => {
      const at = longest.findIndex((name) => moduleId.endsWith(`/${name}.test.ts`));
      return at < 0 ? longest.length : at;
    };
    return (await super.sort(files)).sort((a, b) => rank(a) - rank(b));
  }
}

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
    // Many tests wait for processes that they have started: two at a time left a third of two cores idle.
    maxWorkers: 3,
    reporters: ["default"],
    sequence: { sequencer: LongestFirst },
  },
});
