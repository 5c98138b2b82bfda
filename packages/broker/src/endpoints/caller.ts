import type { Attribution } from "@osbert/journal";
import type { ApiVersion, OriginatingIdentity } from "@osbert/protocol";

/** Who asks: the platform that was authenticated, and on whose behalf. */
export interface Caller {
  /** The platform whose ids these are; "" for a broker with one. */
  readonly platform: string;
  /** The name of the credential that was used. */
  readonly credential: string;
  /** The user, as the platform names them; `null` if it does not. */
  readonly identity: OriginatingIdentity | null;
  /** Of the request, if the platform sent one; it stands on every line of a log that belongs to it. */
  readonly requestId: string | null;
  /** The version of the API that the platform speaks. */
  readonly apiVersion: ApiVersion;
  /** Where the request stands in a distributed trace. */
  readonly trace?: string | null;
}

/** J9: how the journal tells who asked. */
export function attributionOf({ credential, identity, requestId, trace = null }: Caller): Attribution {
  const subject = identity === null ? credential : subjectOf(identity);
  return {
    actor: {
      type: identity === null ? "service-account" : "user",
      subject,
      ...(identity && { claims: { platform: identity.platform, ...identity.value } }),
    },
    ...(requestId !== null && { requestId }),
    ...(trace !== null && { trace }),
  };
}

/** Cloud Foundry says user_id, Kubernetes username; others what they like. */
function subjectOf({ platform, value }: OriginatingIdentity): string {
  const id = value.user_id ?? value.username ?? value.sub;
  return typeof id === "string" && id !== "" ? id : platform;
}
