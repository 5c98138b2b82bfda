import type { Answer } from "./answer.js";

/** Why a request is refused, as whoever asked is told. A BrokerError is one; a room with errors of its own may bring them. */
export interface Problem extends Error {
  /** Its row in a table of errors. */
  readonly code: string;
  readonly status: number;
  readonly body: { readonly error?: string; readonly description: string };
  /** When it is worth asking again. */
  readonly retryAfterSeconds?: number | undefined;
  /** The methods that are possible, on a 405. */
  readonly allow?: string | undefined;
}

/** `challenge`: what a 401 says of how to authenticate. */
export function problemAnswer(problem: Problem, challenge = 'Basic realm="service broker", charset="UTF-8"'): Answer {
  const { status, body, retryAfterSeconds, allow } = problem;
  const headers = {
    ...(retryAfterSeconds !== undefined && { "retry-after": String(retryAfterSeconds) }),
    ...(allow !== undefined && { allow }),
    ...(status === 401 && { "www-authenticate": challenge }),
  };
  return { status, body, ...(Object.keys(headers).length > 0 && { headers }) };
}
