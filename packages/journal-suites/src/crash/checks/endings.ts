import type { Outcome } from "@osbert/journal";
import { type Ending, outcomesOf } from "../scenario.js";
import type { End, Story } from "./evidence.js";
import type { Violation } from "./violation.js";

/** Every operation ends once, as its script allows, with the results of effects that were witnessed. */
export function endingViolations(stories: readonly Story[]): readonly Violation[] {
  return stories.flatMap((story) => {
    if (story.ends === undefined) return afterTheEnd(story);
    const [end, another] = story.ends;
    const name = `operation ${story.script.n} of ${story.script.key}`;
    if (end === undefined) return [{ kind: "never ended", story: name } as const];
    if (another !== undefined)
      return [{ kind: "ended twice", story: `${name}: ${JSON.stringify(story.ends)}` } as const];
    return [
      ...scripted(story, end, name),
      ...told(story, end, name),
      ...afterTheEnd(story),
      ...cancelled(story, end, name),
    ];
  });
}

function scripted({ script, effects }: Story, { outcome }: End, name: string): readonly Violation[] {
  const seen = `${name} (${script.ending}) ended as ${JSON.stringify(outcome)}`;
  if (!outcomesOf(script).includes(outcome.kind)) return [{ kind: "ended otherwise", story: seen }];
  if (outcome.kind === "failed" && outcome.error.class !== classOf(script.ending))
    return [{ kind: "ended otherwise", story: seen }];
  const values = valuesOf(outcome);
  if (values === undefined) return [];
  return script.steps.flatMap((step, index) => {
    const given = effects.some((effect) => effect.step === step.name && effect.value === values[index]);
    const story = `${name}: ${step.name} is ${values[index]}, which no effect of it gave`;
    return given ? [] : [{ kind: "result from nowhere", story } as const];
  });
}

function classOf(ending: Ending): string {
  return ending === "fails" ? "permanent" : ending === "exhausts" ? "exhausted" : "deadline";
}

function valuesOf(outcome: Outcome): readonly string[] | undefined {
  if (outcome.kind === "succeeded") return Array.isArray(outcome.result) ? (outcome.result as string[]) : [];
  if (outcome.kind !== "failed" || outcome.error.class !== "permanent") return undefined;
  return (outcome.error.details as { values?: string[] } | undefined)?.values ?? [];
}

function told({ settled }: Story, { outcome }: End, name: string): readonly Violation[] {
  const others = settled.filter((event) => event.outcome !== outcome.kind);
  return others.map((event) => ({
    kind: "told another end",
    story: `${name}: process ${event.process} told ${event.outcome}, the store has ${outcome.kind}`,
  }));
}

function afterTheEnd({ script, settled, attempts, effects }: Story): readonly Violation[] {
  const endedAt = settled[0]?.at ?? Number.POSITIVE_INFINITY;
  if (script.leaves) return [];
  const late = [
    ...attempts.map(({ process, allowedAt }) => ({ what: "an attempt", process, allowedAt })),
    ...effects.map(({ step, process, allowedAt }) => ({ what: step, process, allowedAt })),
  ].filter(({ allowedAt }) => allowedAt > endedAt);
  return late.map(({ what, process }) => ({
    kind: "ran after the end",
    story: `operation ${script.n} of ${script.key}: ${what} in process ${process}`,
  }));
}

/** J8: it stops at the next step at the latest, so after the answer at most one more effect begins. */
function cancelled({ cancels, effects }: Story, { outcome }: End, name: string): readonly Violation[] {
  const answered = cancels.find(({ answer }) => answer);
  if (answered === undefined) return [];
  const found: Violation[] = [];
  if (outcome.kind !== "cancelled") found.push({ kind: "cancel ignored", story: `${name} ended as ${outcome.kind}` });
  const later = effects.filter(({ allowedAt }) => allowedAt > answered.at);
  if (later.length > 1) {
    const story = `${name}: ${later.map(({ step }) => step).join(", ")} began after the cancel was answered`;
    found.push({ kind: "cancel ignored", story });
  }
  return found;
}
