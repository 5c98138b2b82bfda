import { execFile } from "node:child_process";
import { until } from "../until.js";
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

/** Waits until the cluster knows the kinds that were defined. `kubectl wait` looks at one after the other, for seconds. */
export async function untilEstablished(kubectl: Kubectl): Promise<void> {
  const states = '{.items[*].metadata.uid}{"\\n"}{.items[*].status.conditions[?(@.type=="Established")].status}';
  await until("the definitions of resources", async () => {
    const [ids = "", established = ""] = (await kubectl(["get", "crd", "-o", `jsonpath=${states}`])).split("\n");
    return established.split(" ").filter((state) => state === "True").length === ids.split(" ").length;
  });
}
