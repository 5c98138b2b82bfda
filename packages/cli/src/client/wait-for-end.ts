import type { LastOperationResponse } from "@osbert/protocol";
import { BrokerAnswerError, type WaitOptions } from "@osbert/protocol/client";
import { startProgress } from "./progress.js";
import type { Session } from "./session.js";

/** How a wait came out. A failed operation is thrown. */
export type WaitResult =
  | { readonly kind: "succeeded"; readonly description: string | undefined }
  | { readonly kind: "in progress"; readonly why: "not waited" | "interrupted" | "timed out" };

export interface Wait {
  /** For the line that a person sees: "provisioning my-db". */
  readonly what: string;
  readonly poll: (options: WaitOptions) => Promise<LastOperationResponse>;
  readonly options: WaitOptions;
  /** As it stands in the catalog: anything. */
  readonly maximumPollingDuration?: unknown;
  /** Seconds. */
  readonly timeout: number | undefined;
}

/** Waits with progress until the operation has ended, the time is up, or Ctrl-C. Calling it off ends the waiting, never the operation. */
export async function waitForEnd(session: Session, wait: Wait): Promise<WaitResult> {
  const { surroundings } = session;
  const limits = [
    ...(typeof wait.maximumPollingDuration === "number" && wait.maximumPollingDuration > 0
      ? [wait.maximumPollingDuration]
      : []),
    ...(wait.timeout === undefined ? [] : [wait.timeout]),
  ];
  const interrupted = new AbortController();
  const ignoreInterrupts = surroundings.onInterrupt(() => interrupted.abort());
  const progress = startProgress(wait.what, surroundings);
  try {
    const last = await wait.poll({
      ...session.call,
      ...wait.options,
      ...(limits.length > 0 && { maximumPollingDuration: Math.min(...limits) }),
      signal: interrupted.signal,
      onPoll: (news) => progress.tell(news === undefined ? undefined : textOf(news.description)),
    });
    return { kind: "succeeded", description: textOf(last.description) || undefined };
  } catch (error) {
    if (!(error instanceof BrokerAnswerError)) throw error;
    if (error.kind === "called off") return { kind: "in progress", why: "interrupted" };
    if (error.kind === "operation timed out") return { kind: "in progress", why: "timed out" };
    throw error;
  } finally {
    progress.stop();
    ignoreInterrupts();
  }
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}
