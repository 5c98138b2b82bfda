import { randomBytes } from "node:crypto";
import type { FastifyInstance } from "fastify";
import type { Broker } from "../broker.js";
import type { Credential } from "./authenticate.js";
import { brokerServer } from "./broker-server.js";
import type { HandlerOptions } from "./handler.js";

export interface ServeOptions extends Omit<HandlerOptions, "credentials"> {
  /** Default 8080; 0 takes a free one. */
  readonly port?: number;
  /** Default 127.0.0.1: reached from this machine alone. */
  readonly host?: string;
  /** Without any, one is made and handed out once, in the answer of `serve`. */
  readonly credentials?: readonly Credential[] | "none";
}

export interface Served {
  readonly url: string;
  /** The credential that was made because none was given. */
  readonly credential: Credential | null;
  readonly app: FastifyInstance;
  /** Answers what is under way, lets operations end for so long, hands the rest over. */
  close(options?: { readonly drainMs?: number }): Promise<void>;
}

/** Starts the broker and a server for it. Resolves when it answers. */
export async function serve(broker: Broker, options: ServeOptions = {}): Promise<Served> {
  const { port = 8080, host = "127.0.0.1", credentials, ...rest } = options;
  const made: Credential | null =
    credentials === undefined ? { username: "osbert", password: randomBytes(18).toString("base64url") } : null;
  await broker.start();
  const app = brokerServer({ ...rest, broker, credentials: credentials ?? (made === null ? [] : [made]) });
  const url = await app.listen({ port, host }).catch(async (error: unknown) => {
    // Without a server nobody would stop what was started.
    await app.close();
    await broker.stop({ drainMs: 0 });
    throw error;
  });
  return {
    url,
    credential: made,
    app,
    async close(closing) {
      await app.close();
      await broker.stop(closing);
    },
  };
}
