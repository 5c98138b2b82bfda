import { BrokerError } from "@osbert/protocol";
import { errorAnswer } from "../answers/answer.js";
import type { Broker } from "../broker.js";
import { tellOfRefusal } from "../observe/seen-request.js";
import { createHandler, type HandlerOptions, largestBody } from "./handler.js";

/** The broker as a fetch-style function, for Hono, Express (with an adapter), Deno, Bun or a serverless platform. */
export function fetchHandler(broker: Broker, options: HandlerOptions): (request: Request) => Promise<Response> {
  const handle = createHandler(broker, options);
  return async (request) => {
    const { pathname, search } = new URL(request.url);
    const body = await readBody(request);
    if (body === undefined) {
      const refusal = new BrokerError("too-large", `the body has more than ${largestBody} bytes`);
      if (broker.watch !== undefined) tellOfRefusal(broker.watch, request.method, refusal, 0);
      const { status, body: error } = errorAnswer(refusal);
      return Response.json(error, { status });
    }
    const header = (name: string) => request.headers.get(name) ?? undefined;
    const answer = await handle({ method: request.method, url: pathname + search, header, body });
    // Never on shared memory, which the types of a browser do not take.
    const text = answer.body === "" ? null : (answer.body as string | Uint8Array<ArrayBuffer>);
    return new Response(text, { status: answer.status, headers: answer.headers });
  };
}

/** `undefined`: more than a broker reads. */
async function readBody(request: Request): Promise<Uint8Array | undefined> {
  if (request.body === null) return new Uint8Array();
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  const reader = request.body.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return Buffer.concat(chunks);
    bytes += (value as Uint8Array).byteLength;
    if (bytes > largestBody) {
      await reader.cancel();
      return undefined;
    }
    chunks.push(value as Uint8Array);
  }
}
