import { acceptedSeq } from "@osbert/journal/testing";
import type { Story } from "./evidence.js";
import type { Violation } from "./violation.js";

/**
 * J7: on each resource, in the order of acceptance, no effect begins before those of operations further in front are over, if one of
 * the two is exclusive.
 */
export function orderViolations(stories: readonly Story[]): readonly Violation[] {
  const resources = new Map<string, Story[]>();
  for (const story of stories) {
    if (story.script.leaves || story.ids.size !== 1) continue;
    resources.set(story.script.key, [...(resources.get(story.script.key) ?? []), story]);
  }
  return [...resources.values()].flatMap((queue) => orderIn(queue.sort((a, b) => placeOf(a) - placeOf(b))));
}

interface Last {
  readonly until: number;
  readonly story: Story | undefined;
}

function orderIn(queue: readonly Story[]): readonly Violation[] {
  const found: Violation[] = [];
  const none: Last = { until: Number.NEGATIVE_INFINITY, story: undefined };
  let [any, exclusive] = [none, none];
  for (const story of queue) {
    const { effects } = story;
    if (effects.length === 0) continue;
    const isExclusive = story.script.mode === "exclusive";
    const before = isExclusive ? any : exclusive;
    const first = Math.min(...effects.map(({ at }) => at));
    if (first < before.until)
      found.push({
        kind: "order broken",
        story: `${story.script.key}: ${titleOf(story)} began ${(before.until - first).toFixed(1)} ms before ${titleOf(before.story)} was over`,
      });
    const last: Last = { until: Math.max(...effects.map(({ surelyUntil }) => surelyUntil)), story };
    if (last.until > any.until) any = last;
    if (isExclusive && last.until > exclusive.until) exclusive = last;
  }
  return found;
}

function placeOf({ ids }: Story): number {
  const [id = ""] = ids;
  return acceptedSeq(id) ?? 0;
}

function titleOf(story: Story | undefined): string {
  return story === undefined ? "nothing" : `operation ${story.script.n} (${story.script.mode})`;
}
