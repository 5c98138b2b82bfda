import { type ServerResponse, STATUS_CODES } from "node:http";
import type { Socket } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import { TLSSocket } from "node:tls";
import type { GoodAnswer } from "./kept-services.js";
import type { Misbehaviour } from "./misbehaviour.js";

/** What became of the answer, for the log of requests. */
export type Delivered = number | "reset" | "closed" | "hung" | "not HTTP";

/**
 * Sends an answer as it is to be spoiled. What is sent whole and at once goes the usual way, and its connection is kept; everything else is
 * written to the socket byte by byte as it was told, and the connection ends with it.
 */
export async function deliver(
  response: ServerResponse,
  answer: GoodAnswer & { readonly headers?: Misbehaviour["headers"] },
  how: Misbehaviour,
  signal: AbortSignal,
): Promise<Delivered> {
  if (how.delayMs !== undefined) await pause(how.delayMs, undefined, { signal });
  const { socket } = response;
  if (socket === null) return "closed";
  const status = how.status ?? answer.status;
  const body = bodyOf(answer, how);
  const headers = { "content-type": "application/json", ...answer.headers, ...how.headers };
  if (how.answerBytes === undefined && how.byteMs === undefined && how.raw === undefined) {
    response.writeHead(status, headers).end(hasNoBody(status) ? undefined : body);
    return status;
  }
  const bytes = how.raw === undefined ? wireBytes(status, headers, body) : Buffer.from(how.raw);
  const sent = bytes.subarray(0, how.answerBytes ?? bytes.length);
  if (how.byteMs === undefined) await write(socket, sent);
  else
    for (let at = 0; at < sent.length && !socket.destroyed; at++) {
      await write(socket, sent.subarray(at, at + 1));
      await pause(how.byteMs, undefined, { signal });
    }
  if (how.answerBytes === undefined || how.ending === "close") {
    socket.end();
    return how.raw !== undefined ? "not HTTP" : how.answerBytes === undefined ? status : "closed";
  }
  // Whoever waits for more ends it, or the end of the broker does.
  if (how.ending === "hang") return "hung";
  reset(socket);
  return "reset";
}

/** Ends a connection with a reset, where there is no TLS in between. */
export function reset(socket: Socket): void {
  if (socket instanceof TLSSocket) socket.destroy();
  else socket.resetAndDestroy();
}

function bodyOf(answer: GoodAnswer, how: Misbehaviour): Buffer {
  const own = how.status === undefined ? answer.body : { description: `this broker was told to say ${how.status}` };
  const isSuccess = how.status !== undefined && how.status < 300;
  const text = how.text ?? JSON.stringify(how.body ?? (isSuccess ? answer.body : own));
  const body = Buffer.from(text);
  return how.padTo === undefined || how.padTo <= body.length
    ? body
    : Buffer.concat([body, Buffer.alloc(how.padTo - body.length, " ")]);
}

function wireBytes(status: number, headers: Readonly<Record<string, string>>, body: Buffer): Buffer {
  const length = hasNoBody(status) ? {} : { "content-length": String(body.length) };
  const lines = Object.entries({ connection: "close", ...length, ...headers }).map(([name, one]) => `${name}: ${one}`);
  const head = `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ""}\r\n${lines.join("\r\n")}\r\n\r\n`;
  return Buffer.concat([Buffer.from(head), hasNoBody(status) ? Buffer.alloc(0) : body]);
}

function hasNoBody(status: number): boolean {
  return status === 204 || status === 304;
}

/** Resolves when the bytes are on their way, or when nobody can have them any more. */
async function write(socket: Socket, bytes: Buffer): Promise<void> {
  if (bytes.length > 0) await new Promise<void>((resolve) => socket.write(bytes, () => resolve()));
}
