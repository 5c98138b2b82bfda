import { expect, test } from "vitest";
import type { Reach } from "../src/sources/address-reach.js";
import { HttpClient, type HttpRequest } from "../src/sources/http-client.js";
import { failureOf, json, never, serve } from "./registry-lab.js";

const http = new HttpClient({ ca: null, verify: true });

function request(url: string, ledBy: Reach | null): HttpRequest {
  return { method: "GET", url: new URL(url), headers: {}, place: "somewhere", timeoutMs: 10_000, ledBy };
}

test("a name is judged by the address that is connected to, and nobody is asked there", async () => {
  const server = await serve((_, response) => json(response, {}));
  const byName = server.url.replace("127.0.0.1", "localhost");
  for (const ledBy of ["public", "private"] as const)
    for (const url of [server.url, byName])
      expect((await failureOf(http.send(request(url, ledBy), never))).failure).toBe("foreign host");
  expect(server.seen).toEqual([]);
  for (const ledBy of ["loopback", null] as const) {
    const answer = await http.send(request(server.url, ledBy), never);
    expect([answer.status, answer.reach]).toEqual([200, "loopback"]);
    answer.drop();
  }
});

test("a connection that the other side has closed meanwhile is not taken for a source that is down", async () => {
  const server = await serve((_, response) => {
    json(response, {});
    // After the answer, without a word, as servers and proxies do with connections that are idle.
    response.once("finish", () => setImmediate(() => response.socket?.destroy()));
  });
  for (let round = 0; round < 20; round++) {
    const answer = await http.send(request(server.url, null), never);
    expect(JSON.parse((await answer.bytes(1_000)).toString())).toEqual({});
  }
});

test("a hundred requests at once, of which some are dropped unread, are all answered", async () => {
  const server = await serve((_, response) => response.end("x".repeat(200_000)));
  const statuses = await Promise.all(
    Array.from({ length: 100 }, async (_, at) => {
      const answer = await http.send(request(server.url, null), never);
      if (at % 2 === 0) answer.drop();
      else expect((await answer.bytes(200_000)).length).toBe(200_000);
      return answer.status;
    }),
  );
  expect(new Set(statuses)).toEqual(new Set([200]));
});
