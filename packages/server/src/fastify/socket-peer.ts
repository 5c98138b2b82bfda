import { TLSSocket } from "node:tls";
import type { FastifyRequest } from "fastify";
import type { Peer, PeerCertificate } from "../authentication/authenticate.js";

/** One read a connection: a certificate cannot change while it lasts (`serve` forbids renegotiation). */
const read = new WeakMap<TLSSocket, PeerCertificate | null>();

/** The other end of a Fastify request. Costs nothing until it is looked at. */
export class SocketPeer implements Peer {
  readonly #request: FastifyRequest;

  constructor(request: FastifyRequest) {
    this.#request = request;
  }

  /** As Fastify sees it: with `trustProxy` it is the address that the proxy tells. */
  get address(): string {
    return this.#request.ip;
  }

  /** Only of the connection itself: what a proxy says of certificates is not believed. */
  get certificate(): PeerCertificate | undefined {
    const { socket } = this.#request.raw;
    if (!(socket instanceof TLSSocket)) return undefined;
    let certificate = read.get(socket);
    if (certificate === undefined) {
      certificate = verifiedCertificate(socket);
      read.set(socket, certificate);
    }
    return certificate ?? undefined;
  }
}

function verifiedCertificate(socket: TLSSocket): PeerCertificate | null {
  if (!socket.authorized) return null;
  const certificate = socket.getPeerX509Certificate();
  if (certificate === undefined) return null;
  return { subject: certificate.subject, subjectAltName: certificate.subjectAltName };
}
