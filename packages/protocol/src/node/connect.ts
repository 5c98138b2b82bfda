import { connect as connectTcp, isIP, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { RequestNotSentError } from "../client/not-sent.js";

/** As Node.js calls it. */
export interface Trust {
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
}

/** A connection that stands, and is secured where the URL asks for it. Whatever goes wrong before that is thrown as RequestNotSentError. */
export function connect(url: URL, trust: Trust, signal: AbortSignal | undefined): Promise<Socket> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(notSent(signal.reason));
    const secure = url.protocol === "https:";
    const host = url.hostname.replaceAll(/[[\]]/g, "");
    const place = { host, port: Number(url.port) || (secure ? 443 : 80), noDelay: true };
    const socket = secure
      ? connectTls({ ...place, ...trust, ...(isIP(host) === 0 && { servername: host }), ALPNProtocols: ["http/1.1"] })
      : connectTcp(place);
    const stop = (cause: unknown) => {
      socket.destroy();
      signal?.removeEventListener("abort", abort);
      reject(notSent(cause));
    };
    const abort = () => stop(signal?.reason);
    signal?.addEventListener("abort", abort, { once: true });
    socket.once("error", stop);
    // Whoever has the socket then hears of its errors; in between there must be someone, or they end the process.
    socket.on("error", () => undefined);
    socket.once(secure ? "secureConnect" : "connect", () => {
      signal?.removeEventListener("abort", abort);
      socket.off("error", stop);
      resolve(socket);
    });
  });
}

export function notSent(cause: unknown): RequestNotSentError {
  return new RequestNotSentError("the request was not sent", { cause });
}
