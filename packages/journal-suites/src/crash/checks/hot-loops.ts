import { boundedAttempts, type Script } from "../scenario.js";
import type { Story } from "./evidence.js";
import type { Violation } from "./violation.js";

/** In a second, besides those that its script makes go wrong: each take-over may repeat an effect. */
const mostRepeats = 4;
/** In a second. Scripts that try again do so every 20 ms, and for 300 ms at most. */
const mostAttempts = 40;

/** Whatever goes wrong is tried again after a pause: an effect that is repeated as fast as the machine can does harm outside. */
export function hotLoopViolations(stories: readonly Story[]): readonly Violation[] {
  return stories.flatMap(({ script, attempts, effects }) => {
    const name = `operation ${script.n} of ${script.key}`;
    const tries = [
      { what: `${name}: attempts`, most: mostAttempts, at: attempts.map(({ allowedAt }) => allowedAt) },
      ...script.steps.map((step, index) => ({
        what: `${name}: effects of ${step.name}`,
        most: scripted(script, index) + mostRepeats,
        at: effects.filter((effect) => effect.step === step.name).map(({ at }) => at),
      })),
    ];
    return tries.flatMap(({ what, most, at }): readonly Violation[] => {
      const times = mostInASecond(at);
      return times > most ? [{ kind: "hot loop", story: `${what}: ${times} in a second, ${at.length} in all` }] : [];
    });
  });
}

function scripted({ ending, steps, troubles }: Script, index: number): number {
  if (ending === "exhausts" && index === steps.length - 1) return boundedAttempts;
  return 1 + troubles.filter(({ step, kind }) => step === index && kind === "after its effect").length;
}

function mostInASecond(times: readonly number[]): number {
  const sorted = [...times].sort((a, b) => a - b);
  let most = 0;
  for (let first = 0, last = 0; last < sorted.length; last++) {
    while ((sorted[last] ?? 0) - (sorted[first] ?? 0) > 1_000) first++;
    most = Math.max(most, last - first + 1);
  }
  return most;
}
