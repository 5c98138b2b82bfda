import { randomBytes } from "node:crypto";
import {
  type Authenticate,
  type Credential,
  checkCertificates,
  type PasswordCredential,
} from "@osbert/server/authentication";
import type { FastifyInstance } from "fastify";
import type { Broker } from "../broker.js";
import { type BrokerServerOptions, brokerServer } from "./broker-server.js";

/** Where the broker answers, and to whom. */
export interface ServeOptions extends Omit<BrokerServerOptions, "credentials" | "broker"> {
  /** Default 8080; 0 takes a free one. */
  readonly port?: number;
  /** Default 127.0.0.1: reached from this machine alone. */
  readonly host?: string;
  /** Without any, one is made and handed out once, in the answer of `serve`. */
  readonly credentials?: readonly Credential[] | Authenticate | "none";
}

/** A broker that answers. */
export interface Served {
  /** Where it answers, such as `http://127.0.0.1:8080`. */
  readonly url: string;
  /** The credential that was made because none was given. */
  readonly credential: PasswordCredential | null;
  /** The server itself, for routes of your own. */
  readonly app: FastifyInstance;
  /** Answers what is under way, lets operations end for so long, hands the rest over. */
  close(options?: { readonly drainMs?: number }): Promise<void>;
}

/**
 * Starts the broker and a server for it. Resolves when it answers.
 *
 * @example
 * ```ts
 * import { createBroker, defineService } from "@osbert/broker";
 * import { serve } from "@osbert/broker/http";
 * import { sqliteStore } from "@osbert/journal/sqlite";
 *
 * const nothing = defineService({
 *   id: "5b1e7a0c-8d54-4a5e-9a0e-0d6e2a6a4f20",
 *   name: "nothing",
 *   description: "Nothing at all",
 *   plans: { only: { id: "5b1e7a0c-8d54-4a5e-9a0e-0d6e2a6a4f21", description: "The only one" } },
 * });
 *
 * const broker = createBroker({ services: [nothing], store: sqliteStore("broker.db") });
 * const { url, credential } = await serve(broker, { port: 8080 });
 * console.log(url, credential);
 * ```
 */
export async function serve(broker: Broker, options: ServeOptions = {}): Promise<Served> {
  const { port = 8080, host = "127.0.0.1", credentials, ...rest } = options;
  const made: PasswordCredential | null =
    credentials === undefined ? { username: "osbert", password: randomBytes(18).toString("base64url") } : null;
  checkCertificates(credentials, rest.tls?.clientCertificates !== undefined);
  // Before the broker is started: a wrong setting of TLS leaves nothing behind that would have to be stopped.
  const app = brokerServer({ ...rest, broker, credentials: credentials ?? (made === null ? [] : [made]) });
  await broker.start();
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
      broker.announceStop();
      await app.close();
      await broker.stop(closing);
    },
  };
}
