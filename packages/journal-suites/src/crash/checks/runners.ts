import type { Story } from "./evidence.js";
import type { Violation } from "./violation.js";

/**
 * J3. Once a later attempt has begun, an earlier one lets no effect begin any more: that is what a frozen engine must notice when it
 * is thawed. And effects of two attempts do not overlap for as long as they are under way for certain.
 */
export function runnerViolations(stories: readonly Story[]): readonly Violation[] {
  return stories.flatMap((story) => (story.script.leaves && story.ids.size > 1 ? [] : runners(story)));
}

function runners({ script, attempts, effects }: Story): readonly Violation[] {
  const name = `operation ${script.n} of ${script.key}`;
  const found: Violation[] = [];
  const begins = new Map(attempts.map(({ attempt, allowedAt }) => [attempt, allowedAt]));
  for (const effect of effects) {
    const begunAt = begins.get(effect.attempt) ?? 0;
    const later = attempts.find(
      ({ allowedAt, inVain }) => !inVain && allowedAt > begunAt && allowedAt < effect.allowedAt,
    );
    if (later !== undefined)
      found.push({
        kind: "two runners",
        story: `${name}: ${effect.step} began in attempt ${effect.attempt} when attempt ${later.attempt} had begun`,
      });
  }
  for (const [index, effect] of effects.entries()) {
    const other = effects
      .slice(0, index)
      .find((before) => before.attempt !== effect.attempt && before.surelyUntil > effect.at);
    if (other !== undefined)
      found.push({
        kind: "ran at the same time",
        story: `${name}: ${other.step} in attempt ${other.attempt}, ${effect.step} in attempt ${effect.attempt}`,
      });
  }
  return found;
}
