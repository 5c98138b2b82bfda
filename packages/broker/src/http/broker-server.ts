import { type HttpServerOptions, httpServer } from "@osbert/server/fastify";
import type { FastifyInstance } from "fastify";
import { brokerEnd } from "./broker-end.js";
import type { FastifyPluginOptions } from "./fastify-plugin.js";

/** A broker on a server of its own. */
export interface BrokerServerOptions extends FastifyPluginOptions, HttpServerOptions {}

/** A Fastify server that is a broker and nothing else. */
export function brokerServer(options: BrokerServerOptions): FastifyInstance {
  return httpServer(brokerEnd(options.broker, options), options);
}
