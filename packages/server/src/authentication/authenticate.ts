/** Who is at the other end of the connection, as far as the server knows. Read only when it is asked for. */
export interface Peer {
  /** The address that the request came from. */
  readonly address?: string | undefined;
  /** The client's certificate, only if the server has verified it against its certificate authorities. */
  readonly certificate?: PeerCertificate | undefined;
}

/** What a verified certificate says of its owner, in the form of Node's X509Certificate. */
export interface PeerCertificate {
  /** One relative name a line, in the order of the certificate, with the escapes of RFC 2253. */
  readonly subject: string;
  /** `DNS:…, URI:…`, if the certificate has any. */
  readonly subjectAltName?: string | undefined;
}

/** All that decides who asks. */
export interface AuthenticationRequest {
  /** The header, as it came. */
  readonly authorization: string | undefined;
  /** The platform whose paths are asked for; "" for a broker with one. */
  readonly platform: string;
  /** Who is at the other end of the connection, where the server can tell. */
  readonly peer?: Peer | undefined;
}

/** The name of the credential in use; `undefined` for nobody: a 401 that does not say why. */
export type Authenticated = string | undefined;

/**
 * Says who asks. It answers at once where it can, so that a request need not wait for a turn of the event loop, and with a promise
 * where the answer takes work. It throws a BrokerError where it cannot tell (the keys cannot be reached) or does not want to (too many
 * guesses).
 */
export interface Authenticate {
  (request: AuthenticationRequest): Authenticated | Promise<Authenticated>;
  /** What `WWW-Authenticate` says on a 401. */
  readonly challenge?: string;
  /** Whether a credential has this user name. For logs, which tell no other names. */
  readonly knows?: (username: string) => boolean;
}
