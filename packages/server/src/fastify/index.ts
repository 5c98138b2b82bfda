export { mount } from "./fastify-adapter.js";
export { type HttpServerOptions, httpServer } from "./http-server.js";
export type { TlsOptions } from "./tls.js";
