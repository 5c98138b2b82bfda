import type { Received } from "../answer-classes.js";
import type { Answered, BrokerAnswerError } from "./broker-answer.js";

/** What came back of a call of the client, whether it gave an answer or threw: this is what `classify` takes. */
export function receivedOf(came: Answered<unknown> | BrokerAnswerError): Received {
  if (!(came instanceof Error))
    return { kind: "answer", status: came.status, wellFormed: true, retryAfterMs: came.retryAfterMs };
  const { status, body, error, retryAfterMs, sent } = came;
  if (status === null) return sent ? { kind: "lost" } : { kind: "not sent" };
  return { kind: "answer", status, wellFormed: body !== undefined, error, retryAfterMs };
}
