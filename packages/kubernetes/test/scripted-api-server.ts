import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

export type Answer = (request: IncomingMessage, response: ServerResponse, body: string) => void;

export interface SeenRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
}

/**
 * Stands for an API server that does on demand what a real one does once in a while, or never: forgets, is busy, hangs up, falls silent, floods. It
 * has config maps of one namespace, can list them in pages and tell what becomes of them. What is asked of a real server is tested with one.
 */
export class ScriptedApiServer {
  readonly requests: SeenRequest[] = [];
  readonly #objects = new Map<string, { readonly version: number; readonly value: string }>();
  readonly #history: { readonly version: number; readonly line: string }[] = [];
  readonly #watches = new Set<ServerResponse>();
  readonly #server: Server;
  readonly #directory: string;
  readonly #misbehaviours: { readonly on: Asked; readonly answer: Answer }[] = [];
  #version = 1;
  #oldest = 0;
  /** Answers everything instead. */
  instead: Answer | undefined;

  private constructor(server: Server, directory: string) {
    this.#server = server;
    this.#directory = directory;
  }

  static async start(): Promise<ScriptedApiServer> {
    const server = createServer();
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const scripted = new ScriptedApiServer(server, await mkdtemp(join(tmpdir(), "osbert-scripted-")));
    server.on("request", (request, response) => void scripted.#answer(request, response));
    await scripted.writeKubeconfig("token: first-token-of-all");
    return scripted;
  }

  get kubeconfig(): string {
    return join(this.#directory, "kubeconfig");
  }

  file(name: string): string {
    return join(this.#directory, name);
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async writeKubeconfig(...user: readonly string[]): Promise<void> {
    const lines = [
      "apiVersion: v1",
      "kind: Config",
      "current-context: here",
      "contexts: [{ name: here, context: { cluster: here, user: me } }]",
      `clusters: [{ name: here, cluster: { server: "${this.url}", insecure-skip-tls-verify: true } }]`,
      "users:",
      "- name: me",
      "  user:",
      ...user.map((line) => `    ${line}`),
    ];
    await writeFile(this.kubeconfig, `${lines.join("\n")}\n`);
  }

  /** The next answer to a list, a watch or anything; each is given once. */
  next(on: Asked, answer: Answer): void {
    this.#misbehaviours.push({ on, answer });
  }

  put(name: string, value: string): void {
    const type = this.#objects.has(name) ? "MODIFIED" : "ADDED";
    this.#version += 1;
    this.#objects.set(name, { version: this.#version, value });
    this.#tell(type, name, value);
  }

  remove(name: string): void {
    const value = this.#objects.get(name)?.value ?? "";
    this.#objects.delete(name);
    this.#version += 1;
    this.#tell("DELETED", name, value);
  }

  /** Changes that no watch is told of and that nobody can catch up with: 410 for all who come from before. */
  forget(change: () => void): void {
    const open = [...this.#watches];
    this.#watches.clear();
    change();
    this.#version += 1;
    this.#oldest = this.#version;
    for (const watch of open) watch.end();
  }

  /** A connection that breaks. */
  cut(): void {
    for (const watch of this.#watches) watch.destroy();
  }

  /** In all open watches, as it stands. */
  write(text: string | Buffer): void {
    for (const watch of this.#watches) watch.write(text);
  }

  get openWatches(): number {
    return this.#watches.size;
  }

  count(what: Asked): number {
    return this.requests.filter((request) => kindOf(request.method, request.url) === what).length;
  }

  async close(): Promise<void> {
    this.#server.close();
    this.#server.closeAllConnections();
    await rm(this.#directory, { recursive: true, force: true });
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = "", url = "", headers } = request;
    let body = "";
    request.on("error", () => undefined);
    response.on("error", () => undefined);
    for await (const chunk of request) body += String(chunk);
    this.requests.push({ method, url, headers, body });
    const asked = kindOf(method, url);
    const at = this.#misbehaviours.findIndex(({ on }) => on === asked || on === "anything");
    const misbehave = at < 0 ? this.instead : this.#misbehaviours.splice(at, 1)[0]?.answer;
    if (misbehave !== undefined) misbehave(request, response, body);
    else if (asked === "watch") this.#watch(request, response);
    else if (asked === "list") this.#list(new URL(url, this.url).searchParams, response);
    else status(404, "NotFound", "the server could not find the requested resource")(request, response, body);
  }

  #list(query: URLSearchParams, response: ServerResponse): void {
    const from = Number(query.get("continue") ?? "0");
    const limit = Number(query.get("limit") ?? "500");
    const all = [...this.#objects].sort(([a], [b]) => (a < b ? -1 : 1));
    const items = all.slice(from, from + limit).map(([name, { version, value }]) => objectOf(name, version, value));
    const next = from + limit < all.length ? String(from + limit) : "";
    const list = { kind: "ConfigMapList", metadata: { resourceVersion: String(this.#version), continue: next }, items };
    response.setHeader("content-type", "application/json").end(JSON.stringify(list));
  }

  #watch(request: IncomingMessage, response: ServerResponse): void {
    const from = Number(new URL(request.url ?? "", this.url).searchParams.get("resourceVersion"));
    if (from < this.#oldest) {
      status(410, "Expired", "too old resource version")(request, response, "");
      return;
    }
    response.setHeader("content-type", "application/json").flushHeaders();
    for (const { version, line } of this.#history) if (version > from) response.write(line);
    this.#watches.add(response);
    response.on("close", () => this.#watches.delete(response));
  }

  #tell(type: string, name: string, value: string): void {
    const line = `${JSON.stringify({ type, object: objectOf(name, this.#version, value) })}\n`;
    this.#history.push({ version: this.#version, line });
    for (const watch of this.#watches) watch.write(line);
  }
}

export type Asked = "list" | "watch" | "other" | "anything";

/** An answer as API servers give it when something is wrong. */
export function status(
  code: number,
  reason: string,
  message: string,
  details: Readonly<Record<string, unknown>> = {},
  headers: Readonly<Record<string, string>> = {},
): Answer {
  return (_request, response) => {
    const body = { kind: "Status", apiVersion: "v1", status: "Failure", code, reason, message, details };
    response.writeHead(code, { "content-type": "application/json", ...headers }).end(JSON.stringify(body));
  };
}

export function objectOf(name: string, version: number, value: string) {
  return {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name, namespace: "here", uid: `uid-${name}`, resourceVersion: String(version), managedFields: [{}] },
    data: { value },
  };
}

function kindOf(method: string, url: string): Asked {
  const { pathname, searchParams } = new URL(url, "http://server");
  if (method !== "GET" || !pathname.endsWith("/configmaps")) return "other";
  return searchParams.has("watch") ? "watch" : "list";
}
