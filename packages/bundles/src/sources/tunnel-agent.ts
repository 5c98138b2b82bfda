import { request as httpRequest } from "node:http";
import { Agent, type AgentOptions, request as httpsRequest } from "node:https";
import { isIPv6, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import { type ConnectionOptions, connect } from "node:tls";
import type { ProxyAddress } from "./find-proxy.js";

/** A proxy that does not let Osbert through, or does not answer. */
export class ProxyFailure extends Error {
  override readonly name = "ProxyFailure";
}

const connectMs = 30_000;
type Created = (error: Error | null, socket?: Duplex) => void;

/**
 * Connections to https servers through a proxy, which is told no more than where to: host and port. TLS begins behind it, so that it sees
 * neither credentials nor content, and the certificate that is checked is the server's.
 */
export class TunnelAgent extends Agent {
  readonly #proxy: ProxyAddress;

  constructor(proxy: ProxyAddress, options: AgentOptions) {
    super(options);
    this.#proxy = proxy;
  }

  override createConnection(options: object, created: Created): undefined {
    const wanted = options as ConnectionOptions;
    openTunnel(this.#proxy, String(wanted.host), Number(wanted.port)).then(
      (socket) => created(null, connect({ ...wanted, socket })),
      (error: unknown) => created(error instanceof Error ? error : new Error("no tunnel", { cause: error })),
    );
  }
}

function openTunnel(proxy: ProxyAddress, host: string, port: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const authority = `${isIPv6(host) ? `[${host}]` : host}:${port}`;
    const fail = (why: string, cause?: unknown) =>
      reject(new ProxyFailure(`the proxy ${proxy.shown} ${why}`, { cause }));
    const asked = (proxy.isTls ? httpsRequest : httpRequest)({
      ...{ host: proxy.hostname, port: proxy.port, method: "CONNECT", path: authority, agent: false },
      headers: {
        host: authority,
        ...(proxy.authorization !== null && { "proxy-authorization": proxy.authorization }),
      },
    });
    const timer = setTimeout(() => asked.destroy(new Error(`no answer within ${connectMs} ms`)), connectMs);
    asked.on("error", (error: NodeJS.ErrnoException) =>
      fail(`cannot be reached (${error.code ?? error.message})`, error),
    );
    asked.once("close", () => clearTimeout(timer));
    asked.once("response", (answer) => {
      answer.destroy();
      fail(`answered with status ${answer.statusCode}`);
    });
    asked.once("connect", ({ statusCode = 0 }, socket: Socket, head) => {
      clearTimeout(timer);
      if (statusCode === 200 && head.length === 0) return resolve(socket);
      socket.destroy();
      const about = statusCode === 407 ? "wants other credentials (status 407)" : `answered with status ${statusCode}`;
      fail(statusCode === 200 ? "sent something before it was asked" : about);
    });
    asked.end();
  });
}
