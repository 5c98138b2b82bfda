import type { Story } from "./evidence.js";
import type { Violation } from "./violation.js";

/** J4: at least once, recorded once, never again, under one key. */
export function stepViolations(stories: readonly Story[]): readonly Violation[] {
  const found: Violation[] = [];
  const owners = new Map<string, string>();
  for (const story of stories) {
    // A resource that was gone may have been asked for anew: two operations of one script.
    if (story.script.leaves && story.ids.size > 1) continue;
    for (const { name } of story.script.steps) {
      found.push(...recordedOnce(story, name));
      found.push(...oneKey(story, name, owners));
    }
  }
  return found;
}

function recordedOnce({ script, attempts, effects, done }: Story, step: string): readonly Violation[] {
  const where = `operation ${script.n} of ${script.key}, ${step}`;
  const found: Violation[] = [];
  const seen = [
    ...done.filter((event) => event.step === step).map(({ at, value }) => ({ at, value })),
    ...attempts.flatMap(({ allowedAt: at, recorded }) =>
      recorded[step] === undefined ? [] : [{ at, value: recorded[step] }],
    ),
  ].sort((a, b) => a.at - b.at);
  const [first] = seen;
  if (first === undefined) return [];
  for (const effect of effects) {
    if (effect.step === step && effect.allowedAt > first.at)
      found.push({
        kind: "recorded step ran again",
        story: `${where}: in process ${effect.process}, ${ms(effect.at - first.at)} after it was recorded`,
      });
  }
  for (const { allowedAt, recorded, process } of attempts) {
    if (allowedAt > first.at && recorded[step] === undefined)
      found.push({ kind: "recorded step forgotten", story: `${where}: by an attempt in process ${process}` });
  }
  const values = new Set(seen.map(({ value }) => value));
  if (values.size > 1) found.push({ kind: "two results of a step", story: `${where}: ${[...values].join(", ")}` });
  for (const value of values) {
    if (!effects.some((effect) => effect.step === step && effect.value === value))
      found.push({ kind: "result from nowhere", story: `${where}: ${value}` });
  }
  return found;
}

function oneKey({ script, effects }: Story, step: string, owners: Map<string, string>): readonly Violation[] {
  const where = `operation ${script.n} of ${script.key}, ${step}`;
  const keys = new Set(effects.filter((effect) => effect.step === step).map(({ idempotencyKey }) => idempotencyKey));
  const found: Violation[] = [];
  if (keys.size > 1) found.push({ kind: "several idempotency keys", story: `${where}: ${[...keys].join(", ")}` });
  for (const key of keys) {
    const owner = owners.get(key);
    if (owner !== undefined) found.push({ kind: "idempotency key shared", story: `${where} and ${owner}` });
    owners.set(key, where);
  }
  return found;
}

function ms(time: number): string {
  return `${time.toFixed(1)} ms`;
}
