import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { onTestFinished } from "vitest";

export interface Seen {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
}

/** What a broker does with one request. An answer is a status and a body; a function does what it likes with the socket. */
export type Reaction =
  | { readonly status: number; readonly body?: unknown; readonly headers?: Readonly<Record<string, string>> }
  | ((response: ServerResponse, request: IncomingMessage) => void);

/** A real server on loopback that reacts as told, one reaction after the other; the last one stays. */
export async function brokerThat(...reactions: readonly Reaction[]): Promise<{ url: string; seen: Seen[] }> {
  const seen: Seen[] = [];
  let next = 0;
  const server = createServer((request, response) => {
    let body = "";
    request.setEncoding("utf8");
    request.on("data", (chunk: string) => {
      body += chunk;
    });
    request.on("end", () => {
      const url = new URL(request.url ?? "", "http://broker");
      seen.push({
        method: request.method ?? "",
        path: (request.url ?? "").split("?", 1)[0] ?? "",
        query: url.searchParams,
        headers: request.headers,
        body,
      });
      const reaction = reactions[Math.min(next++, reactions.length - 1)];
      if (reaction === undefined) return;
      if (typeof reaction === "function") return reaction(response, request);
      const text = typeof reaction.body === "string" ? reaction.body : JSON.stringify(reaction.body ?? {});
      response.writeHead(reaction.status, { "content-type": "application/json", ...reaction.headers });
      response.end(reaction.status === 204 || reaction.status === 304 ? undefined : text);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, seen };
}
