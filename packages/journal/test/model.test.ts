import fc from "fast-check";
import { expect, test } from "vitest";
import { commands } from "./model/commands.js";
import { Broken } from "./model/story.js";
import { World, type WorldOptions } from "./model/world.js";

/**
 * Random stories of accepting, cancelling, steps that finish and fail, time that passes, crashes, take-overs, lost answers and slow
 * wires, held against what the journal promises (model/witness.ts). Some are the same each time, so that what a change breaks shows;
 * some are new each time, to find what nobody thought of. OSBERT_MODEL_RUNS runs more of them; OSBERT_MODEL_SEED, which a failure
 * prints, runs the same ones again.
 */
const asked = process.env.OSBERT_MODEL_SEED;
const seeds =
  asked === undefined
    ? [
        { seed: 1, runs: 2_000 },
        { seed: Math.floor(Math.random() * 2 ** 31), runs: 500 },
      ]
    : [{ seed: Number(asked), runs: 400 }];

const kinds: readonly Omit<WorldOptions, "random">[] = [
  { kind: "one process", room: "wide" },
  { kind: "one process", room: "tight" },
  { kind: "several processes", room: "wide" },
  { kind: "several processes", room: "tight" },
];

const cases = kinds.flatMap((kind) =>
  seeds.map(({ seed, runs }) => ({ kind, seed, runs: Number(process.env.OSBERT_MODEL_RUNS ?? runs) })),
);

for (const { kind, seed, runs } of cases) {
  test(
    `whatever happens, the journal keeps its promises (${kind.kind}, ${kind.room} room, ${runs} runs, seed ${seed})`,
    async () => {
      const story = fc.commands<World, World, false>([commands], { maxCommands: 60, size: "max" });
      const property = fc.asyncProperty(story, fc.nat(1_000_000), (acts, chance) => play(kind, acts, chance));
      const details = await fc.check(property, {
        numRuns: Math.ceil(runs / kinds.length),
        seed,
      });
      if (details.failed) expect.fail(report(details, runs));
    },
    runs * 100 + 60_000,
  );
}

async function play(kind: Omit<WorldOptions, "random">, acts: Iterable<fc.AsyncCommand<World, World>>, chance: number) {
  const world = new World({ ...kind, random: chances(chance) });
  try {
    for (const slot of world.slots) await world.start(slot);
    await fc.asyncModelRun(() => ({ model: world, real: world }), acts);
    await world.end();
  } catch (error) {
    if (!(error instanceof Broken))
      throw new Error(`${world.story}\n\n${String((error as Error).stack ?? error)}`, { cause: error });
    throw new Broken(`${error.message}\n\n${world.story}`);
  }
}

/** A small generator: the same numbers for the same seed. */
function chances(start: number): () => number {
  let state = start;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

function report(
  {
    errorInstance,
    seed,
    numRuns,
    numShrinks,
  }: Pick<fc.RunDetails<unknown[]>, "errorInstance" | "seed" | "numRuns" | "numShrinks">,
  runs: number,
): string {
  const why = errorInstance instanceof Error ? errorInstance.message : String(errorInstance);
  return [
    why,
    "",
    `found in run ${numRuns}, shrunk ${numShrinks} times. The same again:`,
    `OSBERT_MODEL_SEED=${seed} OSBERT_MODEL_RUNS=${runs} npx vitest run packages/journal/test/model.test.ts`,
  ].join("\n");
}
