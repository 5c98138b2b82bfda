import { randomBytes } from "node:crypto";
import { request } from "node:http";
import { json } from "node:stream/consumers";
import { inject } from "vitest";
import type { LeftOut } from "../servers.js";
import { type Kubectl, kubectlOf } from "./kubectl.js";
import type { ClusterFacts, ClusterOptions } from "./options.js";
import type { SharedClusterAnswer } from "./shared-cluster.js";

/** The cluster that the tests of a run share. Nobody may break it: who wants to takes one of his own, from `startCluster`. */
export interface TestCluster {
  readonly facts: ClusterFacts;
  readonly kubectl: Kubectl;
}

/** For the hook that asks for a cluster: at the first time its programs are built, from nothing. */
export const clusterTimeoutMs = 45 * 60_000;

/**
 * The cluster that all tests share, with what this one needs. Ask in `beforeAll(…, clusterTimeoutMs)`, through `required`, which tells what
 * a machine lacks; then work in a namespace of your own.
 */
export async function sharedCluster(options: ClusterOptions = {}): Promise<TestCluster | LeftOut> {
  const url = inject("clusterUrl");
  if (url === null) return { leftOut: "OSBERT_TEST_SERVERS=none" };
  const answer = await ask(url, options);
  if ("failed" in answer) throw new Error(`the cluster did not start: ${answer.failed}`);
  if ("leftOut" in answer) return answer;
  return { facts: answer, kubectl: kubectlOf(answer) };
}

/** A name that no other namespace had or will have: a deleted one takes seconds to go. */
export function freshNamespace(prefix = "test"): string {
  return `${prefix}-${randomBytes(5).toString("hex")}`;
}

/** Not by fetch, which gives up after five minutes. */
function ask(url: string, options: ClusterOptions): Promise<SharedClusterAnswer> {
  return new Promise((resolve, reject) => {
    const sent = request(url, { method: "POST" }, (response) => {
      json(response).then((answer) => resolve(answer as SharedClusterAnswer), reject);
    });
    sent.once("error", reject);
    sent.end(JSON.stringify(options));
  });
}
