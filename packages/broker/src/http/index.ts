export type {
  Authenticate,
  Authenticated,
  AuthenticationRequest,
  Peer,
  PeerCertificate,
} from "./authentication/authenticate.js";
export { type AuthenticationOptions, authentication } from "./authentication/authentication.js";
export type {
  BearerCredential,
  CertificateCredential,
  Credential,
  HashedCredential,
  PasswordCredential,
  TokenAlgorithm,
  TokenIssuer,
} from "./authentication/credential.js";
export type { AuthenticationEvent, ObserveAuthentication } from "./authentication/event.js";
export { hashPassword, type PasswordHash, parsePasswordHash, type ScryptCost } from "./authentication/password-hash.js";
export type { SlowDownOptions } from "./authentication/slow-down.js";
export { brokerPlugin, type FastifyPluginOptions } from "./fastify-plugin.js";
export { fetchHandler } from "./fetch-handler.js";
export { createHandler, type Handler, type HandlerOptions, largestBody, type OwnHandler } from "./handler.js";
export type { PagesOptions } from "./pages.js";
export { type RouteName, routes } from "./routes.js";
export { type Served, type ServeOptions, serve } from "./serve.js";
export type { TlsOptions } from "./tls.js";
export type { ReadBody, WireRequest, WireResponse } from "./wire.js";
