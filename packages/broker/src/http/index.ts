export type { Handler, ReadBody, WireRequest, WireResponse } from "@osbert/server";
export { largestBody } from "@osbert/server";
export {
  type Authenticate,
  type Authenticated,
  type AuthenticationEvent,
  type AuthenticationOptions,
  type AuthenticationRequest,
  authentication,
  type BearerCredential,
  type CertificateCredential,
  type Credential,
  type HashedCredential,
  hashPassword,
  type ObserveAuthentication,
  type PasswordCredential,
  type PasswordHash,
  type Peer,
  type PeerCertificate,
  parsePasswordHash,
  type ScryptCost,
  type SlowDownOptions,
  type TokenAlgorithm,
  type TokenIssuer,
} from "@osbert/server/authentication";
export type { TlsOptions } from "@osbert/server/fastify";
export type { OwnHandler } from "../osb/osb-api.js";
export { type RouteName, routes } from "../osb/routes.js";
export { createHandler, type HandlerOptions, type PagesOptions } from "./broker-end.js";
export { brokerPlugin, type FastifyPluginOptions } from "./fastify-plugin.js";
export { fetchHandler } from "./fetch-handler.js";
export { type Served, type ServeOptions, serve } from "./serve.js";
