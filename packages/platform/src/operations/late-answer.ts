import { Interrupted, JournalError } from "@osbert/journal";
import type { Refusal } from "../records/call-outcome.js";
import { instances } from "../records/instance-record.js";
import type { InstanceOperation } from "./instance-operation.js";
import type { RunPorts } from "./run-ports.js";

/**
 * As the signal of an operation, but for the end of its lease: what was sent has been sent, and whoever goes on has to find out what became of it.
 * The answer is worth having then, although nobody acts upon it. The time of a request still ends it.
 */
export function unlessOvertaken(signal: AbortSignal): AbortSignal {
  const controller = new AbortController();
  const stop = () => {
    if (!isOvertaken(signal)) controller.abort(signal.reason);
  };
  if (signal.aborted) stop();
  else signal.addEventListener("abort", stop, { once: true });
  return controller.signal;
}

export function isOvertaken({ aborted, reason }: AbortSignal): boolean {
  return aborted && reason instanceof Interrupted && reason.why === "lease-lost";
}

/** Whether what was thrown says that another process has the operation. */
export function isLeaseLost(error: unknown): boolean {
  return error instanceof JournalError && error.code === "lease-lost";
}

/**
 * E10-20: keeps the answer that a process heard after it was overtaken, as an observation. It writes without a lease, and nothing but the entry. Nobody
 * waits for it: if it cannot be written, it is as if there had been no answer.
 */
export async function keepLateAnswer(
  { journal }: RunPorts,
  { key, id }: Pick<InstanceOperation, "key" | "id">,
  heard: { readonly what: string; readonly requestId: string; readonly said: Refusal },
): Promise<void> {
  const { what, requestId, said } = heard;
  const { status, error, message } = said;
  const payload = { what, requestId, class: said.class, status, error, message };
  const decide = instances.decide<null>((resource) =>
    resource === undefined
      ? { result: null }
      : { result: null, change: { entries: [{ kind: "answered-late", payload, operation: id }] } },
  );
  const by = { actor: { type: "system", subject: "platform" } } as const;
  await journal()
    .transact(key, decide, { by })
    .catch(() => undefined);
}
