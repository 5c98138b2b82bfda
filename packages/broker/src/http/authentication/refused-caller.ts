import type { RefusedCaller } from "../../observe/event.js";
import type { Peer } from "./authenticate.js";
import { readBasic } from "./basic-header.js";
import { networkOf } from "./network-address.js";

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
