import type { Peer } from "./authenticate.js";
import { readBasic } from "./basic-header.js";
import { networkOf } from "./network-address.js";

/** As much as may be told of a caller who was not let in. */
export interface RefusedCaller {
  /** The IPv4 address or IPv6 network, in printable characters. */
  readonly network: string;
  /** The user name only if a credential has it: what is nobody's name may be a password that was typed in its place. */
  readonly user: { readonly kind: "known"; readonly name: string } | { readonly kind: "unknown" | "none" };
}

/** Who asked and was not let in, as far as it may be told. `knows`: whether a credential has this user name. */
export function refusedCaller(
  request: { readonly header: (name: string) => string | undefined; readonly peer?: Peer | undefined },
  knows: (username: string) => boolean,
): RefusedCaller {
  const username = readBasic(request.header("authorization") ?? "")?.username;
  // A proxy that is trusted may hand on whatever a caller has written.
  const network = networkOf(request.peer?.address).replace(/[^\x21-\x7e]/g, "?") || "unknown";
  if (username === undefined || username === "") return { network, user: { kind: "none" } };
  return { network, user: knows(username) ? { kind: "known", name: username } : { kind: "unknown" } };
}
