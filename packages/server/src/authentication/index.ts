export type {
  Authenticate,
  Authenticated,
  AuthenticationRequest,
  Peer,
  PeerCertificate,
} from "./authenticate.js";
export { type AuthenticationOptions, authentication, openToAll } from "./authentication.js";
export { checkCertificates } from "./check-certificates.js";
export type {
  BearerCredential,
  CertificateCredential,
  Credential,
  HashedCredential,
  PasswordCredential,
  TokenAlgorithm,
  TokenIssuer,
} from "./credential.js";
export type { AuthenticationEvent, ObserveAuthentication } from "./event.js";
export { hashPassword, type PasswordHash, parsePasswordHash, type ScryptCost } from "./password-hash.js";
export { type KnowsUser, type RefusedCaller, refusedCaller } from "./refused-caller.js";
export type { SlowDownOptions } from "./slow-down.js";
export { tokenClaims } from "./token-claims.js";
