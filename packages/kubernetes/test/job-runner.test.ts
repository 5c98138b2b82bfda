import { runnerSuite } from "@osbert/bundles/testing";
import { test } from "vitest";
import { clusterTimeoutMs, sharedCluster } from "../../../tools/cluster/test-cluster.js";
import { required } from "../../../tools/required.js";
import { openJobLab } from "./job-lab.js";

const cluster = required("tests of bundles as Jobs", await sharedCluster({ node: true }));

if (cluster !== undefined) {
  runnerSuite(
    {
      test: (name, body) => test(name, body, clusterTimeoutMs),
      skip: (title, reason) => test(`${title} — not kept: ${reason}`, () => undefined),
    },
    {
      name: "kubernetes",
      open: async () => {
        const lab = await openJobLab(cluster);
        return { runner: () => lab.runner(), bundle: (program) => lab.bundle(program), dispose: () => lab.remove() };
      },
      except: {
        "processes: a program that starts too many does not get them":
          "Kubernetes limits processes for all pods of a node (podPidsLimit of the kubelet), not for one",
      },
    },
  );
}
