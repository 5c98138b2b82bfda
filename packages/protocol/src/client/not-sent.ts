/**
 * Not a byte of the request has left this machine, so the broker cannot have acted on it: it can be sent again without a second thought. A
 * `fetch` that knows throws it, such as that of `@osbert/protocol/node`; its cause says what was in the way.
 */
export class RequestNotSentError extends Error {
  override readonly name = "RequestNotSentError";
}

/**
 * Whether what a `fetch` threw proves that nothing was sent. Where there is no proof, bytes may have gone out: a reset while the connection
 * is being secured looks like one in the middle of an answer, and the codes of errors alone prove little (a connection that stands can
 * end with EHOSTUNREACH, too), so it is asked what the system was doing when they came.
 *
 * `signal` is the one that the `fetch` was given. Once it is aborted, what was thrown is its reason or has that for a cause, and a caller may
 * give any error for a reason, also one of another call. Then only the word of the `fetch` itself counts.
 */
export function isNotSent(thrown: unknown, signal?: AbortSignal): boolean {
  if (signal?.aborted) return thrown instanceof RequestNotSentError && thrown !== signal.reason;
  for (let error = thrown, depth = 0; error instanceof Error && depth < 5; error = error.cause, depth++) {
    if (error instanceof RequestNotSentError) return true;
    const { code, syscall, errors } = error as Readonly<{ code?: unknown; syscall?: unknown; errors?: unknown }>;
    if (syscall === "connect" || syscall === "getaddrinfo") return true;
    if (typeof code === "string" && (beforeSending.has(code) || certificateCodes.has(code))) return true;
    // All addresses of a name were tried.
    if (Array.isArray(errors) && errors.length > 0 && errors.every((one) => isNotSent(one))) return true;
  }
  return false;
}

const beforeSending: ReadonlySet<string> = new Set(["ERR_INVALID_URL", "UND_ERR_CONNECT_TIMEOUT"]);

/** The broker's certificate was refused, which comes before the request. As Node.js names them. */
const certificateCodes: ReadonlySet<string> = new Set([
  "CERT_CHAIN_TOO_LONG",
  "CERT_HAS_EXPIRED",
  "CERT_NOT_YET_VALID",
  "CERT_REJECTED",
  "CERT_REVOKED",
  "CERT_SIGNATURE_FAILURE",
  "CERT_UNTRUSTED",
  "DEPTH_ZERO_SELF_SIGNED_CERT",
  "ERR_TLS_CERT_ALTNAME_INVALID",
  "HOSTNAME_MISMATCH",
  "INVALID_CA",
  "INVALID_PURPOSE",
  "PATH_LENGTH_EXCEEDED",
  "SELF_SIGNED_CERT_IN_CHAIN",
  "UNABLE_TO_GET_ISSUER_CERT",
  "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
  "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
]);
