import { expect, test } from "vitest";
import type { Cluster, WatchOptions, WatchState } from "../src/cluster/cluster.js";
import type { ObjectKind } from "../src/cluster/cluster-object.js";
import { defaultFlowSettings, type FlowSettings } from "../src/flows/flow-settings.js";
import { FlowWatches } from "../src/wiring/flow-watches.js";
import { SaidApplications } from "./flow-broker.js";

/** The watches that are still open when the cluster has said this of the kinds of policies. */
function openAfter(state: WatchState, policies: FlowSettings["policies"]): readonly string[] {
  const open = new Set<string>();
  const tellers: (() => void)[] = [];
  const watch = ({ plural, group }: ObjectKind, { changed }: WatchOptions<unknown>) => {
    open.add(plural);
    if (group === "security.istio.io") tellers.push(() => changed?.(undefined));
    return { state, why: null, started: Promise.resolve(), close: () => void open.delete(plural) };
  };
  const cluster = { watch } as unknown as Cluster;
  new FlowWatches({
    ...{ cluster, applications: new SaidApplications(), settings: { ...defaultFlowSettings, policies } },
    ...{ touched: () => undefined, touchedApplication: () => undefined },
  });
  for (const tell of tellers) tell();
  return [...open].filter((plural) => plural.endsWith("policies") || plural.endsWith("authentications"));
}

test("where no policies are wanted, a cluster that has none, or does not let us look, is not asked for them for ever", () => {
  const both = ["peerauthentications", "authorizationpolicies"];
  expect(openAfter("no such kind", "none")).toEqual([]);
  expect(openAfter("forbidden", "none")).toEqual([]);
  expect(openAfter("current", "none")).toEqual(both);
  expect(openAfter("behind", "none")).toEqual(both);
  expect(openAfter("no such kind", "optional")).toEqual(both);
});
