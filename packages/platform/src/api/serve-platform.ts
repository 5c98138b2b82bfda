import type { Server } from "node:http";
import { type HttpServerOptions, httpServer } from "@osbert/server/fastify";
import type { Platform } from "../platform.js";
import { type PlatformEndOptions, platformEnd } from "./platform-end.js";

/** Where the platform answers, and to whom. */
export interface ServePlatformOptions extends PlatformEndOptions, HttpServerOptions {
  /** Default 8081; 0 takes a free one. */
  readonly port?: number;
  /** Default 127.0.0.1: reached from this machine alone. */
  readonly host?: string;
}

/** A platform that answers. */
export interface ServedPlatform {
  /** Where it answers, such as `http://127.0.0.1:8081`. */
  readonly url: string;
  /** Node's own, for an exchange of certificates. */
  readonly server: Server;
  /** Answers what is under way, then stops the platform. */
  close(): Promise<void>;
}

/** Starts the platform and a server for it. Resolves when it answers. If it cannot, the platform is stopped: nobody else would do it. */
export async function servePlatform(platform: Platform, options: ServePlatformOptions): Promise<ServedPlatform> {
  try {
    return await startServer(platform, options);
  } catch (error) {
    await platform.stop();
    throw error;
  }
}

async function startServer(platform: Platform, options: ServePlatformOptions): Promise<ServedPlatform> {
  const { port = 8081, host = "127.0.0.1" } = options;
  const end = platformEnd(platform, options);
  // Before the platform is started: with a wrong setting of TLS nothing is sent to a broker.
  const app = httpServer(end, options);
  await platform.start();
  const url = await app.listen({ port, host }).catch(async (error: unknown) => {
    await app.close();
    throw error;
  });
  return {
    url,
    server: app.server,
    async close() {
      // A server that closes waits for its answers, and these would never end.
      end.closeStreams();
      await app.close();
      await platform.stop();
    },
  };
}
