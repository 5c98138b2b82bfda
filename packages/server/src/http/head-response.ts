import type { WireResponse } from "./wire.js";

/** The answer to HEAD: all that GET is answered with, but for the body itself. */
export function headResponse(response: WireResponse): WireResponse {
  const { status, headers, live, pieces } = response;
  // Its length is not known, and nobody is to be kept listening.
  if (live !== undefined) return { status, headers, body: "" };
  const body = pieces ?? response.body;
  const isText = typeof body === "string";
  const length = isText ? Buffer.byteLength(body) : body.byteLength;
  // Of what is text Fastify says the charset, too: nothing, of the same kind as the body was.
  const nothing = isText ? "" : new Uint8Array(0);
  return { status, headers: { ...headers, "content-length": String(length) }, body: nothing };
}
