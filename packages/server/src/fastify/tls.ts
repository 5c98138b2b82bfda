import { constants } from "node:crypto";
import type { ServerOptions } from "node:https";

/** The server's own certificate, and what it wants of its clients. All in PEM. */
export interface TlsOptions {
  /** The server's certificate, with those between it and its authority. */
  readonly cert: string | Buffer;
  /** Its private key. */
  readonly key: string | Buffer;
  /** Who may have signed a client's certificate. */
  readonly ca?: string | Buffer | readonly (string | Buffer)[];
  /**
   * `"request"`: a client may show a certificate, and one that cannot be verified counts as none. `"require"`: without a verified
   * certificate there is no connection at all, not even for `/healthz`.
   */
  readonly clientCertificates?: "request" | "require";
}

const handshakeTimeoutMs = 10_000;

/** What Node's https server is given. */
export function httpsOptions({ cert, key, ca, clientCertificates }: TlsOptions): ServerOptions {
  // Without a list Node would take the public authorities, and anyone can have them sign a name.
  if (clientCertificates !== undefined && (ca === undefined || ca.length === 0)) {
    throw new TypeError("tls.clientCertificates needs tls.ca: the authorities that may sign a client's certificate");
  }
  return {
    cert,
    key,
    ...(ca !== undefined && { ca: typeof ca === "string" || Buffer.isBuffer(ca) ? ca : [...ca] }),
    requestCert: clientCertificates !== undefined,
    rejectUnauthorized: clientCertificates === "require",
    minVersion: "TLSv1.2",
    handshakeTimeout: handshakeTimeoutMs,
    // A client must not change its certificate on a connection that has been authorised.
    secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
  };
}
