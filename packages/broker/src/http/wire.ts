import type { Peer } from "./authentication/authenticate.js";

/** A request as any server can give it. */
export interface WireRequest {
  readonly method: string;
  /** Path and query, as they came. */
  readonly url: string;
  /** By its name in lower case. */
  readonly header: (name: string) => string | undefined;
  readonly body: Uint8Array;
  /** Who is at the other end, where the server can tell. */
  readonly peer?: Peer;
}

export interface WireResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array<ArrayBuffer>;
}
