import type { Story } from "./evidence.js";
import type { Violation } from "./violation.js";

/** J6: however often the process was killed, a poll knows how often it has looked. The last look may be made again: it was perhaps not recorded. */
export function lookViolations(stories: readonly Story[]): readonly Violation[] {
  return stories.flatMap(({ script, looks, ids }) => {
    if (script.leaves && ids.size > 1) return [];
    return looks.flatMap(({ before, process }, index): readonly Violation[] => {
      const last = looks[index - 1]?.before ?? 0;
      if (before === last || before === last + 1) return [];
      const story = `operation ${script.n} of ${script.key}: look ${before} in process ${process} came after look ${last}`;
      return [{ kind: "look forgotten", story }];
    });
  });
}
