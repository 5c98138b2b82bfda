import { request as httpRequest } from "node:http";
import { request as httpsRequest, type RequestOptions } from "node:https";
import { memoryStore } from "@osbert/journal/memory";
import { onTestFinished } from "vitest";
import { type AuthenticationEvent, type Served, type ServeOptions, serve } from "../src/http/index.js";
import { createBroker } from "../src/index.js";
import { lab } from "./lab.js";

export interface Asked {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: Readonly<Record<string, unknown>>;
}

export interface Guarded {
  readonly server: Served;
  readonly events: readonly AuthenticationEvent[];
  /** Asks for the catalog, or what else is said, on a connection of its own. */
  readonly ask: (authorization?: string, options?: RequestOptions) => Promise<Asked>;
}

/** A broker on a real socket that asks for these credentials. */
export async function guarded(options: ServeOptions): Promise<Guarded> {
  const events: AuthenticationEvent[] = [];
  const broker = createBroker({ stderr: "nothing", services: [lab().service], store: memoryStore() });
  const server = await serve(broker, {
    port: 0,
    ...options,
    authentication: { observe: (event) => void events.push(event), ...options.authentication },
  });
  onTestFinished(() => server.close({ drainMs: 0 }));
  return { server, events, ask: (authorization, more) => askAt(server.url, authorization, more) };
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
        "x-broker-api-version": "2.17",
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
