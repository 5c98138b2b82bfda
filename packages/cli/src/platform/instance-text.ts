import type { apiDescriptions } from "@osbert/platform/api";
import type { Shaped } from "@osbert/server/client";
import { facts } from "../admin/print.js";
import { plainJson, plainText } from "../client/plain-text.js";
import { table } from "../client/table.js";
import { formatElapsedMs } from "../duration.js";
import { numberMark, numbersAsTexts, numbersBack } from "./number-texts.js";

export type Instance = Shaped<(typeof apiDescriptions)["instance"]["answer"]>;
export type Queued = Instance["queue"][number];
type State = NonNullable<Instance["applied"]>;

/** Everything about an instance in one look: what is, what is under way, what will be. */
export function instanceText(instance: Instance): string {
  return [
    facts({
      instance: `${instance.name} (space ${instance.space})`,
      service: `${instance.offering.name} of broker ${instance.broker}`,
      phase: phaseText(instance),
      dashboard: instance.dashboard_url ?? "",
      "wanted by": `${instance.created_by}, ${instance.created_at}`,
      revision: String(instance.revision),
      locked: instance.lock === null ? "" : `by ${instance.lock.by}: ${instance.lock.reason}`,
      "last delete": instance.last_delete === null ? "" : refusalText(instance.last_delete),
    }),
    statesText(instance),
    queueText(instance.queue),
    failuresText(instance.failures),
    bindingsText(instance.bindings),
  ]
    .filter((part) => part !== "")
    .join("\n");
}

/** The same instance with numbers in its parameters that are shown as they were written, from the text that it came as. */
export function withExactNumbers(instance: Instance, text: string): Instance {
  const { applied, desired } = JSON.parse(numbersAsTexts(text, numberMark)) as Instance;
  const exact = (state: State | null, read: State | null) =>
    state && { ...state, parameters: read?.parameters ?? null };
  return { ...instance, applied: exact(instance.applied, applied), desired: exact(instance.desired, desired) };
}

/** What the instance will be after one operation, from the text that it came as. */
export function exactState(state: State, text: string): State {
  const { after } = JSON.parse(numbersAsTexts(text, numberMark)) as { readonly after: State | null };
  return { ...state, parameters: after?.parameters ?? null };
}

/** What is wanted of it, in order. */
export function queueText(queue: readonly Queued[]): string {
  if (queue.length === 0) return "nothing is under way\n";
  const rows = queue.map((one) => [
    String(one.position),
    one.operation,
    one.op,
    one.state,
    one.author,
    formatElapsedMs(one.age_ms),
    queuedText(one),
  ]);
  return `${table(["#", "OPERATION", "WANTS", "STATE", "BY", "FOR", "WHAT"], rows)}\n`;
}

/** One of the queue in a word. */
export function queuedText(one: Queued): string {
  const overrides = one.overrides.length === 0 ? "" : ` (over ${one.overrides.join(", ")})`;
  const news = one.held_for ?? (one.state === "paused" ? "waits until its broker can be reached" : one.description);
  return `${one.summary}${overrides}${news ? `: ${news}` : ""}`;
}

/** Plan and parameters as they are, and as they will be, where that is something else. */
function statesText({ applied, desired, queue, phase }: Instance): string {
  const isOver = phase === "gone" || phase === "abandoned";
  const is = isOver ? "gone" : applied === null ? "not there yet" : stateText(applied);
  const willBe = desired === null ? "gone" : stateText(desired);
  return facts({ is, "will be": queue.length === 0 || is === willBe ? "" : willBe });
}

export function stateText({ plan, parameters, maintenance }: State): string {
  const given = parameters === null ? "" : `, parameters ${plainText(numbersBack(plainJson(parameters, 0)), 500)}`;
  return `plan ${plan.name}${maintenance === null ? "" : `, maintenance ${maintenance}`}${given}`;
}

function phaseText({ phase, usable, applied, certainty }: Instance): string {
  const doubts = [
    // Of what is not there, a broker says nothing.
    ...(usable || applied === null ? [] : ["its broker says that it cannot be used"]),
    ...(certainty.certain ? [] : ["nobody knows yet what became of the last call"]),
  ];
  return doubts.length === 0 ? phase : `${phase} (${doubts.join("; ")})`;
}

function refusalText({ by, at, message }: NonNullable<Instance["last_delete"]>): string {
  return `wanted by ${by}, refused at ${at}: ${message}`;
}

function failuresText(failures: Instance["failures"]): string {
  if (failures.length === 0) return "";
  const rows = failures.map((one) => [one.operation, one.op, one.at, one.paths.join(" "), one.message]);
  return `${table(["FAILED", "WANTED", "AT", "PATHS", "WHY"], rows)}\n`;
}

export function bindingsText(bindings: Instance["bindings"]): string {
  if (bindings.length === 0) return "";
  const rows = bindings.map((one) => [
    one.name,
    one.phase,
    one.created_by,
    one.expires_at ?? "-",
    [one.successor && `replaced by ${one.successor}`, one.message].filter(Boolean).join("; "),
  ]);
  return `${table(["BINDING", "PHASE", "BY", "EXPIRES", ""], rows)}\n`;
}
