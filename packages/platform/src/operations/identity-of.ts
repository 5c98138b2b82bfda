import type { OriginatingIdentity } from "@osbert/protocol";
import type { IntentInput } from "../records/instance-record.js";

/** Whose action a call is, as an option of the client: the author of the intent, as it was when the intent was admitted. */
export function identityOf({ identity }: Pick<IntentInput, "identity">): { readonly identity?: OriginatingIdentity } {
  return identity === null ? {} : { identity: identity as OriginatingIdentity };
}
