import type { Socket } from "node:net";
import { BrokerError } from "@osbert/protocol";
import { type FastifyInstance, type FastifyServerOptions, fastify } from "fastify";
import { brokerPlugin, type FastifyPluginOptions, sendRefusal } from "./fastify-plugin.js";
import { httpsOptions, type TlsOptions } from "./tls.js";

/** A broker on a server of its own. */
export interface BrokerServerOptions extends FastifyPluginOptions {
  /** Without it the server speaks plain HTTP. */
  readonly tls?: TlsOptions;
  /** Proxies whose `X-Forwarded-For` is believed, as Fastify takes them. Without any, a caller's address is the connection's. */
  readonly trustProxy?: string | string[] | boolean;
}

/**
 * A Fastify server that is a broker and nothing else. What Fastify and Node refuse before any route is reached (a path that is not
 * percent-encoded, a method that nobody has, bytes that are no HTTP) is told in the words of a broker, too.
 */
export function brokerServer({ tls, trustProxy, ...options }: BrokerServerOptions): FastifyInstance {
  const serverOptions: FastifyServerOptions = {
    ...(trustProxy !== undefined && { trustProxy }),
    logger: false,
    forceCloseConnections: "idle",
    // What comes on a connection that is there while the server closes is answered: the broker stops after it.
    return503OnClosing: false,
    // Fastify's default is to wait for ever for the rest of a request.
    requestTimeout: longestRequestMs,
    routerOptions: { ignoreTrailingSlash: false },
    frameworkErrors: (_error, _request, reply) =>
      void sendRefusal(reply, new BrokerError("bad-request", "the path is not validly percent-encoded")),
    clientErrorHandler: (error, socket) => refuseBytes(error, socket),
  };
  // Fastify's types tell servers with TLS from those without; what follows is the same for both.
  const app =
    tls === undefined
      ? fastify(serverOptions)
      : (fastify({ ...serverOptions, https: httpsOptions(tls) } as FastifyServerOptions) as FastifyInstance);
  // After a handshake that failed or was too slow there is nobody who could read an answer, and Node leaves the socket open.
  app.server.prependListener("tlsClientError", (_error: unknown, socket: Socket) => socket.destroy());
  app.setNotFoundHandler((request, reply) =>
    sendRefusal(reply, new BrokerError("method-not-allowed", `${request.method} is not possible here`)),
  );
  // Open to all: it says that the process answers, and nothing else.
  app.get("/healthz", async () => ({ status: "ok" }));
  app.register(brokerPlugin, options);
  return app;
}

/** From its first byte to its last; the answer may take longer. */
const longestRequestMs = 60_000;

/** There is no request yet, only a socket. */
function refuseBytes({ code }: { readonly code?: string }, socket: Socket): void {
  if (code === "ECONNRESET" || socket.destroyed || !socket.writable) {
    socket.destroy();
    return;
  }
  const [status, description] =
    code === "HPE_HEADER_OVERFLOW"
      ? ["431 Request Header Fields Too Large", "the headers are too large"]
      : code === "ERR_HTTP_REQUEST_TIMEOUT"
        ? ["408 Request Timeout", "the request did not come in time"]
        : ["400 Bad Request", "this is not a valid HTTP request"];
  const body = JSON.stringify({ error: "BadRequest", description });
  socket.end(
    `HTTP/1.1 ${status}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\nconnection: close\r\n\r\n${body}`,
  );
}
