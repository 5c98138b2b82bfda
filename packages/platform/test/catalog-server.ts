import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { createServer as createSecureServer, type ServerOptions } from "node:https";
import type { AddressInfo } from "node:net";
import { onTestFinished } from "vitest";

export interface SeenRequest {
  readonly method: string;
  readonly path: string;
  readonly query: Readonly<Record<string, string>>;
  readonly headers: IncomingMessage["headers"];
}

/** A broker on loopback with a catalog and no more: whatever else it is asked, it has done at once. It can be told to hang, to refuse and to die. */
export class CatalogServer {
  readonly seen: SeenRequest[] = [];
  catalog: unknown = catalogOf({ postgres: ["small", "large"] });
  etag: string | undefined;
  /** What it takes for right; `undefined`: anything. */
  authorization: string | undefined;
  mood: "answers" | "hangs" | "fails" = "answers";
  /** As `mood`, for all but the catalog. */
  changes: "answers" | "hangs" | "fails" = "answers";
  tls: ServerOptions | undefined;
  /** Is given what would send its answers, instead of their being sent, and what they are to. */
  delayed: ((send: () => void, asked: Pick<IncomingMessage, "method" | "url">) => void) | undefined;
  /** What it answers to anything but the catalog; `undefined`: 201 and nothing more. */
  reply: ((request: SeenRequest) => { readonly status: number; readonly body: unknown } | undefined) | undefined;
  #server: Server | undefined;
  #port = 0;

  get url(): string {
    return `${this.tls === undefined ? "http" : "https"}://127.0.0.1:${this.#port}`;
  }

  get catalogReads(): number {
    return this.seen.filter(({ path }) => path === "/v2/catalog").length;
  }

  /** Where it was before, if it was anywhere. */
  async comeUp(): Promise<void> {
    const react = (request: IncomingMessage, response: ServerResponse) => this.#react(request, response);
    const server = this.tls === undefined ? createServer(react) : createSecureServer(this.tls, react);
    await new Promise<void>((resolve) => server.listen(this.#port, "127.0.0.1", resolve));
    this.#server = server;
    this.#port = (server.address() as AddressInfo).port;
  }

  async goDown(): Promise<void> {
    const server = this.#server;
    if (server === undefined) return;
    this.#server = undefined;
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }

  #react(request: IncomingMessage, response: ServerResponse): void {
    const { delayed } = this;
    if (delayed === undefined) this.#answer(request, response);
    else delayed(() => this.#answer(request, response), request);
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    const [path = "", search] = (request.url ?? "").split("?", 2);
    const query = Object.fromEntries(new URLSearchParams(search));
    const asked = { method: request.method ?? "", path, query, headers: request.headers };
    this.seen.push(asked);
    request.resume();
    const reply = this.reply?.(asked) ?? { status: asked.method === "PUT" ? 201 : 200, body: {} };
    const mood = path === "/v2/catalog" || this.mood !== "answers" ? this.mood : this.changes;
    const isRefused = this.authorization !== undefined && request.headers.authorization !== this.authorization;
    const isKnown = this.etag !== undefined && request.headers["if-none-match"] === this.etag;
    if (mood === "hangs") return;
    if (mood === "fails") answer(response, 500, { description: "out of order" });
    else if (isRefused) answer(response, 401, {});
    else if (path !== "/v2/catalog") answer(response, reply.status, reply.body);
    else if (isKnown) answer(response, 304, undefined);
    else answer(response, 200, this.catalog, this.etag === undefined ? {} : { etag: this.etag });
  }
}

function answer(response: ServerResponse, status: number, body: unknown, headers: Record<string, string> = {}): void {
  response.writeHead(status, { "content-type": "application/json", ...headers });
  response.end(body === undefined ? undefined : typeof body === "string" ? body : JSON.stringify(body));
}

export async function catalogServer(settings: Partial<CatalogServer> = {}): Promise<CatalogServer> {
  const server = Object.assign(new CatalogServer(), settings);
  await server.comeUp();
  onTestFinished(() => server.goDown());
  return server;
}

/** Offerings by name, each with the names of its plans; ids are made of names. */
export function catalogOf(offerings: Readonly<Record<string, readonly string[]>>): {
  services: Record<string, unknown>[];
} {
  return {
    services: Object.entries(offerings).map(([name, plans]) => ({
      ...{ id: `${name}-id`, name, description: `about ${name}`, bindable: true },
      plans: plans.map((plan) => ({ id: `${name}-${plan}-id`, name: plan, description: `about ${plan}` })),
    })),
  };
}
