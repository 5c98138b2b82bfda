import {
  clusterTimeoutMs,
  freshNamespace,
  sharedCluster,
  type TestCluster,
} from "../../../tools/cluster/test-cluster.js";
import { required } from "../../../tools/required.js";

/** The cluster that this room's tests share. Ask for it in `beforeAll(…, clusterTimeoutMs)`; `undefined`: this machine has none. */
export async function testCluster(): Promise<TestCluster | undefined> {
  return required("tests of the edge to a Kubernetes cluster", await sharedCluster());
}

export { clusterTimeoutMs, freshNamespace, type TestCluster };
