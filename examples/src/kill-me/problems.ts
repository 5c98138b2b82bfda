import type { Call } from "../slow-cluster/pretend-cloud.js";

/** What was known at one moment: which steps the journal had recorded, and how many calls had reached the cloud. */
export interface Snapshot {
  /** `cluster: step`, as often as it was recorded. */
  readonly recorded: readonly string[];
  readonly calls: number;
}

export interface Evidence {
  /** One after every kill, and a last one at the end. */
  readonly snapshots: readonly Snapshot[];
  readonly calls: readonly Call[];
  readonly clusters: readonly {
    readonly name: string;
    readonly wanted: number;
    readonly machines: number;
    readonly state: string;
  }[];
}

/** What went wrong, in sentences; nothing, if Osbert keeps its promise. */
export function problemsOf({ snapshots, calls, clusters }: Evidence): readonly string[] {
  const problems = new Set<string>();
  for (const { name, wanted, machines, state } of clusters) {
    if (state !== "succeeded") problems.add(`${name}: its provision is "${state}"`);
    if (machines !== wanted) problems.add(`${name}: it has ${machines} machines instead of ${wanted}`);
  }
  for (const { recorded, calls: before } of snapshots) {
    const known = new Set(recorded);
    if (known.size < recorded.length) problems.add("a step was recorded twice");
    for (const { cluster, call } of calls.slice(before)) {
      if (known.has(stepOf(cluster, call))) problems.add(`${stepOf(cluster, call)}: ran again after it was recorded`);
    }
  }
  return [...problems];
}

/** How a step of a cluster is called, in the journal's words and in the cloud's. */
export function stepOf(cluster: string, step: string): string {
  return `${cluster}: ${step}`;
}
