import { defineService, Failed, RetryLater } from "@osbert/broker";
import type { PretendCloud } from "./pretend-cloud.js";

export interface SlowClusterOptions {
  readonly cloud: PretendCloud;
  /** 1: a cluster takes two minutes or so. 100: a moment. */
  readonly speed?: number;
}

/**
 * Clusters that take minutes: some calls to a cloud that fails now and then, and much waiting. Kill the process whenever you like; the
 * next one goes on.
 */
export function slowCluster({ cloud, speed = 1 }: SlowClusterOptions) {
  const seconds = (count: number) => Math.ceil((count * 1_000) / speed);

  return defineService({
    id: "3e0d6b7c-91a4-4c54-8b1e-5a2f7d9c4e30",
    name: "slow-cluster",
    description: "A cluster of pretended machines that takes its time",
    tags: ["example"],
    // Nobody keeps a connection open for minutes: a platform that cannot wait for it elsewhere is told so.
    async: { provision: "require", deprovision: "prefer" },
    plans: {
      standard: {
        id: "3e0d6b7c-91a4-4c54-8b1e-5a2f7d9c4e31",
        description: "As many machines as you say",
        maximumPollingDuration: 3_600,
        provision: {
          type: "object",
          properties: { machines: { type: "integer", minimum: 1, maximum: 9 } },
          additionalProperties: false,
        },
      },
    },
    state: {
      type: "object",
      properties: { machines: { type: "array", items: { type: "string" } } },
      required: ["machines"],
    },
    deadlineMs: { provision: 3_600_000 },

    // This function is run from its first line after every wait, failure and crash. Steps that are recorded answer at once, with what
    // they answered the first time.
    async provision(operation, { parameters, instance }) {
      const cluster = clusterOf(instance);
      const count = parameters.machines ?? 3;
      const machines: string[] = [];
      for (let number = 1; number <= count; number++) {
        operation.describe(`${percent(number - 1, count, 0, 40)}: ordering machine ${number} of ${count}`);
        const name = `order machine ${number}`;
        // The cloud may fail, which is an ordinary error: the step is tried again, with more and more time in between.
        machines.push(await operation.step(name, (context) => cloud.order(cluster, name, context)));
      }

      operation.describe("40 %: the machines boot");
      // Holds no connection and no memory: the store knows when to go on, also after a restart.
      await operation.sleep("the machines boot", seconds(30));

      // Not yet is no failure: look again soon.
      const there = await cloud.machines(cluster);
      if (there.length < count) throw new RetryLater("some machines are not up yet", { afterMs: seconds(5) });
      if (there.length > count) throw new Failed(`the cloud made ${there.length} machines instead of ${count}`);

      for (let number = 1; number <= count; number++) {
        operation.describe(`${percent(number - 1, count, 50, 90)}: installing on machine ${number} of ${count}`);
        const name = `install on machine ${number}`;
        await operation.step(name, (context) => cloud.configure(cluster, name, context));
        await operation.sleep(`machine ${number} restarts`, seconds(10));
      }
      operation.describe("90 %: choosing a leader");
      await operation.step("choose a leader", (context) => cloud.configure(cluster, "choose a leader", context));
      return { state: { machines } };
    },

    async bind(_operation, { state }) {
      return { credentials: { machines: [...state.machines] } };
    },

    // Also what undoes a provision that is deleted half-way: it is stopped first, then this runs. It removes what the cloud has under
    // the cluster's name rather than what was recorded: a machine may have been ordered whose answer never came.
    async deprovision(operation, { instance }) {
      operation.describe("removing the machines");
      const name = "remove the machines";
      await operation.step(name, (context) => cloud.removeAll(clusterOf(instance), name, context));
    },
  });
}

/** Ids of two platforms may be alike. */
export function clusterOf({ platform, id }: { readonly platform: string; readonly id: string }): string {
  return `${platform}/${id}`;
}

function percent(done: number, of: number, from: number, to: number): string {
  return `${Math.round(from + ((to - from) * done) / of)} %`;
}
