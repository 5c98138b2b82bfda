import { mostDrained } from "./body-stream.js";
import type { Handler } from "./http-end.js";

/** A handler as a fetch-style function, for Hono, Express (with an adapter), Deno, Bun or a serverless platform. */
export function fetchAdapter(handle: Handler): (request: Request) => Promise<Response> {
  return async (request) => {
    const { pathname, search } = new URL(request.url);
    const header = (name: string) => request.headers.get(name) ?? undefined;
    const reader = request.body?.getReader();
    const body = (mostBytes: number) => read(reader, mostBytes);
    const answer = await handle({ method: request.method, url: pathname + search, header, body });
    // Whoever is still sending could not read the answer if the server closed the connection under it.
    await drain(reader);
    if (answer.live !== undefined)
      return new Response(answer.live.toStream(), { status: answer.status, headers: answer.headers });
    const { pieces } = answer;
    if (pieces !== undefined) {
      const headers = { ...answer.headers, "content-length": String(pieces.byteLength) };
      return new Response(pieces.toStream(), { status: answer.status, headers });
    }
    // Never on shared memory, which the types of a browser do not take.
    const text = answer.body.length === 0 ? null : (answer.body as string | Uint8Array<ArrayBuffer>);
    return new Response(text, { status: answer.status, headers: answer.headers });
  };
}

type BodyReader = ReadableStreamDefaultReader<Uint8Array> | undefined;

/** `undefined`: more than wanted; the rest is left unread. */
async function read(reader: BodyReader, mostBytes: number): Promise<Uint8Array | undefined> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  while (reader !== undefined) {
    const { done, value } = await reader.read();
    if (done) break;
    bytes += value.byteLength;
    if (bytes > mostBytes) return undefined;
    chunks.push(value);
  }
  return Buffer.concat(chunks);
}

/** Reads on and throws away, until the end or one of the bounds. A body that was read to its end costs nothing. */
async function drain(reader: BodyReader): Promise<void> {
  if (reader === undefined) return;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const timeUp = new Promise<{ readonly done: true }>((resolve) => {
    timer = setTimeout(() => resolve({ done: true }), mostDrained.ms);
  });
  try {
    for (let bytes = 0; bytes <= mostDrained.bytes; ) {
      const next = await Promise.race([reader.read(), timeUp]);
      if (next.done) break;
      bytes += next.value.byteLength;
    }
    await reader.cancel();
  } catch {
    // The sender is gone; so is whoever would read the answer.
  } finally {
    clearTimeout(timer);
  }
}
