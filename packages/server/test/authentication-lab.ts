import { request as httpRequest } from "node:http";
import { request as httpsRequest, type RequestOptions } from "node:https";
import { onTestFinished } from "vitest";
import {
  type Authenticate,
  type AuthenticationEvent,
  type AuthenticationOptions,
  authentication,
  type Credential,
  checkCertificates,
} from "../src/authentication/index.js";
import { type HttpServerOptions, httpServer } from "../src/fastify/index.js";
import type { OnError } from "../src/index.js";
import { apiOf, endOf } from "./api-lab.js";

export interface GuardedOptions extends HttpServerOptions {
  readonly credentials: readonly Credential[] | Authenticate;
  readonly authentication?: AuthenticationOptions;
  readonly onError?: OnError;
  /** Called with the name of everyone who is let in. */
  readonly admitted?: (credential: string) => void;
}

export interface Asked {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: Readonly<Record<string, unknown>>;
}

export interface Guarded {
  readonly server: { readonly url: string; readonly app: ReturnType<typeof httpServer> };
  readonly events: readonly AuthenticationEvent[];
  /** Asks for the catalog, or what else is said, on a connection of its own. */
  readonly ask: (authorization?: string, options?: RequestOptions) => Promise<Asked>;
}

/** An API on a real socket that asks for these credentials: a catalog, at `/v2/catalog` and at `/{platform}/v2/catalog`. */
export async function guarded(options: GuardedOptions): Promise<Guarded> {
  const events: AuthenticationEvent[] = [];
  const { credentials, tls } = options;
  checkCertificates(credentials, tls?.clientCertificates !== undefined);
  const observe = (event: AuthenticationEvent) => void events.push(event);
  const authenticate =
    typeof credentials === "function"
      ? credentials
      : authentication(credentials, { observe, ...options.authentication });
  const app = httpServer(
    endOf([apiOf(authenticate, options.admitted)], {
      challenge: authenticate.challenge,
      onError: options.onError,
    }),
    options,
  );
  onTestFinished(() => app.close());
  const url = await app.listen({ port: 0, host: "127.0.0.1" });
  return { server: { url, app }, events, ask: (authorization, more) => askAt(url, authorization, more) };
}

export function basic(username: string, password: string): string {
  return `Basic ${Buffer.from(`${username}:${password}`).toString("base64")}`;
}

function askAt(url: string, authorization?: string, options: RequestOptions = {}): Promise<Asked> {
  const { promise, resolve, reject } = deferred<Asked>();
  const request = (url.startsWith("https:") ? httpsRequest : httpRequest)(
    url,
    {
      path: "/v2/catalog",
      agent: false,
      ...options,
      headers: {
        ...(authorization !== undefined && { authorization }),
        ...(options.headers as Record<string, string> | undefined),
      },
    },
    (response) => {
      let text = "";
      response.setEncoding("utf8");
      response.on("data", (chunk: string) => {
        text += chunk;
      });
      response.on("end", () =>
        resolve({
          status: response.statusCode ?? 0,
          headers: response.headers,
          body: text === "" ? {} : (JSON.parse(text) as Record<string, unknown>),
        }),
      );
    },
  );
  request.on("error", reject);
  request.end();
  return promise;
}

function deferred<Value>() {
  let resolve: (value: Value) => void = () => undefined;
  let reject: (error: unknown) => void = () => undefined;
  const promise = new Promise<Value>((yes, no) => {
    resolve = yes;
    reject = no;
  });
  return { promise, resolve, reject };
}
