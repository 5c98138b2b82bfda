import { type ExitStatus, exitStatuses } from "../client/exit-status.js";
import { plainJson, plainText } from "../client/plain-text.js";
import { startProgress } from "../client/progress.js";
import type { AdminSession } from "./admin-session.js";
import { passedOverText } from "./read-commands.js";

const pauseMs = 500;
const ends: ReadonlySet<string> = new Set(["succeeded", "failed", "cancelled"]);

/** Waits for a forced deletion to end, and says what it passed over. Ctrl-C ends the waiting; the deletion goes on. */
export async function reportForceDelete(
  session: AdminSession,
  instance: string,
  operation: string,
): Promise<ExitStatus> {
  const { surroundings, json } = session;
  const { stdout, stderr } = surroundings;
  const progress = startProgress(`deleting ${plainText(instance)}`, surroundings);
  let interrupted = false;
  let wake = (): void => undefined;
  const endListening = surroundings.onInterrupt(() => {
    interrupted = true;
    wake();
  });
  const look = () => session.ask("operation", { instance, operation });
  let seen: Awaited<ReturnType<typeof look>>;
  try {
    for (;;) {
      seen = await look();
      if (ends.has(seen.state) || interrupted) break;
      progress.tell(seen.open?.description || seen.state);
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, pauseMs);
        wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
  } finally {
    endListening();
    progress.stop();
  }
  const { state } = seen;
  if (json) stdout.write(`${plainJson(seen)}\n`);
  if (!ends.has(state)) {
    stderr.write(`operation ${plainText(operation)} goes on\n`);
    return exitStatuses.inProgress.status;
  }
  if (state !== "succeeded") {
    stderr.write(`error: ${plainText(instance)} is not deleted: ${plainText(seen.message || state)}\n`);
    return exitStatuses.failed.status;
  }
  const passedOver = passedOverText(seen);
  const how = passedOver === "" ? "is deleted" : "is deleted by force; look for what was left behind";
  if (!json) stdout.write(`instance ${plainText(instance)} ${how}\n${passedOver}`);
  return exitStatuses.succeeded.status;
}
