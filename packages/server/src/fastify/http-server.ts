import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import { BrokerError } from "@osbert/protocol";
import { type FastifyInstance, type FastifyServerOptions, fastify } from "fastify";
import type { HttpEnd } from "../http/http-end.js";
import { requestIdentityHeader } from "../http/request-identity.js";
import { type AnswerRequest, answerer, mount, refuse } from "./fastify-adapter.js";
import { refuseBytes, refuseOnSocket } from "./refuse-bytes.js";
import { httpsOptions, type TlsOptions } from "./tls.js";

export interface HttpServerOptions {
  /** Without it the server speaks plain HTTP. */
  readonly tls?: TlsOptions;
  /** Proxies whose `X-Forwarded-For` is believed, as Fastify takes them. Without any, a caller's address is the connection's. */
  readonly trustProxy?: string | string[] | boolean;
}

/**
 * A Fastify server that is this end of the wire and nothing else. What Fastify and Node refuse before any route is reached (a path that is
 * not percent-encoded, a method that nobody has, bytes that are no HTTP) is told in the same words as everything else.
 */
export function httpServer(end: HttpEnd, { tls, trustProxy }: HttpServerOptions = {}): FastifyInstance {
  const answerAnyone = answerer(end);
  const answer: AnswerRequest = (request, reply) => {
    const { httpVersion, headers } = request.raw;
    const lacksHost = httpVersion === "1.1" && headers.host === undefined;
    return lacksHost ? refuse(end, hostMissing, request, reply) : answerAnyone(request, reply);
  };
  const serverOptions: FastifyServerOptions = {
    ...(trustProxy !== undefined && { trustProxy }),
    logger: false,
    forceCloseConnections: "idle",
    // What comes on a connection that is there while the server closes is answered: what stands behind it stops after it.
    return503OnClosing: false,
    // Fastify's default is to wait for ever for the rest of a request.
    requestTimeout: longestRequestMs,
    // Each API reads its own query: what Fastify would make of it nobody asks for.
    routerOptions: { ignoreTrailingSlash: false, querystringParser: () => ({}) },
    // A path that is not validly percent-encoded: the handler says so, but first it asks who wants to know.
    frameworkErrors: (_error, request, reply) => void answer(request, reply),
    clientErrorHandler: (error, socket) => refuseBytes(end, error, socket),
  };
  // Fastify's types tell servers with TLS from those without; what follows is the same for both.
  const app =
    tls === undefined
      ? fastify({ ...serverOptions, http: nodeOptions })
      : (fastify({
          ...serverOptions,
          https: { ...httpsOptions(tls), ...nodeOptions },
        } as FastifyServerOptions) as FastifyInstance);
  // After a handshake that failed or was too slow there is nobody who could read an answer, and Node leaves the socket open.
  app.server.prependListener("tlsClientError", (_error: unknown, socket: Socket) => socket.destroy());
  // Node would close the connection without a word.
  app.server.on("connect", ({ method = "", url = "", headers }: IncomingMessage, socket: Socket) => {
    const sent = headers[requestIdentityHeader];
    refuseOnSocket(end, socket, { problem: end.refuseMethod(method, url), method, sent: sent?.toString() });
  });
  // Node would answer by itself, without a word. An expectation that nobody has heard of may be passed over.
  app.server.on("checkExpectation", (request, response) => app.server.emit("request", request, response));
  // What is no path at all: `OPTIONS *`.
  app.setNotFoundHandler(answer);
  // Open to all: it says that the process answers, and nothing else.
  app.get("/healthz", async () => ({ status: "ok" }));
  app.register(async (scope) => mount(scope, end, answer));
  return app;
}

/** Node would refuse a request without the header Host by itself, without a word. */
const nodeOptions = { requireHostHeader: false } as const;
const hostMissing = new BrokerError("bad-request", "the header Host is missing");

/** From its first byte to its last; the answer may take longer. */
const longestRequestMs = 60_000;
