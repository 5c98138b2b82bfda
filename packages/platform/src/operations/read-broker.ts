import { RetryLater } from "@osbert/journal";
import type { Answered, CallOptions, Client } from "@osbert/protocol/client";
import { callBroker } from "./call-broker.js";
import { identityOf } from "./identity-of.js";
import type { InstanceOperation } from "./instance-operation.js";
import { growingPauseMs } from "./pauses.js";
import type { RunPorts } from "./run-ports.js";
import { pausesAreThrown } from "./send-call.js";

/** A read is asked so often if the broker answers nothing that can be used. While it cannot be reached, that is waited for. */
const mostReads = 5;

/**
 * Asks a broker for something that it may have. `keep` takes what was found, before it is recorded that it was: secrets belong in no entry.
 * `unclear`: the broker says neither yes nor no. Of what is there and cannot be used, the reason is told.
 */
export async function readBroker<Body>(
  ports: RunPorts,
  operation: InstanceOperation,
  name: string,
  read: (client: Client, options: CallOptions) => Promise<Answered<Body>>,
  keep: (answer: Answered<Body>) => Promise<string | null> = async () => null,
): Promise<"there" | "not there" | "unclear" | { readonly unusable: string }> {
  const { pauses, random, newId } = ports;
  const look = async ({ looks, signal }: { readonly looks: number; readonly signal: AbortSignal }) => {
    const options = { ...identityOf(operation.input), requestId: newId(), signal };
    const came = await callBroker(ports, operation.data.broker, "fetch", (client) => read(client, options), { signal });
    const { answer, next, said, retryAfterMs } = came;
    if (answer !== undefined) {
      const unusable = await keep(answer);
      return unusable === null ? ("there" as const) : { unusable };
    }
    if (next === "fail")
      return said.status === 404 || said.status === 410 ? ("not there" as const) : ("unclear" as const);
    const isHeard = said.status !== null && next !== "replace credentials" && next !== "wait";
    if (isHeard && looks + 1 >= mostReads) return "unclear" as const;
    const pause = next === "wait" ? pauses.busy : pauses.notSent;
    throw new RetryLater(said.message, { afterMs: retryAfterMs ?? growingPauseMs(pause, looks, random) });
  };
  return operation.poll(name, look, { everyMs: pausesAreThrown });
}
