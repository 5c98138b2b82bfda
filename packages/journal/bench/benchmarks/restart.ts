import { median } from "../../../../tools/bench/statistics.js";
import type { Benchmark } from "../benchmark.js";
import { newPlace, type Place } from "../places.js";
import { startProgram } from "../program.js";
import type { Told } from "../programs/successor.js";
import { firstStep, timeOfBareNode } from "../successors.js";

export const restart: Benchmark = {
  name: "restart",
  about: "a process that was killed comes back to 10,000 due operations: how soon the first one runs",
  stores: ["SQLite"],
  longestMs: 90_000,
  async run({ ground, stores, quick, tell }) {
    const operations = quick ? 1_000 : 10_000;
    const rounds = quick ? 3 : 7;
    for (const store of stores) {
      const place = newPlace(ground, store);
      const acceptor = startProgram("acceptor", { place, operations });
      await acceptor.next();
      await acceptor.kill();
      const sinceOpen: number[] = [];
      const sinceSpawn: number[] = [];
      const bareNode: number[] = [];
      for (let round = 0; round < rounds; round++) {
        bareNode.push(await timeOfBareNode());
        const { opensAt, runsAt, startedAt } = await comeBack(place);
        sinceOpen.push(runsAt - opensAt);
        sinceSpawn.push(runsAt - startedAt);
      }
      tell({
        what: `first of ${operations.toLocaleString("en")} due, since the journal was opened`,
        store,
        value: median(sinceOpen),
        unit: "ms",
        target: { kind: "at most", value: 500 },
        beside: `${Math.round(median(sinceSpawn))} ms since the process was started (bare Node: ${Math.round(median(bareNode))} ms); slowest of ${rounds}: ${Math.round(Math.max(...sinceOpen))} ms`,
        details: { operations, sinceOpen, sinceSpawn, bareNode },
      });
    }
  },
};

async function comeBack(place: Place): Promise<{ opensAt: number; runsAt: number; startedAt: number }> {
  const successor = startProgram<Told>("successor", { place });
  const first = await firstStep(successor);
  await successor.kill();
  return { ...first, startedAt: successor.startedAt };
}
