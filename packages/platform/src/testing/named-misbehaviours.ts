import type { AnswerClass } from "@osbert/protocol";
import type { Misbehaviour } from "./misbehaviour.js";

export interface NamedMisbehaviour {
  /** One sentence, for the list of them. */
  readonly does: string;
  /** How a platform takes it when it creates something; `null`: as a platform takes a good answer. */
  readonly class: AnswerClass | null;
  readonly misbehaviour: Misbehaviour;
}

const refused = (status: number, does: string, of: AnswerClass = "rejected"): NamedMisbehaviour => ({
  does,
  class: of,
  misbehaviour: { status },
});

const refusedWith = (error: string, of: AnswerClass): NamedMisbehaviour => ({
  does: `says 422 ${error}`,
  class: of,
  misbehaviour: { status: 422, body: { error, description: `this broker was told to say ${error}` } },
});

/** Misbehaviours by the names that rules, plans and parameters call them. The table is closed; what is not in it is written as an object. */
export const namedMisbehaviours = {
  good: { does: "is a good broker, and does at once what it is asked", class: null, misbehaviour: {} },

  // 202, and what becomes of it.
  async: { does: "says 202; the second poll says succeeded", class: "running", misbehaviour: { slow: {} } },
  "async-fails": {
    does: "says 202; the second poll says failed",
    class: "running",
    misbehaviour: { slow: { end: "failed" } },
  },
  "async-fails-unusable": {
    does: "says 202; it fails, and the instance cannot be used any more",
    class: "running",
    misbehaviour: { slow: { end: "failed", usable: false } },
  },
  "async-fails-for-good": {
    does: "says 202; it fails, and must not be asked for again",
    class: "running",
    misbehaviour: { slow: { end: "failed", repeatable: false } },
  },
  "async-endless": {
    does: "says 202, and is in progress for ever",
    class: "running",
    misbehaviour: { slow: { polls: "endless" } },
  },
  "async-without-operation": {
    does: "says 202 without an operation",
    class: "running",
    misbehaviour: { slow: { key: "none" } },
  },
  "async-operation-too-long": {
    does: "says 202 with an operation of 10,001 characters",
    class: "unknown",
    misbehaviour: { slow: { key: "too-long" } },
  },
  "async-operation-a-number": {
    does: "says 202 with an operation that is no text",
    class: "unknown",
    misbehaviour: { slow: { key: "number" } },
  },
  "async-forgotten": {
    does: "says 202, and 404 to each poll",
    class: "running",
    misbehaviour: { slow: { polls: "endless", polled: { status: 404 } } },
  },
  "async-gone": {
    does: "says 202, and 410 to each poll",
    class: "running",
    misbehaviour: { slow: { polls: "endless", polled: { status: 410 } } },
  },
  "async-polls-refused": {
    does: "says 202, and 400 to each poll",
    class: "running",
    misbehaviour: { slow: { polls: "endless", polled: { status: 400 } } },
  },
  "async-polls-break": {
    does: "says 202, and resets each poll, until it is done by itself after a second",
    class: "running",
    misbehaviour: { slow: { ms: 1_000, polled: { answerBytes: 0 } } },
  },
  "async-unknown-state": {
    does: "says 202, and polls tell a state that does not exist",
    class: "running",
    misbehaviour: { slow: { polls: "endless", polled: { status: 200, body: { state: "on holiday" } } } },
  },

  // It says no.
  "400": refused(400, "says 400"),
  "403": refused(403, "says 403"),
  "404": refused(404, "says 404"),
  "405": refused(405, "says 405"),
  "413": refused(413, "says 413"),
  "415": refused(415, "says 415"),
  "418": refused(418, "says 418, which no broker should"),
  "422": refused(422, "says 422 without a code"),
  unusable: {
    does: "says 400, and that the instance cannot be used any more",
    class: "rejected",
    misbehaviour: { status: 400, body: { description: "it is broken now", instance_usable: false } },
  },
  "409": refused(409, "says 409, although there is nothing of that id", "conflict"),
  "done-409": {
    does: "does it, and says 409",
    class: "conflict",
    misbehaviour: { effect: "done", status: 409 },
  },
  "401": refused(401, "says 401, whoever asks", "unauthorized"),
  concurrency: refusedWith("ConcurrencyError", "busy"),
  "maintenance-conflict": refusedWith("MaintenanceInfoConflict", "needs refresh"),
  "needs-async": refusedWith("AsyncRequired", "needs async"),
  "needs-app": refusedWith("RequiresApp", "needs app"),
  "408": refused(408, "says 408", "busy"),
  "423": refused(423, "says 423", "busy"),
  "429": {
    does: "says 429 with Retry-After: 1",
    class: "busy",
    misbehaviour: { status: 429, headers: { "retry-after": "1" } },
  },
  "503-retry-after": {
    does: "says 503 with Retry-After: 1",
    class: "busy",
    misbehaviour: { status: 503, headers: { "retry-after": "1" } },
  },
  "503-retry-after-nonsense": {
    does: "says 503 with a Retry-After that is neither a number nor a date",
    class: "unknown",
    misbehaviour: { status: 503, headers: { "retry-after": "soon" } },
  },

  // Nobody knows what it did.
  "500": refused(500, "does nothing, and says 500", "unknown"),
  "502": refused(502, "does nothing, and says 502", "unknown"),
  "503": refused(503, "does nothing, and says 503", "unknown"),
  "504": refused(504, "does nothing, and says 504", "unknown"),
  "done-500": { does: "does it, and says 500", class: "unknown", misbehaviour: { effect: "done", status: 500 } },
  "done-204": {
    does: "does it, and says 204, which is nowhere specified",
    class: "unknown",
    misbehaviour: { status: 204 },
  },
  "201-not-json": {
    does: "does it, and says 201 with a body that is no JSON",
    class: "unknown",
    misbehaviour: { status: 201, text: "<html>created</html>", headers: { "content-type": "text/html" } },
  },
  "201-half-json": {
    does: "does it, and says 201 with half a JSON",
    class: "unknown",
    misbehaviour: { status: 201, text: '{"dashboard_url": "http' },
  },
  "201-list": { does: "does it, and says 201 with a list", class: "unknown", misbehaviour: { status: 201, body: [] } },
  "202-not-json": {
    does: "does it, and says 202 with a body that is no JSON",
    class: "unknown",
    misbehaviour: { status: 202, text: "later" },
  },
  "200-not-json": {
    does: "does it, and says 200 with a body that is no JSON",
    class: "malformed 200",
    misbehaviour: { status: 200, text: "OK" },
  },
  "200-list": {
    does: "does it, and says 200 with a list",
    class: "malformed 200",
    misbehaviour: { status: 200, body: [] },
  },
  "200-empty": {
    does: "does it, and says 200 with no body",
    class: "malformed 200",
    misbehaviour: { status: 200, text: "" },
  },
  "wrong-content-type": {
    does: "does it, and says that its JSON is a picture",
    class: null,
    misbehaviour: { headers: { "content-type": "image/png" } },
  },
  huge: {
    does: "does it, and answers with 32 MiB of JSON",
    class: "unknown",
    misbehaviour: { padTo: 32 * 1024 * 1024 },
  },
  redirect: {
    does: "does nothing, and sends to another path of its own",
    class: "unknown",
    misbehaviour: { status: 307, headers: { location: "/v2/catalog" } },
  },
  "redirect-elsewhere": {
    does: "does nothing, and sends to another host, which must not see the credentials",
    class: "unknown",
    misbehaviour: { status: 308, headers: { location: "http://127.0.0.1:1/v2/catalog" } },
  },

  // The connection.
  hang: {
    does: "does nothing, and never answers",
    class: "unknown",
    misbehaviour: { effect: "none", answerBytes: 0, ending: "hang" },
  },
  "done-hang": {
    does: "does it, and never answers",
    class: "unknown",
    misbehaviour: { answerBytes: 0, ending: "hang" },
  },
  "late-hang": {
    does: "never answers, and does it a second later",
    class: "unknown",
    misbehaviour: { effect: "late", lateMs: 1_000, answerBytes: 0, ending: "hang" },
  },
  "late-reset": {
    does: "resets the connection, and does it a second later",
    class: "unknown",
    misbehaviour: { effect: "late", lateMs: 1_000, answerBytes: 0 },
  },
  "late-500": {
    does: "says 500, and does it a second later",
    class: "unknown",
    misbehaviour: { effect: "late", lateMs: 1_000, status: 500 },
  },
  reset: {
    does: "does nothing, and resets the connection",
    class: "unknown",
    misbehaviour: { effect: "none", answerBytes: 0 },
  },
  "done-reset": { does: "does it, and resets the connection", class: "unknown", misbehaviour: { answerBytes: 0 } },
  "done-close": {
    does: "does it, and closes the connection",
    class: "unknown",
    misbehaviour: { answerBytes: 0, ending: "close" },
  },
  "half-request": {
    does: "resets the connection after 40 bytes of the request",
    class: "unknown",
    misbehaviour: { requestBytes: 40 },
  },
  "half-head": {
    does: "does it, and resets the connection in the middle of the answer's head",
    class: "unknown",
    misbehaviour: { answerBytes: 20 },
  },
  "half-answer": {
    does: "does it, and resets the connection before the answer's last byte",
    class: "unknown",
    misbehaviour: { answerBytes: -1 },
  },
  "half-answer-hang": {
    does: "does it, and hangs before the answer's last byte",
    class: "unknown",
    misbehaviour: { answerBytes: -1, ending: "hang" },
  },
  "slow-bytes": {
    does: "does it, and answers byte by byte, a hundred in a second",
    class: null,
    misbehaviour: { byteMs: 10 },
  },
  "not-http": {
    does: "does it, and answers something that is no HTTP",
    class: "unknown",
    misbehaviour: { raw: "220 mail.example ESMTP\r\n" },
  },

  // Answers to a bind.
  "credentials-a-text": {
    does: "binds, and says 201 with credentials that are no object",
    class: "unknown",
    misbehaviour: { status: 201, body: { credentials: "secret" } },
  },
  "drain-unasked": {
    does: "binds, and says 201 with a log drain, which the offering does not require",
    class: null,
    misbehaviour: { status: 201, body: { credentials: {}, syslog_drain_url: "syslog://drain.example:514" } },
  },
  "large-numbers": {
    does: "does it, and says 201 with numbers beyond 2^53 in the credentials",
    class: null,
    misbehaviour: { status: 201, text: '{"credentials":{"account":12345678901234567890,"rate":1.10}}' },
  },
  expiring: {
    does: "binds, and says 201 with credentials that are to be renewed at once",
    class: null,
    misbehaviour: {
      status: 201,
      body: {
        credentials: { user: "soon-old" },
        metadata: { expires_at: "2999-01-01T00:00:00.0Z", renew_before: "2000-01-01T00:00:00.0Z" },
      },
    },
  },
} as const satisfies Readonly<Record<string, NamedMisbehaviour>>;

export type MisbehaviourName = keyof typeof namedMisbehaviours;

/** By its name; the names are also those of plans. */
export function namedMisbehaviour(name: string): Misbehaviour | undefined {
  return Object.hasOwn(namedMisbehaviours, name)
    ? namedMisbehaviours[name as MisbehaviourName].misbehaviour
    : undefined;
}
