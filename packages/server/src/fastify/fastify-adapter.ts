import { type IncomingMessage, METHODS } from "node:http";
import { Readable } from "node:stream";
import type { ReadableStream as NodeReadableStream } from "node:stream/web";
import { BrokerError } from "@osbert/protocol";
import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { answerWhileDraining } from "../http/body-stream.js";
import type { HttpEnd } from "../http/http-end.js";
import type { Problem } from "../http/problem.js";
import { largestBody } from "../http/read-json.js";
import { requestIdentityHeader } from "../http/request-identity.js";
import type { WireResponse } from "../http/wire.js";
import { ServerRequest } from "./server-request.js";

/**
 * An end of the wire in a Fastify app (or under the prefix of a plugin): every path and every method is its to answer. What the app itself
 * refuses before a route is reached stays the app's business (`frameworkErrors`, `setNotFoundHandler`; see http-server.ts).
 */
export function mount(app: FastifyInstance, end: HttpEnd, answer = answerer(end, app.prefix)): void {
  // Bodies are read by the handler: when it knows who asks, and in its own words.
  app.removeAllContentTypeParsers();
  // What platforms send is named beside all else: Fastify keeps in mind where it found that, and reads "*" anew with every request.
  app.addContentTypeParser(["application/json", "*"], (_request, payload, done) => done(null, payload));
  app.setErrorHandler((error: FastifyError, request, reply) =>
    refuse(end, problemOf(end, error, request, app.prefix), request, reply),
  );
  // A method that Fastify does not know would be answered by Fastify. CONNECT never gets here.
  const methods = METHODS.filter((method) => method !== "CONNECT");
  for (const method of methods) if (!app.supportedMethods.includes(method)) app.addHttpMethod(method);
  app.route({ method: methods, url: "/*", handler: answer });
}

export type AnswerRequest = (request: FastifyRequest, reply: FastifyReply) => FastifyReply | Promise<FastifyReply>;

/** Answers requests of a Fastify server. */
export function answerer({ handle }: HttpEnd, prefix = ""): AnswerRequest {
  return (request, reply) => {
    const answer = handle(new ServerRequest(request, prefix));
    return answer instanceof Promise ? answer.then((given) => send(reply, given)) : send(reply, answer);
  };
}

/** Refuses what never reaches the handler, and tells who watches. */
export function refuse(end: HttpEnd, problem: Problem, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const sent = request.raw.headers[requestIdentityHeader] as string | undefined;
  return send(reply, end.refuse(problem, { method: request.method, sent, tookMs: reply.elapsedTime }));
}

function send(reply: FastifyReply, response: WireResponse): FastifyReply {
  const { status, headers, live, pieces } = response;
  reply.code(status).headers(headers);
  const { raw } = reply.request;
  // The connection ends with it: a server that closes would wait for one that is kept, and its caller has nothing more to ask.
  if (live !== undefined)
    return reply.header("connection", "close").send(Readable.fromWeb(live.toStream() as NodeReadableStream));
  if (pieces !== undefined && !isSendingMuch(raw))
    return reply.header("content-length", String(pieces.byteLength)).send(pieces.toReadable());
  const { body } = response;
  // Of an empty text Fastify would tell type and length: caches take those of a 304 for those of the body that they keep.
  if (!isSendingMuch(raw)) return reply.send(status === 304 ? undefined : body);
  const length = typeof body === "string" ? Buffer.byteLength(body) : body.byteLength;
  return reply
    .headers({ connection: "close", "content-length": String(length), ...headers })
    .send(answerWhileDraining(body, raw));
}

/** A body that is as small as bodies are is thrown away by Node itself, and the connection can be used on. */
function isSendingMuch({ complete, readableEnded, headers }: IncomingMessage): boolean {
  if (complete || readableEnded) return false;
  return headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > largestBody;
}

/** What Fastify refuses by itself, in the server's own words. */
function problemOf(end: HttpEnd, error: FastifyError, { method, url }: FastifyRequest, prefix: string): Problem {
  const { statusCode = 500, code } = error;
  if (code === "FST_ERR_ROUTE_MISSING_CONTENT_TYPE") return end.refuseMethod(method, url.slice(prefix.length));
  if (statusCode === 413) return new BrokerError("too-large", `the body has more than ${largestBody} bytes`);
  if (statusCode < 500) return new BrokerError("bad-request", "the request cannot be read");
  return end.problemOf(error);
}
