import type { Changed } from "@osbert/protocol/client";
import type { WaitChoice } from "./command-options.js";
import { type Leftover, mayLeave } from "./open-outcome.js";
import type { Session } from "./session.js";
import { type Wait, type WaitResult, waitForEnd } from "./wait-for-end.js";

/** A change, and how to wait for its end. */
export interface Change<Body> extends Omit<Wait, "timeout"> {
  readonly ask: (options: { readonly acceptsIncomplete: boolean }) => Promise<Changed<Body>>;
  /** What may be there if nobody can tell how it ended. */
  readonly leftover?: Leftover;
}

/** Asks for a change and sees how it ends: at once, when it has been waited for, or not here because nobody wants to wait. */
export function carryOut<Body extends object>(
  session: Session,
  choice: WaitChoice,
  { ask, leftover, ...wait }: Change<Body>,
): Promise<{ readonly changed: Changed<Body>; readonly waited: WaitResult }> {
  const work = async () => {
    const changed = await ask({ acceptsIncomplete: !choice.sync });
    return { changed, waited: await waitResultOf(session, choice, changed, wait) };
  };
  return leftover === undefined ? work() : mayLeave(leftover, work);
}

async function waitResultOf(
  session: Session,
  choice: WaitChoice,
  changed: Changed<object>,
  wait: Omit<Wait, "timeout">,
): Promise<WaitResult> {
  if (changed.kind === "done") return { kind: "succeeded", description: undefined };
  if (!choice.wait) return { kind: "in progress", why: "not waited" };
  return waitForEnd(session, {
    ...wait,
    options: { ...wait.options, operation: changed.operation, retryAfterMs: changed.retryAfterMs },
    timeout: choice.timeout,
  });
}
