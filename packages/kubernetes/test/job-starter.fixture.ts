import type { Job } from "@osbert/bundles";
import type { Cluster } from "../src/cluster/cluster.js";
import type { ClusterAccess } from "../src/cluster/credentials.js";
import { openCluster } from "../src/cluster/open-cluster.js";
import { openPodExec } from "../src/cluster/pod-exec.js";
import { openJobRunner } from "../src/jobs/job-runner.js";
import type { JobRunnerOptions } from "../src/jobs/job-runner-options.js";

/** What a starter is told: by its arguments, as JSON. */
export interface StarterOrders {
  readonly access: ClusterAccess;
  readonly options: Omit<JobRunnerOptions, "cluster" | "exec" | "files">;
  readonly files: string;
  readonly job: Job;
  /** It kills itself when so many of its writes have been answered. */
  readonly dieAfterWrites: number;
}

/** A cluster whose user is killed after some of its writes. */
function deadly(cluster: Cluster, writes: number): Cluster {
  let left = writes;
  return new Proxy(cluster, {
    get(target, name: keyof Cluster) {
      const method = target[name] as (...args: unknown[]) => unknown;
      if (name !== "create" && name !== "patch" && name !== "apply") return method.bind(target);
      return async (...args: unknown[]) => {
        const answer = await method.apply(target, args);
        left -= 1;
        if (left === 0) {
          process.kill(process.pid, "SIGKILL");
          // The signal is on its way: nothing else happens here.
          await new Promise(() => undefined);
        }
        return answer;
      };
    },
  });
}

const [text] = process.argv.slice(2);
const { access, options, files, job, dieAfterWrites } = JSON.parse(text ?? "") as StarterOrders;
const runner = await openJobRunner({
  ...options,
  cluster: deadly(await openCluster({ access }), dieAfterWrites),
  exec: await openPodExec({ access }),
  files: async () => files,
});
await runner.start(job, new AbortController().signal);
console.log("started");
process.exit(0);
