import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo } from "node:net";
import { onTestFinished } from "vitest";

/** A body that is no text is sent as JSON; a function does what it likes with the socket. */
export type Reaction =
  | { readonly status: number; readonly body?: unknown; readonly headers?: Readonly<Record<string, string>> }
  | ((response: ServerResponse) => void);

export interface Asked {
  /** `PUT /v2/service_instances/i` */
  readonly line: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
}

const small = { id: "p", name: "small", description: "A plan" };
const service = { id: "s", name: "db", description: "A service", bindable: true, plans: [small] };
/** One service with one plan, of which nothing can be fetched. */
export const plainCatalog = { services: [service] };
export const retrievableCatalog = {
  services: [{ ...service, instances_retrievable: true, bindings_retrievable: true }],
};

/** A real server on loopback that answers each request line as told, the last reaction of a list again and again. */
export async function serverThat(
  reactions: Readonly<Record<string, Reaction | readonly Reaction[]>>,
  tls?: { readonly key: string; readonly cert: string },
): Promise<{ url: string; asked: Asked[] }> {
  const asked: Asked[] = [];
  const counts = new Map<string, number>();
  const react = (request: IncomingMessage, response: ServerResponse): void => {
    let body = "";
    request.setEncoding("utf8").on("data", (chunk: string) => {
      body += chunk;
    });
    request.on("end", () => {
      const [path = "", query] = (request.url ?? "").split("?");
      const line = `${request.method} ${path}`;
      asked.push({ line, query: new URLSearchParams(query), headers: request.headers, body });
      const found = reactions[line] ?? { status: 404, body: { description: `nothing for ${line}` } };
      const list = Array.isArray(found) ? (found as readonly Reaction[]) : [found as Reaction];
      const count = counts.get(line) ?? 0;
      counts.set(line, count + 1);
      const reaction = list[Math.min(count, list.length - 1)] as Reaction;
      if (typeof reaction === "function") return reaction(response);
      const text = typeof reaction.body === "string" ? reaction.body : JSON.stringify(reaction.body ?? {});
      response.writeHead(reaction.status, { "content-type": "application/json", ...reaction.headers }).end(text);
    });
  };
  const server: Server = tls === undefined ? createServer(react) : createTlsServer(tls, react);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  const scheme = tls === undefined ? "http" : "https";
  return { url: `${scheme}://127.0.0.1:${(server.address() as AddressInfo).port}`, asked };
}

/** An address where nothing listens, any more. */
export async function urlWithoutServer(): Promise<string> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return `http://127.0.0.1:${port}`;
}
