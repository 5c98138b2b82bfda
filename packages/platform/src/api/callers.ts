import {
  type Authenticate,
  type AuthenticationOptions,
  authentication,
  type BearerCredential,
  type CertificateCredential,
  type HashedCredential,
  openToAll,
  type PasswordCredential,
  tokenClaims,
} from "@osbert/server/authentication";
import type { Access } from "./access.js";

/** Who is let in, and what they may do then. */
export type Grant =
  | { readonly credential: PasswordCredential | HashedCredential; readonly access: Access }
  | { readonly credential: CertificateCredential & { readonly name: string }; readonly access: Access }
  | { readonly credential: BearerCredential; readonly access: TokenAccess };

/** All tokens of an issuer may do the same, in the same spaces or in those that each token names. */
export type TokenAccess =
  | Access
  | {
      readonly role: "see" | "change";
      /** A claim with a list of names, or names with spaces between them. */
      readonly spacesClaim: string;
    };

/** Says who asks, and what they may do. */
export interface Callers {
  readonly authenticate: Authenticate;
  /** Of someone who was let in with this name and header. `undefined`: nothing at all. */
  readonly accessOf: (name: string, authorization: string | undefined) => Access | undefined;
}

/** Anyone may do anything: only where something in front of the platform authenticates. */
export const everyone: Callers = { authenticate: openToAll, accessOf: () => ({ role: "operate" }) };

export function callersOf(grants: readonly Grant[], options: AuthenticationOptions = {}): Callers {
  const credentials = grants.map(({ credential }) => credential);
  return { authenticate: authentication(credentials, options), accessOf: accessByGrants(grants) };
}

/** Throws where a name would have two roles: which of them counted would be chance. */
export function accessByGrants(grants: readonly Grant[]): Callers["accessOf"] {
  const [byUser, byCertificate, byIssuer] = [
    new Map<string, Access>(),
    new Map<string, Access>(),
    new Map<string, TokenAccess>(),
  ];
  for (const { credential, access } of grants) {
    if ("bearer" in credential) keep(byIssuer, credential.bearer.issuer, access);
    else if ("certificate" in credential) keep(byCertificate, credential.name, access as Access);
    else keep(byUser, credential.username, access as Access);
  }
  // By the way they came in: a token whose subject is called like a user is not that user.
  return (name, authorization) => {
    if (authorization === undefined) return byCertificate.get(name);
    const claims = tokenClaims(authorization);
    if (claims === undefined) return byUser.get(name);
    const access = byIssuer.get(String(claims.iss));
    if (access === undefined || !("spacesClaim" in access)) return access;
    return { role: access.role, spaces: namesIn(claims[access.spacesClaim]) };
  };
}

function keep<Kept>(map: Map<string, Kept>, name: string, access: Kept): void {
  const before = map.get(name);
  if (before !== undefined && JSON.stringify(before) !== JSON.stringify(access))
    throw new TypeError(`${name} is there twice, with different roles or spaces`);
  map.set(name, access);
}

function namesIn(claim: unknown): readonly string[] {
  if (typeof claim === "string") return claim.split(" ").filter((name) => name !== "");
  return Array.isArray(claim) ? claim.filter((name) => typeof name === "string") : [];
}
