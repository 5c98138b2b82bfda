import { once } from "node:events";
import { get, type IncomingMessage } from "node:http";
import { expect, test } from "vitest";
import { httpServer } from "../src/fastify/index.js";
import { type Api, fetchAdapter, httpEnd, LiveText } from "../src/index.js";
import type { RequestAnswered, SeenRequest } from "../src/observe/index.js";

/** An end whose only answer goes on until nobody listens. */
function endless() {
  const heard = { pieces: 0, signal: undefined as AbortSignal | undefined, ended: withResolvers() };
  async function* pieces(signal: AbortSignal) {
    heard.signal = signal;
    try {
      for (const piece of ["one\n", "ä\n"]) {
        heard.pieces++;
        yield piece;
      }
      if (!signal.aborted) await new Promise((resolve) => signal.addEventListener("abort", resolve));
    } finally {
      heard.ended.resolve();
    }
  }
  const api: Api<SeenRequest<RequestAnswered>> = {
    owns: () => true,
    respond: () => ({ status: 200, body: new LiveText(pieces), headers: { "content-type": "text/plain" } }),
  };
  const end = httpEnd({ apis: [api], problemOf: (error) => error as never, refuseMethod: () => new Error() as never });
  return { end, heard };
}

test("a live answer is sent as it happens, and ends what makes it when the caller hangs up", async () => {
  const { end, heard } = endless();
  const app = httpServer(end);
  try {
    const url = await app.listen({ port: 0, host: "127.0.0.1" });
    const asked = get(url);
    const [response] = (await once(asked, "response")) as [IncomingMessage];
    expect(response.headers["content-type"]).toBe("text/plain");
    let text = "";
    for await (const chunk of response.setEncoding("utf8").iterator({ destroyOnReturn: false })) {
      text += String(chunk);
      if (text === "one\nä\n") break;
    }
    expect(heard.signal?.aborted).toBe(false);
    asked.destroy();
    await heard.ended.promise;
  } finally {
    await app.close();
  }
});

test("the same of an adapter for fetch; HEAD keeps nobody listening", async () => {
  const { end, heard } = endless();
  const answer = fetchAdapter(end.handle);
  const head = await answer(new Request("http://x/", { method: "HEAD" }));
  expect([head.status, await head.text(), heard.pieces]).toEqual([200, "", 0]);
  const response = await answer(new Request("http://x/"));
  const reader = (response.body as ReadableStream<Uint8Array>).getReader();
  expect(new TextDecoder().decode((await reader.read()).value)).toBe("one\n");
  await reader.cancel();
  await heard.ended.promise;
});

/** Node.js 20 has none of its own. */
function withResolvers() {
  let resolve: () => void = () => undefined;
  const promise = new Promise<void>((done) => {
    resolve = done;
  });
  return { promise, resolve };
}
