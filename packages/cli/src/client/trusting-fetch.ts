import { request } from "node:https";
import { Readable } from "node:stream";

/**
 * A `fetch` for a broker whose certificate an own authority has signed: that authority alone is trusted. The built-in one cannot be told
 * so. It does what the client asks of it and no more: no redirects, one text as body.
 */
export function trustingFetch(ca: string): typeof fetch {
  return (input, init = {}) =>
    new Promise<Response>((resolve, reject) => {
      const asked = request(
        String(input),
        {
          method: init.method ?? "GET",
          headers: Object.fromEntries(new Headers(init.headers)),
          ca,
          ...(init.signal && { signal: init.signal }),
        },
        (message) => {
          const status = message.statusCode ?? 0;
          const headers = new Headers();
          for (const [name, value] of Object.entries(message.headers))
            if (value !== undefined) headers.set(name, String(value));
          try {
            // These have no body, and a Response insists on it.
            const body = [204, 205, 304].includes(status)
              ? null
              : (Readable.toWeb(message) as ReadableStream<Uint8Array>);
            if (body === null) message.resume();
            resolve(new Response(body, { status, headers }));
          } catch (error) {
            message.destroy();
            reject(error as Error);
          }
        },
      );
      asked.on("error", reject);
      asked.end(typeof init.body === "string" ? init.body : undefined);
    });
}
