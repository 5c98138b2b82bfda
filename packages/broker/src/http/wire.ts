import type { Peer } from "./authentication/authenticate.js";

/** A request as any server can give it. */
export interface WireRequest {
  /** In capitals. */
  readonly method: string;
  /** Path and query, as they came. */
  readonly url: string;
  /** By its name in lower case. */
  readonly header: (name: string) => string | undefined;
  /** All of it; empty if there is none. */
  readonly body: Uint8Array;
  /** Who is at the other end, where the server can tell. */
  readonly peer?: Peer;
}

/** An answer as any server can give it. */
export interface WireResponse {
  /** The HTTP status. */
  readonly status: number;
  /** By their names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** JSON, or empty. */
  readonly body: string | Uint8Array<ArrayBuffer>;
}
