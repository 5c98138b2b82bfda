import type { Changed } from "@osbert/protocol/client";
import type { WaitChoice } from "./command-options.js";
import type { Session } from "./session.js";
import { type Ending, type Wait, waitForEnd } from "./wait-for-end.js";

/** How a change ends: at once, when it has been waited for, or not here because nobody wants to wait. */
export async function endingOf(
  session: Session,
  changed: Changed<object>,
  choice: WaitChoice,
  wait: Omit<Wait, "timeout">,
): Promise<Ending> {
  if (changed.kind === "done") return { kind: "succeeded", description: undefined };
  if (!choice.wait) return { kind: "in progress", why: "not waited" };
  return waitForEnd(session, {
    ...wait,
    options: { ...wait.options, operation: changed.operation },
    timeout: choice.timeout,
  });
}
