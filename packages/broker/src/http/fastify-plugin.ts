import { mount } from "@osbert/server/fastify";
import type { FastifyInstance } from "fastify";
import type { Broker } from "../broker.js";
import { brokerEnd, type HandlerOptions } from "./broker-end.js";

/** What `brokerPlugin` takes: a broker, and who may ask. */
export interface FastifyPluginOptions extends HandlerOptions {
  /** Started by you, before requests come. */
  readonly broker: Broker;
}

/**
 * The broker as a Fastify plugin: `app.register(brokerPlugin, { broker, credentials })`, under a prefix if wanted. What the app itself
 * refuses before a route is reached stays the app's business.
 */
export async function brokerPlugin(app: FastifyInstance, options: FastifyPluginOptions): Promise<void> {
  mount(app, brokerEnd(options.broker, options));
}
