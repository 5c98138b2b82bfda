import { type IncomingMessage, METHODS } from "node:http";
import { Readable } from "node:stream";
import { BrokerError } from "@osbert/protocol";
import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { Broker } from "../broker.js";
import { errorAnswer } from "../endpoints/answer.js";
import { asBrokerError } from "../endpoints/as-broker-error.js";
import { tellOfRefusal } from "../observe/seen-request.js";
import { SocketPeer } from "./authentication/socket-peer.js";
import { answerWhileDraining, readStream } from "./body-stream.js";
import { createHandler, type HandlerOptions, largestBody } from "./handler.js";
import { requestIdentity, requestIdentityHeader } from "./request-identity.js";
import { methodRefusal } from "./routes.js";
import type { WireResponse } from "./wire.js";

/** What `brokerPlugin` takes: a broker, and who may ask. */
export interface FastifyPluginOptions extends HandlerOptions {
  /** Started by you, before requests come. */
  readonly broker: Broker;
}

/**
 * The broker as a Fastify plugin: `app.register(brokerPlugin, { broker, credentials })`, under a prefix if wanted. What the app itself
 * refuses before a route is reached stays the app's business (`frameworkErrors`, `setNotFoundHandler`; see broker-server.ts).
 */
export async function brokerPlugin(app: FastifyInstance, options: FastifyPluginOptions): Promise<void> {
  mount(app, options.broker, answerer(options, app.prefix));
}

export type AnswerRequest = (request: FastifyRequest, reply: FastifyReply) => FastifyReply | Promise<FastifyReply>;

/** Answers requests of a Fastify server as the broker does. */
export function answerer(options: FastifyPluginOptions, prefix = ""): AnswerRequest {
  const handle = createHandler(options.broker, options);
  return (request, reply) => {
    const { raw } = request;
    const header = (name: string) => {
      if (name === "authorization") return authorizationOf(raw);
      const value = raw.headers[name];
      return typeof value === "string" ? value : value?.join(", ");
    };
    const url = request.url.slice(prefix.length);
    const stream = request.body instanceof Readable ? request.body : raw;
    const body = (mostBytes: number) => readStream(stream, mostBytes);
    const answer = handle({ method: request.method, url, header, body, peer: new SocketPeer(request) });
    return answer instanceof Promise ? answer.then((given) => send(reply, given)) : send(reply, answer);
  };
}

/** Every path and every method of the app (or of its prefix) is the broker's to answer. */
export function mount(app: FastifyInstance, broker: Broker, answer: AnswerRequest): void {
  // Bodies are read by the handler: when it knows who asks, and in its own words.
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("*", (_request, payload, done) => done(null, payload));
  app.setErrorHandler((error: FastifyError, request, reply) =>
    refuse(broker, errorOf(error, request, app.prefix), request, reply),
  );
  // A method that Fastify does not know would be answered by Fastify. CONNECT never gets here.
  const methods = METHODS.filter((method) => method !== "CONNECT");
  for (const method of methods) if (!app.supportedMethods.includes(method)) app.addHttpMethod(method);
  app.route({ method: methods, url: "/*", handler: answer });
}

/** Refuses what never reaches the handler, and tells who watches. */
export function refuse(broker: Broker, error: BrokerError, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const id = requestIdentity(request.raw.headers[requestIdentityHeader] as string | undefined);
  if (broker.watch !== undefined) tellOfRefusal(broker.watch, request.method, error, reply.elapsedTime, id);
  const { status, body, headers } = errorAnswer(error);
  const text = request.method === "HEAD" ? "" : JSON.stringify(body);
  const all = { "content-type": "application/json", [requestIdentityHeader]: id, ...headers };
  return send(reply, { status, headers: all, body: text });
}

function send(reply: FastifyReply, { status, headers, body }: WireResponse): FastifyReply {
  reply.code(status).headers(headers);
  const { raw } = reply.request;
  if (!isSendingMuch(raw)) return reply.send(body);
  const length = typeof body === "string" ? Buffer.byteLength(body) : body.byteLength;
  return reply.headers({ connection: "close", "content-length": String(length) }).send(answerWhileDraining(body, raw));
}

/** A body that is as small as bodies are is thrown away by Node itself, and the connection can be used on. */
function isSendingMuch({ complete, readableEnded, headers }: IncomingMessage): boolean {
  if (complete || readableEnded) return false;
  return headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > largestBody;
}

/** Node gives the first of several, while whatever stands in front of the broker may have judged by another one. */
function authorizationOf({ headers, rawHeaders }: IncomingMessage): string | undefined {
  const { authorization } = headers;
  if (authorization === undefined) return undefined;
  const all: string[] = [];
  for (let at = 0; at < rawHeaders.length; at += 2)
    if (rawHeaders[at]?.length === 13 && rawHeaders[at]?.toLowerCase() === "authorization")
      all.push(rawHeaders[at + 1] ?? "");
  return all.length > 1 ? all.join(", ") : authorization;
}

/** What Fastify refuses by itself, in the words of a broker. */
function errorOf(error: FastifyError, { method, url }: FastifyRequest, prefix: string): BrokerError {
  const { statusCode = 500, code } = error;
  if (code === "FST_ERR_ROUTE_MISSING_CONTENT_TYPE") return methodRefusal(method, url.slice(prefix.length));
  if (statusCode === 413) return new BrokerError("too-large", `the body has more than ${largestBody} bytes`);
  if (statusCode < 500) return new BrokerError("bad-request", "the request cannot be read");
  return asBrokerError(error);
}
