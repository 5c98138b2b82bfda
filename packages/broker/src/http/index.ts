export type { Credential } from "./authenticate.js";
export { brokerPlugin, type FastifyPluginOptions } from "./fastify-plugin.js";
export { fetchHandler } from "./fetch-handler.js";
export {
  createHandler,
  type Handler,
  type HandlerOptions,
  largestBody,
  type OwnHandler,
  type WireRequest,
  type WireResponse,
} from "./handler.js";
export { type RouteName, routes } from "./routes.js";
export { type Served, type ServeOptions, serve } from "./serve.js";
