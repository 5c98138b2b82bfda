import { type Call, type ClassifiedAnswer, classify } from "@osbert/protocol";
import { type Answered, BrokerAnswerError, type Client, receivedOf } from "@osbert/protocol/client";
import type { BrokerPort } from "../brokers/broker-port.js";
import type { Refusal } from "../records/call-outcome.js";

/** What came of one request, and how it is to be taken. */
export interface Came<Answer> extends ClassifiedAnswer {
  /** Missing: there is none that can be read, or it says no. */
  readonly answer?: Answer;
  /** What can be told of it, and kept. */
  readonly said: Refusal;
  readonly retryAfterMs: number | undefined;
}

export interface CallOptions {
  readonly signal: AbortSignal;
  readonly lostBefore?: boolean;
}

/** Of a broker's words: they are kept in entries, and it may send as many as it likes. */
const longestMessage = 2_000;
/** Each call is written ahead: a broker that says "again at once" cannot make the platform do nothing else. */
const shortestAdviceMs = 1_000;

/**
 * Sends one request to a broker as it is registered now, and tells its health. Throws only if the operation must stop: then nobody knows
 * what became of the request, and the next attempt finds that out.
 */
export async function callBroker<Answer extends Answered<unknown>>(
  ports: { readonly brokers: Pick<BrokerPort, "client" | "saw"> },
  broker: string,
  call: Call,
  send: (client: Client) => Promise<Answer>,
  { signal, lostBefore = false }: CallOptions,
): Promise<Came<Answer>> {
  const client = ports.brokers.client(broker);
  const came =
    client === undefined
      ? new BrokerAnswerError(`the broker ${broker} is not registered`, { kind: "no connection" })
      : await send(client).catch((error: unknown) => {
          if (error instanceof BrokerAnswerError && !signal.aborted) return error;
          throw error;
        });
  const classified = classify(call, receivedOf(came), { lostBefore });
  const failed = came instanceof BrokerAnswerError ? came : undefined;
  const said: Refusal = {
    class: classified.class,
    status: came.status,
    error: clipped(failed?.error, 100) ?? null,
    message: clipped(failed?.description || failed?.message, longestMessage) ?? `the broker answered ${came.status}`,
    usable: flagOf(failed?.body?.instance_usable),
    repeatable: flagOf(failed?.body?.update_repeatable),
  };
  if (client !== undefined) ports.brokers.saw(broker, classified.class, failed === undefined ? null : said.message);
  const retryAfterMs = came.retryAfterMs === undefined ? undefined : Math.max(shortestAdviceMs, came.retryAfterMs);
  return came instanceof BrokerAnswerError
    ? { said, retryAfterMs, ...classified }
    : { said, retryAfterMs, answer: came, ...classified };
}

function flagOf(value: unknown): boolean | null {
  return typeof value === "boolean" ? value : null;
}

export function clipped(text: string | undefined, longest: number): string | undefined {
  return text !== undefined && text.length > longest ? `${text.slice(0, longest - 1)}…` : text;
}
