import type { Peer } from "../authentication/authenticate.js";
import type { LiveText } from "./live-text.js";
import type { Pieces } from "./pieces.js";

/** A request as any server can give it. */
export interface WireRequest {
  /** In capitals. */
  readonly method: string;
  /** Path and query, as they came. */
  readonly url: string;
  /** By its name in lower case. Of a header that came several times, all values, with commas between them. */
  header(name: string): string | undefined;
  /** The bytes, empty if there are none; or what reads them, so that nothing is read for a stranger. */
  readonly body: Uint8Array | ReadBody;
  /** Who is at the other end, where the server can tell. */
  readonly peer?: Peer;
}

/** Reads a body once. `undefined`: it has more than so many bytes, of which the rest was left unread. */
export type ReadBody = (mostBytes: number) => Promise<Uint8Array | undefined>;

/** An answer as any server can give it. */
export interface WireResponse {
  /** The HTTP status. */
  readonly status: number;
  /** By their names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** JSON, or empty. */
  readonly body: string | Uint8Array<ArrayBuffer>;
  /** The same body, for who can send it piece by piece: then the body, which is made when it is asked for, need not be. */
  readonly pieces?: Pieces;
  /** In place of the body, which is empty then: what is told as it happens. */
  readonly live?: LiveText;
}
