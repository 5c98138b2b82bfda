import { acceptanceViolations } from "./acceptance.js";
import { effectViolations } from "./effects.js";
import { endingViolations } from "./endings.js";
import { type Run, storiesOf } from "./evidence.js";
import { hotLoopViolations } from "./hot-loops.js";
import { journalViolations } from "./journals.js";
import { lookViolations } from "./looks.js";
import { orderViolations } from "./order.js";
import { ownerViolations } from "./owners.js";
import { runnerViolations } from "./runners.js";
import { sleepViolations } from "./sleep.js";
import { stepViolations } from "./steps.js";
import type { Violation } from "./violation.js";
import { waitViolations } from "./waits.js";

/** Every broken promise that a run shows. Pure: the same evidence gives the same result. */
export function violationsOf(run: Run): readonly Violation[] {
  const stories = storiesOf(run);
  return [
    ...acceptanceViolations(stories),
    ...endingViolations(stories),
    ...stepViolations(stories),
    ...runnerViolations(stories),
    ...orderViolations(stories),
    ...waitViolations(stories),
    ...lookViolations(stories),
    ...effectViolations(run, stories),
    ...journalViolations(run),
    ...endedByItself(run),
    ...hotLoopViolations(stories),
    ...sleepViolations(run),
    ...ownerViolations(run),
  ];
}

function endedByItself({ witnessed }: Run): readonly Violation[] {
  return witnessed.flatMap((event) =>
    event.kind === "ended by itself"
      ? [{ kind: "ended by itself", story: `process ${event.process}: ${event.why}` } as const]
      : [],
  );
}
