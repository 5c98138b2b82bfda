import type { IncomingMessage } from "node:http";
import { Readable } from "node:stream";
import type { FastifyRequest } from "fastify";
import type { Peer } from "../authentication/authenticate.js";
import { readStream } from "../http/body-stream.js";
import type { WireRequest } from "../http/wire.js";
import { SocketPeer } from "./socket-peer.js";

/** A request of a Fastify server. Made for every one of them: what is not asked for costs nothing. */
export class ServerRequest implements WireRequest {
  readonly method: string;
  readonly url: string;
  readonly #request: FastifyRequest;

  /** `prefix`: what stands before the paths of the API. */
  constructor(request: FastifyRequest, prefix: string) {
    this.#request = request;
    this.method = request.method;
    this.url = request.url.slice(prefix.length);
  }

  header(name: string): string | undefined {
    const { raw } = this.#request;
    if (name === "authorization") return authorizationOf(raw);
    const value = raw.headers[name];
    return typeof value === "string" ? value : value?.join(", ");
  }

  body(mostBytes: number): Promise<Uint8Array | undefined> {
    const { body, raw } = this.#request;
    return readStream(body instanceof Readable ? body : raw, mostBytes);
  }

  get peer(): Peer {
    return new SocketPeer(this.#request);
  }
}

/** Node gives the first of several, while whatever stands in front of the server may have judged by another one. */
function authorizationOf({ headers, rawHeaders }: IncomingMessage): string | undefined {
  const { authorization } = headers;
  if (authorization === undefined) return undefined;
  const all: string[] = [];
  for (let at = 0; at < rawHeaders.length; at += 2)
    if (rawHeaders[at]?.length === 13 && rawHeaders[at]?.toLowerCase() === "authorization")
      all.push(rawHeaders[at + 1] ?? "");
  return all.length > 1 ? all.join(", ") : authorization;
}
