import type { BundleSpec } from "../src/formats/bundle-spec.js";
import type { JobLimits } from "../src/runners/runner.js";

/** A bundle of the own format, as far as a runner is concerned. */
export function bundleSpec(part: Partial<BundleSpec>): BundleSpec {
  return {
    format: "osbert",
    runtime: null,
    name: "test",
    id: null,
    description: "",
    tags: [],
    bindable: true,
    metadata: {},
    bundleVersion: null,
    async: "optional",
    actions: ["provision", "deprovision"],
    plans: [],
    command: ["./run"],
    network: false,
    timeoutMs: null,
    ...part,
  };
}

export const limits: JobLimits = {
  timeoutMs: 60_000,
  memoryBytes: 1_073_741_824,
  processes: 256,
  cpuSeconds: 60,
  outputBytes: 1_048_576,
  network: false,
};

/** For a start that is given up when its job is placed, and not run yet: a runner asks before it places a job, and before it runs it. */
export function givenUpOncePlaced(reason: Error): AbortSignal {
  let asked = 0;
  const throwIfAborted = () => {
    if (++asked > 1) throw reason;
  };
  return Object.assign(new AbortController().signal, { throwIfAborted });
}
