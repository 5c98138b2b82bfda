import { fetchAdapter } from "@osbert/server";
import type { Broker } from "../broker.js";
import { createHandler, type HandlerOptions } from "./broker-end.js";

/** The broker as a fetch-style function, for Hono, Express (with an adapter), Deno, Bun or a serverless platform. */
export function fetchHandler(broker: Broker, options: HandlerOptions): (request: Request) => Promise<Response> {
  return fetchAdapter(createHandler(broker, options));
}
