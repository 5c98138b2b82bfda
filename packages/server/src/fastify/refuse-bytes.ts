import type { Socket } from "node:net";
import { BrokerError } from "@osbert/protocol";
import { drain } from "../http/body-stream.js";
import type { HttpEnd } from "../http/http-end.js";
import type { Problem } from "../http/problem.js";
import { requestIdentityHeader } from "../http/request-identity.js";

/** What Node tells of bytes that it could not read as a request. */
export interface UnreadableRequest {
  readonly code?: string;
  /** What came last: bytes, whatever the types of the server say. */
  readonly rawPacket?: unknown;
  /** How much of that could be read. */
  readonly bytesParsed?: number;
}

/** Answers on the socket, as there is no request yet; as much as can be made out of the bytes is answered to. */
export function refuseBytes(end: HttpEnd, unreadable: UnreadableRequest, socket: Socket): void {
  const { code, rawPacket, bytesParsed = 0 } = unreadable;
  if (code === "ECONNRESET" || socket.destroyed || !socket.writable) {
    socket.destroy();
    return;
  }
  const text = Buffer.isBuffer(rawPacket) ? rawPacket.subarray(0, mostBytes).toString("latin1") : "";
  const sent = identityLine.exec(text)?.[1];
  const { method, url } = code === "HPE_INVALID_METHOD" ? requestLineAt(text, bytesParsed) : unknownLine;
  refuseOnSocket(end, socket, {
    problem: refusalOf(end, code, method, url),
    status: statuses[code ?? ""],
    method,
    sent,
  });
}

export interface Refusal {
  readonly problem: Problem;
  /** In place of the problem's own, where the table has none for it. */
  readonly status?: string | undefined;
  readonly method: string;
  /** The request identity, if one was sent. */
  readonly sent: string | undefined;
}

/** Writes a whole answer, and hangs up. */
export function refuseOnSocket(end: HttpEnd, socket: Socket, { problem, status, method, sent }: Refusal): void {
  const { headers, body } = end.refuse(problem, { method, sent, tookMs: 0 });
  const lines = [
    `HTTP/1.1 ${status ?? `${problem.status} ${problem.body.error ?? problem.code}`}`,
    ...Object.entries({ "content-length": Buffer.byteLength(body), ...headers }).map(
      ([name, value]) => `${name}: ${value}`,
    ),
    "connection: close",
  ];
  socket.end(`${lines.join("\r\n")}\r\n\r\n${body}`);
  // Node has let go of the socket: nobody else hears that it broke, which would end the process, or closes it if the other end does not.
  void drain(socket).then(() => socket.destroy());
}

const mostBytes = 16_384;
const identityLine = new RegExp(`\\n${requestIdentityHeader}:([^\\r\\n]*)`, "i");
const unknownLine = { method: "", url: "" };

/** A method that is none (`get`, `FOO`) is found where the reading stopped, in the middle of a request's first word. */
function requestLineAt(text: string, stoppedAt: number): { readonly method: string; readonly url: string } {
  const start = stoppedAt - (/[A-Za-z-]*$/.exec(text.slice(0, stoppedAt))?.[0].length ?? 0);
  const [, method = "", url = ""] =
    /^([\w!#$%&'*+.^`|~-]{1,100}) (\/\S*) HTTP\/1\.[01]\r?\n/.exec(text.slice(start)) ?? [];
  return { method, url };
}

const statuses: Readonly<Record<string, string>> = {
  HPE_HEADER_OVERFLOW: "431 Request Header Fields Too Large",
  ERR_HTTP_REQUEST_TIMEOUT: "408 Request Timeout",
};

function refusalOf(end: HttpEnd, code: string | undefined, method: string, url: string): Problem {
  if (method !== "") return end.refuseMethod(method, url);
  if (code === "HPE_HEADER_OVERFLOW") return new BrokerError("bad-request", "the headers are too large");
  if (code === "ERR_HTTP_REQUEST_TIMEOUT") return new BrokerError("bad-request", "the request did not come in time");
  return new BrokerError("bad-request", "this is not a valid HTTP request");
}
