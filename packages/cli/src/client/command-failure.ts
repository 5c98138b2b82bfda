import { BrokerAnswerError, OperationFailedError } from "@osbert/protocol/client";
import { type Login, loginHint } from "./credentials.js";
import { errorCodeOf } from "./error-code.js";
import { CommandError, type ExitStatus, exitStatuses } from "./exit-status.js";
import { type Leftover, OpenOutcomeError } from "./open-outcome.js";
import { type ParameterSource, textsLikeJson } from "./parameters.js";
import { plainText } from "./plain-text.js";

/** A failure as people and as machines read it. Neither carries a stack, a header or a credential. */
export interface CommandFailure {
  readonly status: ExitStatus;
  readonly text: string;
  readonly data: Readonly<Record<string, unknown>>;
}

/** What a command was about when it failed. */
export interface CommandAttempt {
  /** Completes "could not …", such as "provision my-db". */
  readonly doing: string;
  readonly url: string | undefined;
  /** Who the broker was told that the user is. */
  readonly login: Pick<Login, "place"> | undefined;
  readonly parameters?: readonly ParameterSource[] | undefined;
}

export function failureOf(error: unknown, attempt: CommandAttempt): CommandFailure {
  if (error instanceof OpenOutcomeError) return withLeftover(failureOf(error.cause, attempt), error.leftover);
  if (error instanceof CommandError)
    return {
      status: error.status,
      text: `error: ${error.message}\n`,
      data: { kind: kindOf(error), message: error.message },
    };
  if (error instanceof OperationFailedError) return failedOperation(error, attempt);
  if (error instanceof BrokerAnswerError)
    return error.status === null ? noAnswer(error, attempt) : unwantedAnswer(error, error.status, attempt);
  // The only way to get here is an answer that nothing can be made of: nested so deeply that it cannot be printed, for one.
  const message =
    error instanceof RangeError ? "the broker's answer is nested too deeply" : `unexpected: ${nameOf(error)}`;
  return {
    status: exitStatuses.unreachable.status,
    text: block(`could not ${attempt.doing}`, { reason: message }),
    data: { kind: "malformed", message },
  };
}

function withLeftover({ status, text, data }: CommandFailure, { sentence, remove }: Leftover): CommandFailure {
  return {
    status,
    text: `${text}${plainText(sentence)}. To remove it:\n  ${remove}\n`,
    data: { ...data, may_exist: true, remove },
  };
}

function kindOf({ status }: CommandError): string {
  if (status === exitStatuses.usage.status) return "usage";
  return status === exitStatuses.unreachable.status ? "malformed" : "failed";
}

function failedOperation(error: OperationFailedError, { doing }: CommandAttempt): CommandFailure {
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

/** The status decides what the answer is; the body says more, if it can be read. */
function unwantedAnswer(error: BrokerAnswerError, status: number, attempt: CommandAttempt): CommandFailure {
  const { error: code, description, body, retryAfterMs } = error;
  const retryAfter = retryAfterMs === undefined ? undefined : Math.ceil(retryAfterMs / 1_000);
  const data = { kind: error.kind, status, error: code, description, retry_after_seconds: retryAfter };
  const advice = retryAfter === undefined ? {} : { "try again in": `${retryAfter} s` };
  if (!isRefusal(status, body)) {
    const lines = { url: attempt.url ?? "", status: String(status), ...strangeness(status, body), ...advice };
    const title = `could not ${attempt.doing}: what answers there is no broker, or a broken one`;
    return { status: exitStatuses.unreachable.status, text: block(title, lines), data };
  }
  const lines = {
    status: String(status),
    ...(code !== undefined && { error: code }),
    description: description || "the broker does not say why",
    ...advice,
    ...hintFor(status, attempt),
  };
  const what = status === 401 ? "the broker does not know you" : "the broker refused";
  return { status: exitStatuses.failed.status, text: block(`could not ${attempt.doing}: ${what}`, lines), data };
}

/**
 * A 4xx is a no, in whatever words: what stands in front of a broker refuses wrong credentials or too many requests with a page of its own. Of a
 * 404 or a 5xx nobody knows whether a broker has said it, unless it is said as brokers do.
 */
function isRefusal(status: number, body: object | undefined): boolean {
  return status >= 400 && (body !== undefined || (status < 500 && status !== 404));
}

function strangeness(status: number, body: object | undefined): Readonly<Record<string, string>> {
  const reason =
    body === undefined ? "it is no JSON object, as a broker's answer must be" : "a broker does not answer so";
  if (status >= 500) return { reason, hint: "something in front of the broker may have answered in its place" };
  if (status >= 300 && status < 400) return { reason, hint: "it redirects; give the URL that it leads to" };
  return { reason, hint: "is the URL that of a broker?" };
}

function hintFor(status: number, { login, parameters = [] }: CommandAttempt): Readonly<Record<string, string>> {
  const texts = textsLikeJson(parameters);
  switch (status) {
    case 401:
      return login === undefined
        ? { reason: "you gave no name and password", hint: loginHint }
        : {
            reason: `what stands in ${login.place} is wrong, or not for this broker; one that serves several platforms wants --platform`,
            hint: loginHint,
          };
    case 412:
      return { hint: "the broker does not speak version 2.17 of the Open Service Broker API" };
    case 400:
    case 422:
      return texts.length === 0
        ? {}
        : {
            hint: `${texts.map((name) => `-p ${name}=…`).join(" and ")} sent a text; for a number, true or a list write ${texts[0]}:=…`,
          };
    default:
      return {};
  }
}

function noAnswer(error: BrokerAnswerError, { doing, url }: CommandAttempt): CommandFailure {
  const code = errorCodeOf(error.cause);
  const broken = error.kind === "no connection" || error.kind === "connection lost";
  const reason = reasons[code] ?? (broken && code !== "" ? `${error.kind} (${code})` : error.message);
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

function nameOf(error: unknown): string {
  return error instanceof Error ? error.name : typeof error;
}

function block(title: string, facts: Readonly<Record<string, string>>): string {
  const width = Math.max(...Object.keys(facts).map((name) => name.length));
  const lines = Object.entries(facts).map(([name, value]) => `  ${name.padEnd(width)}  ${plainText(value)}\n`);
  return `error: ${plainText(title)}\n${lines.join("")}`;
}
