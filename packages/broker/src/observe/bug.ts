import { fileURLToPath } from "node:url";
import { errorFacts, type Line, shortened, terminalText } from "@osbert/server/observe";
import type { BrokerEvent } from "./event.js";
import { failedStep } from "./failed-step.js";

const mostFrames = 4;

/** What looks like a bug in a service, in words for its author, with the place in their own files; `undefined`: it does not. */
export function bugOf(event: BrokerEvent, count: number): string | undefined {
  return event.kind === "retrying" && looksLikeABug(event.error) ? bugText(event, count) : undefined;
}

/** The same for a log: the line that tells of the failure, louder. */
export function bugLineOf(event: BrokerEvent, { fields }: Line, times: number): Line | undefined {
  if (event.kind !== "retrying" || !looksLikeABug(event.error)) return undefined;
  const { until: _, ...facts } = fields as Readonly<Record<string, unknown>>;
  const message = "this looks like a bug in a service: it is tried again until its deadline, and will not help itself";
  return { level: "error", message, fields: { ...facts, times, at: authorFrames(event.error).map(shortened) } };
}

function bugText(
  { operationKind, service, error }: { operationKind: string; service: string | null; error: unknown },
  count: number,
): string {
  const step = failedStep(error);
  const { type, message } = errorFacts(error);
  const where = `${step === null ? "outside of any step" : `in step ${JSON.stringify(step)}`} of ${operationKind}`;
  const often = count === 1 ? "" : `, ${count} times so far`;
  return [
    `ERROR This looks like a bug in the service ${terminalText(service ?? "unknown")}, ${terminalText(where)}${often}:`,
    `    ${terminalText(type)}: ${terminalText(message)}`,
    ...authorFrames(error).map((frame) => `        ${terminalText(frame)}`),
    `    It is tried again until its deadline. Mend it and restart the broker: what is recorded is not done again.`,
  ].join("\n");
}

/**
 * Whether an error looks like a mistake in the author's code rather than a misfortune outside: trying again will not help. What has a
 * cause was made of a misfortune, as the TypeError of a `fetch` that failed is.
 */
function looksLikeABug(error: unknown): boolean {
  try {
    if (!(error instanceof Error) || error.cause !== undefined) return false;
    return ["TypeError", "ReferenceError", "RangeError", "AssertionError"].includes(error.name);
  } catch {
    return false;
  }
}

/** Where in the author's own files it was thrown, innermost first: frames of Node.js, of packages and of Osbert are left out. */
function authorFrames(error: unknown): readonly string[] {
  const frames = framesOf(error);
  const own = frames.filter((frame) => !isForeign(frame));
  return (own.length > 0 ? own : frames).slice(0, mostFrames);
}

function framesOf(error: unknown): readonly string[] {
  try {
    const stack = error instanceof Error ? String(error.stack) : "";
    return stack
      .split("\n")
      .filter((line) => /^\s+at /.test(line))
      .map((line) => line.trim());
  } catch {
    return [];
  }
}

/** Where Osbert's packages lie: beside each other in a checkout, below node_modules elsewhere. */
const packages = fileURLToPath(new URL("../../../", import.meta.url));

function isForeign(frame: string): boolean {
  const place = frame.replace("file://", "");
  if (/[( ]node:|[/\\]node_modules[/\\]|<anonymous>/.test(place)) return true;
  const at = place.indexOf(packages);
  return at >= 0 && /^[^/\\]+[/\\](src|dist)[/\\]/.test(place.slice(at + packages.length));
}
