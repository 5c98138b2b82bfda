import { median } from "../../../../tools/bench/statistics.js";
import type { Benchmark } from "../benchmark.js";
import { newPlace, type Place } from "../places.js";
import { startProgram, wallMs } from "../program.js";
import type { Told } from "../programs/successor.js";
import { firstStep, timeOfBareNode } from "../successors.js";

const operations = 32;

export const takeOver: Benchmark = {
  name: "take-over",
  about: "J11: a process that runs operations is killed; until another one runs the first step of one of them",
  stores: ["SQLite", "PostgreSQL"],
  longestMs: 90_000,
  async run({ ground, stores, quick, tell }) {
    const rounds = quick ? 3 : 7;
    for (const store of stores) {
      const alone = store === "SQLite";
      const [took, bareNode]: [number[], number[]] = [[], []];
      for (let round = 0; round < rounds; round++) {
        const place = newPlace(ground, store);
        if (alone) bareNode.push(await timeOfBareNode());
        took.push(await (alone ? byOneStartedThen(place) : byOneThatRuns(place)));
      }
      const start = alone ? ` (bare Node: ${Math.round(median(bareNode))} ms)` : "";
      tell({
        what: `slowest of ${rounds}, ${alone ? "by a process started at the kill" : "by an engine that runs already"}`,
        store,
        value: Math.max(...took),
        unit: "ms",
        target: { kind: "at most", value: 1_000 },
        beside: `median ${Math.round(median(took))} ms, fastest ${Math.round(Math.min(...took))} ms${start}`,
        details: { took, ...(alone && { bareNode }) },
      });
    }
  },
};

/** A SQLite file has one owner: its successor can only come when it is gone. */
async function byOneStartedThen(place: Place): Promise<number> {
  const holder = startProgram("holder", { place, operations });
  await holder.next();
  const killedAt = wallMs();
  void holder.kill();
  const successor = startProgram<Told>("successor", { place });
  const { runsAt } = await firstStep(successor);
  await successor.kill();
  return runsAt - killedAt;
}

async function byOneThatRuns(place: Place): Promise<number> {
  const holder = startProgram("holder", { place, operations });
  await holder.next();
  const successor = startProgram<Told>("successor", { place });
  await successor.next();
  const killedAt = wallMs();
  void holder.kill();
  const { runsAt } = await firstStep(successor);
  await successor.kill();
  return runsAt - killedAt;
}
