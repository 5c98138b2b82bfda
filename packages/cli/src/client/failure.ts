import { BrokerAnswerError, OperationFailedError } from "@osbert/protocol/client";
import { CommandError, type ExitStatus, exitStatuses } from "./exit-status.js";
import { plainText } from "./plain-text.js";

/** A failure as people and as machines read it. Neither carries a stack, a header or a credential. */
export interface Failure {
  readonly status: ExitStatus;
  readonly text: string;
  readonly data: Readonly<Record<string, unknown>>;
}

/** `doing` completes "could not …", such as "provision my-db". */
export function failureOf(error: unknown, doing: string, url: string | undefined): Failure {
  if (error instanceof CommandError)
    return {
      status: error.status,
      text: `error: ${error.message}\n`,
      data: { kind: kindOf(error), message: error.message },
    };
  if (error instanceof OperationFailedError) return failedOperation(error, doing);
  if (error instanceof BrokerAnswerError)
    return error.status === null ? noAnswer(error, doing, url) : refusal(error, doing, url);
  // The only way to get here is an answer that nothing can be made of: nested so deeply that it cannot be printed, for one.
  const message =
    error instanceof RangeError ? "the broker's answer is nested too deeply" : `unexpected: ${nameOf(error)}`;
  return {
    status: exitStatuses.unreachable.status,
    text: block(`could not ${doing}`, { reason: message }),
    data: { kind: "malformed", message },
  };
}

function kindOf({ status }: CommandError): string {
  if (status === exitStatuses.usage.status) return "usage";
  return status === exitStatuses.unreachable.status ? "malformed" : "failed";
}

function failedOperation(error: OperationFailedError, doing: string): Failure {
  const { instance_usable: usable, update_repeatable: repeatable } = error.last ?? {};
  return {
    status: exitStatuses.failed.status,
    text: block(`could not ${doing}: the operation failed`, {
      description: error.message,
      ...(usable === false && { "instance usable": "no" }),
      ...(repeatable === false && { "update repeatable": "no" }),
    }),
    data: { kind: error.kind, description: error.message, instance_usable: usable, update_repeatable: repeatable },
  };
}

function refusal(error: BrokerAnswerError, doing: string, url: string | undefined): Failure {
  const { status, error: code, description, body, retryAfterMs } = error;
  const facts = { kind: error.kind, status, error: code, description };
  if (body === undefined || (status !== null && status < 400)) {
    const what =
      body === undefined ? "it is no JSON object, as a broker's answer must be" : "a broker does not answer so";
    const hint =
      status !== null && status >= 300 && status < 400
        ? "it redirects; give the URL that it leads to"
        : "is the URL that of a broker?";
    const lines = { url: url ?? "", status: String(status), reason: what, hint };
    return {
      status: exitStatuses.unreachable.status,
      text: block(`could not ${doing}: what answers there is no broker, or a broken one`, lines),
      data: facts,
    };
  }
  return {
    status: exitStatuses.failed.status,
    text: block(`could not ${doing}: the broker refused`, {
      status: String(status),
      ...(code !== undefined && { error: code }),
      description: description || "the broker does not say why",
      ...(retryAfterMs !== undefined && { "try again in": `${Math.ceil(retryAfterMs / 1_000)} s` }),
      ...hintFor(status),
    }),
    data: facts,
  };
}

function hintFor(status: number | null): Readonly<Record<string, string>> {
  if (status === 401)
    return { hint: "set OSBERT_CREDENTIALS=name:password or OSBERT_TOKEN, or use --credentials-file" };
  if (status === 412) return { hint: "the broker does not speak version 2.17 of the Open Service Broker API" };
  return {};
}

function noAnswer(error: BrokerAnswerError, doing: string, url: string | undefined): Failure {
  const code = codeOf(error.cause);
  const reason =
    reasons[code] ?? (error.kind === "no connection" && code !== "" ? `no connection (${code})` : error.message);
  return {
    status: exitStatuses.unreachable.status,
    text: block(`could not ${doing}: no answer from the broker`, { url: url ?? "", reason }),
    data: { kind: error.kind, ...(code !== "" && { code }), message: reason },
  };
}

const untrusted =
  "its certificate is not signed by a known authority; name yours with --ca, or with NODE_EXTRA_CA_CERTS";
const reasons: Readonly<Record<string, string>> = {
  ECONNREFUSED: "nothing listens there; is the broker running? (--url or OSBERT_URL says where it is)",
  ENOTFOUND: "no machine has that name",
  EAI_AGAIN: "the name could not be looked up",
  DEPTH_ZERO_SELF_SIGNED_CERT: untrusted,
  SELF_SIGNED_CERT_IN_CHAIN: untrusted,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: untrusted,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: untrusted,
  ERR_TLS_CERT_ALTNAME_INVALID: "its certificate is for another name",
  CERT_HAS_EXPIRED: "its certificate has expired",
};

/** The code of the innermost cause. Its message stays inside: it may quote what was sent. */
function codeOf(cause: unknown): string {
  for (let inner = cause, depth = 0; inner instanceof Error && depth < 5; inner = inner.cause, depth++) {
    const { code } = inner as NodeJS.ErrnoException;
    if (typeof code === "string" && /^[A-Z0-9_]{1,60}$/.test(code)) return code;
  }
  return "";
}

function nameOf(error: unknown): string {
  return error instanceof Error ? error.name : typeof error;
}

function block(title: string, facts: Readonly<Record<string, string>>): string {
  const width = Math.max(...Object.keys(facts).map((name) => name.length));
  const lines = Object.entries(facts).map(([name, value]) => `  ${name.padEnd(width)}  ${plainText(value)}\n`);
  return `error: ${plainText(title)}\n${lines.join("")}`;
}
