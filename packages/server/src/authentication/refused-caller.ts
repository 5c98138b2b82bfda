import type { Peer } from "./authenticate.js";
import { readBasic } from "./basic-header.js";
import { networkOf } from "./network-address.js";

/** As much as may be told of a caller who was not let in. */
export interface RefusedCaller {
  /** The IPv4 address or IPv6 network, in printable characters. */
  readonly network: string;
  /** The user name only if a credential has it: what is nobody's name may be a password that was typed in its place. */
  readonly user:
    | { readonly kind: "known"; readonly name: string }
    /** A name that is let in elsewhere: a platform's at the admin API, an operator's at the platforms' API. */
    | { readonly kind: "wrong door"; readonly name: string }
    | { readonly kind: "unknown" | "none" };
}

/** Whether a credential has this user name. */
export type KnowsUser = (username: string) => boolean;

/**
 * Who asked and was not let in, as far as it may be told. `here` knows those who are let in where they asked, `anywhere` those who are let
 * in at any door of the server.
 */
export function refusedCaller(
  request: { header(name: string): string | undefined; readonly peer?: Peer | undefined },
  here: KnowsUser,
  anywhere: KnowsUser,
): RefusedCaller {
  const username = readBasic(request.header("authorization") ?? "")?.username;
  // A proxy that is trusted may hand on whatever a caller has written.
  const network = networkOf(request.peer?.address).replace(/[^\x21-\x7e]/g, "?") || "unknown";
  if (username === undefined || username === "") return { network, user: { kind: "none" } };
  if (here(username)) return { network, user: { kind: "known", name: username } };
  return { network, user: anywhere(username) ? { kind: "wrong door", name: username } : { kind: "unknown" } };
}
