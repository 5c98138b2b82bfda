import { Agent, type IncomingMessage, request as requestHttp } from "node:http";
import { request as requestHttps, Agent as SecureAgent } from "node:https";
import { connect as connectTcp, isIP, type Socket } from "node:net";
import { Readable } from "node:stream";
import { connect as connectTls } from "node:tls";
import { RequestNotSentError } from "../client/not-sent.js";

export interface BrokerFetchOptions {
  /** Certificates of authorities, in PEM: these alone are trusted. Default: those that Node.js knows. */
  readonly ca?: string;
  /** Shown to a broker that asks for one: a certificate with those that vouch for it, and its private key, in PEM. */
  readonly clientCertificate?: { readonly certificate: string; readonly key: string };
}

/**
 * A `fetch` that says for certain whether a change was sent: a connection is made first, secured where the URL asks for it, and only then is
 * the request written. Whatever goes wrong before is thrown as RequestNotSentError, also a time-out while connecting.
 *
 * Every change has a connection of its own. One that is kept may be closed by the broker in the moment of writing, and then nobody can
 * tell whether the change was read; a handshake is cheaper than an instance of which nobody knows. What only reads goes over connections
 * that are kept, and is asked once more if such a one turns out to be closed.
 *
 * It does what the client asks of it and no more: no redirects, one text as body.
 */
export function brokerFetch({ ca, clientCertificate: own }: BrokerFetchOptions = {}): typeof fetch {
  const trust: Trust = { ...(ca !== undefined && { ca }), ...(own && { cert: own.certificate, key: own.key }) };
  const agent = new Agent({ keepAlive: true });
  const secureAgent = new SecureAgent({ keepAlive: true, ...trust });
  return async (input, init = {}) => {
    const url = parseUrl(String(input));
    const read = (init.method ?? "GET") === "GET";
    if (!read) return send(url, init, { socket: await connect(url, trust, init.signal ?? undefined) });
    const kept = { agent: url.protocol === "https:" ? secureAgent : agent };
    try {
      return await send(url, init, kept);
    } catch (error) {
      if (!(error instanceof KeptConnectionClosed)) throw error;
      return send(url, init, { socket: await connect(url, trust, init.signal ?? undefined) });
    }
  };
}

/** As Node.js calls it. */
interface Trust {
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
}

class KeptConnectionClosed extends Error {}

type Way = { readonly agent: Agent } | { readonly socket: Socket };

function send(url: URL, init: RequestInit, way: Way): Promise<Response> {
  return new Promise((resolve, reject) => {
    const { signal, body } = init;
    const own = "socket" in way ? way.socket : undefined;
    const asked = (url.protocol === "https:" ? requestHttps : requestHttp)(url, {
      method: init.method ?? "GET",
      headers: Object.fromEntries(new Headers(init.headers)),
      ...("socket" in way ? { createConnection: () => way.socket } : { agent: way.agent }),
      ...(signal && { signal }),
    });
    asked.once("response", (message) => {
      // An answer may come before all of the request was written, and the broker may never read the rest.
      if (own !== undefined) message.once("close", () => asked.destroy());
      try {
        resolve(toResponse(message));
      } catch (error) {
        asked.destroy();
        reject(error as Error);
      }
    });
    // After the answer this is of no more interest: its body tells of a broken connection by itself.
    asked.on("error", (cause) => {
      if (own?.bytesWritten === 0) reject(notSent(cause));
      else reject(asked.reusedSocket && signal?.aborted !== true ? new KeptConnectionClosed("", { cause }) : cause);
    });
    // An answer of 101 is told as neither: Node.js closes the connection and says no more. What has been settled before stays so.
    asked.once("close", () => reject(new Error("the connection was closed without an answer")));
    asked.end(typeof body === "string" ? body : undefined);
  });
}

function connect(url: URL, trust: Trust, signal: AbortSignal | undefined): Promise<Socket> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(notSent(signal.reason));
    const secure = url.protocol === "https:";
    const host = url.hostname.replaceAll(/[[\]]/g, "");
    const place = { host, port: Number(url.port) || (secure ? 443 : 80) };
    const socket = secure
      ? connectTls({ ...place, ...trust, ...(isIP(host) === 0 && { servername: host }), ALPNProtocols: ["http/1.1"] })
      : connectTcp(place);
    const stop = (cause: unknown) => {
      socket.destroy();
      signal?.removeEventListener("abort", abort);
      reject(notSent(cause));
    };
    const abort = () => stop(signal?.reason);
    signal?.addEventListener("abort", abort, { once: true });
    socket.once("error", stop);
    // Whoever has the socket then hears of its errors; in between there must be someone, or they end the process.
    socket.on("error", () => undefined);
    socket.once(secure ? "secureConnect" : "connect", () => {
      signal?.removeEventListener("abort", abort);
      socket.off("error", stop);
      resolve(socket);
    });
  });
}

function notSent(cause: unknown): RequestNotSentError {
  return new RequestNotSentError("the request was not sent", { cause });
}

function parseUrl(text: string): URL {
  try {
    const url = new URL(text);
    if (url.protocol === "http:" || url.protocol === "https:") return url;
  } catch (cause) {
    throw notSent(cause);
  }
  throw notSent(new TypeError("a broker's URL must begin with http:// or https://"));
}

function toResponse(message: IncomingMessage): Response {
  const status = message.statusCode ?? 0;
  const headers = new Headers();
  for (const [name, value] of Object.entries(message.headers))
    if (value !== undefined) headers.set(name, String(value));
  // These have no body, and a Response insists on it.
  if (status === 204 || status === 205 || status === 304) {
    message.resume();
    return new Response(null, { status, headers });
  }
  return new Response(Readable.toWeb(message) as ReadableStream<Uint8Array>, { status, headers });
}
