import { execFile } from "node:child_process";
import type { ClusterFacts } from "./options.js";

export type Kubectl = (args: readonly string[], input?: string) => Promise<string>;

/** Runs kubectl as the cluster's administrator; answers with what it printed. What it complains of is the error's message. */
export function kubectlOf({ program, kubeconfig, directory }: ClusterFacts): Kubectl {
  return (args, input = "") =>
    new Promise((resolve, reject) => {
      const env = { ...process.env, KUBECONFIG: kubeconfig, HOME: directory };
      const options = { env, maxBuffer: 2 ** 26 };
      const child = execFile(program, ["kubectl", ...args], options, (error, stdout, stderr) => {
        if (error === null) resolve(stdout);
        else reject(new Error(`kubectl ${args.join(" ")}: ${stderr.trim() || error.message}`, { cause: error }));
      });
      child.stdin?.on("error", () => {}); // It ended before it had read everything, which the callback tells.
      child.stdin?.end(input);
    });
}

/** Applies resources, which may be there already. */
export async function apply(kubectl: Kubectl, resources: readonly object[]): Promise<void> {
  const list = { apiVersion: "v1", kind: "List", items: resources };
  await kubectl([...applyArgs, "-f", "-"], JSON.stringify(list));
}

export const applyArgs = ["apply", "--server-side", "--force-conflicts"] as const;
