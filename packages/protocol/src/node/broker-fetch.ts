import { type ClientRequest, type IncomingMessage, request as requestHttp } from "node:http";
import { request as requestHttps } from "node:https";
import type { Socket } from "node:net";
import type { ClientResponse } from "../client/client-fetch.js";
import { RequestNotSentError } from "../client/not-sent.js";
import { connect, notSent, type Trust } from "./connect.js";
import { KeptConnections } from "./kept-connections.js";
import { MessageBody } from "./message-body.js";

export interface BrokerFetchOptions {
  /** Certificates of authorities, in PEM: these alone are trusted. Default: those that Node.js knows. */
  readonly ca?: string;
  /** Shown to a broker that asks for one: a certificate with those that vouch for it, and its private key, in PEM. */
  readonly clientCertificate?: { readonly certificate: string; readonly key: string };
}

/** As much of a `fetch` as is needed to ask a broker: one text as body, no redirects. */
export type BrokerFetch = (url: string, request?: BrokerRequest) => Promise<BrokerResponse>;

export interface BrokerRequest {
  /** Default: GET. */
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  /** There are no others. */
  readonly redirect?: "manual";
  readonly signal?: AbortSignal;
}

export interface BrokerResponse extends ClientResponse {
  /** It is read once. `null`: there is none. */
  readonly body: MessageBody | null;
}

/**
 * A `fetch` that says for certain whether a change was sent: it is written only to a connection that stands, and is secured where the URL asks
 * for it. Whatever goes wrong before the first byte is thrown as RequestNotSentError, also a time-out while connecting. After it, a change is never
 * sent again from here: whoever asked has to find out.
 *
 * Connections are kept (`KeptConnections`). One may be closed by the broker in the very moment of writing, and then nobody can tell whether the
 * change was read; so a change goes over one that was in use until just now, and not at all over those of a broker that closes them unasked. What only
 * reads goes over any, and is asked once more over a new one if it turns out to be closed.
 */
export function brokerFetch({ ca, clientCertificate: own }: BrokerFetchOptions = {}): BrokerFetch {
  const trust: Trust = { ...(ca !== undefined && { ca }), ...(own && { cert: own.certificate, key: own.key }) };
  const connections = new KeptConnections();
  return async (input, request = {}) => {
    const url = parseUrl(input);
    const { method = "GET", signal } = request;
    const use = method === "GET" ? "read" : "change";
    const release = (socket: Socket, hintMs?: number) => connections.give(url.origin, socket, hintMs);
    if (use === "change") await connections.settle(url.origin);
    if (signal?.aborted) throw notSent(signal.reason);
    const kept = connections.take(url.origin, use);
    if (kept !== undefined) {
      try {
        return await send(url, request, kept, release);
      } catch (error) {
        const isUnsent = error instanceof RequestNotSentError;
        if (signal?.aborted || !(isUnsent || error instanceof ConnectionBroke)) throw error;
        connections.distrust(url.origin);
        if (use === "change" && !isUnsent) throw error;
      }
    }
    return send(url, request, await connect(url, trust, signal), release);
  };
}

/** It broke before there was any answer. */
class ConnectionBroke extends Error {
  override readonly name = "ConnectionBroke";
}

type Release = (socket: Socket, hintMs?: number) => void;

function send(url: URL, request: BrokerRequest, socket: Socket, release: Release): Promise<BrokerResponse> {
  return new Promise((resolve, reject) => {
    const { method = "GET", body, signal } = request;
    const written = socket.bytesWritten;
    let asked: ClientRequest;
    let isAnswered = false;
    try {
      asked = (url.protocol === "https:" ? requestHttps : requestHttp)(url, {
        method,
        headers: { ...request.headers, connection: "keep-alive" },
        createConnection: () => socket,
      });
    } catch (cause) {
      // What cannot be written into a header.
      socket.destroy();
      return reject(notSent(cause));
    }
    const abort = () => asked.destroy(new Error("the request was called off", { cause: signal?.reason }));
    signal?.addEventListener("abort", abort, { once: true });
    asked.once("response", (message) => {
      isAnswered = true;
      message.once("close", () => {
        // An answer may come before all of the request was written, and the broker may never read the rest.
        if (message.complete && asked.writableFinished && asked.shouldKeepAlive) release(socket, keptForMs(message));
        else asked.destroy();
      });
      if (message.statusCode !== undefined && message.statusCode <= 599) return resolve(toResponse(message));
      asked.destroy();
      reject(new RangeError(`${message.statusCode} is no status of HTTP`));
    });
    // After the answer this is of no more interest: its body tells of a broken connection by itself.
    asked.on("error", (cause) => {
      if (socket.bytesWritten === written) reject(notSent(cause));
      else reject(new ConnectionBroke("the connection broke", { cause }));
    });
    asked.once("close", () => {
      signal?.removeEventListener("abort", abort);
      // What has been settled before stays so. An answer of 101 is told as nothing else: Node.js closes the connection and says no more.
      if (!isAnswered) reject(new Error("the connection was closed without an answer"));
    });
    asked.end(body);
  });
}

/** By the header Keep-Alive. */
function keptForMs({ headers }: IncomingMessage): number | undefined {
  const seconds = /(?:^|[\s,;])timeout\s*=\s*([0-9]{1,9})/i.exec(String(headers["keep-alive"] ?? ""))?.[1];
  return seconds === undefined ? undefined : Number(seconds) * 1_000;
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

function toResponse(message: IncomingMessage): BrokerResponse {
  const status = message.statusCode ?? 0;
  const headers = { get: (name: string) => message.headers[name.toLowerCase()]?.toString() ?? null };
  if (status !== 204 && status !== 205 && status !== 304) return { status, headers, body: new MessageBody(message) };
  message.resume();
  return { status, headers, body: null };
}
