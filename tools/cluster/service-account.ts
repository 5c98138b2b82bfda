import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { TestCluster } from "./test-cluster.js";

/** A kubeconfig for a service account that is there: who uses it may do what was granted to that, and nothing else. It goes with the cluster. */
export async function serviceAccountKubeconfig(
  { kubectl, facts }: TestCluster,
  { namespace, name }: { readonly namespace: string; readonly name: string },
): Promise<string> {
  const token = (await kubectl(["create", "token", name, "-n", namespace, "--duration=2h"])).trim();
  const config = JSON.parse(await kubectl(["config", "view", "--raw", "--minify", "--flatten", "-o", "json"]));
  const [{ context }] = config.contexts;
  const user = { name: "account", user: { token } };
  const file = join(facts.directory, `${namespace}.${name}.kubeconfig`);
  const own = {
    ...{ ...config, users: [user], "current-context": "account" },
    contexts: [{ name: "account", context: { cluster: context.cluster, user: user.name } }],
  };
  writeFileSync(file, JSON.stringify(own), { mode: 0o600 });
  return file;
}
