import { lookup } from "node:dns";
import { lookup as lookupAll } from "node:dns/promises";
import { setMaxListeners } from "node:events";
import {
  Agent,
  type ClientRequest,
  request as httpRequest,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type RequestOptions,
} from "node:http";
import { Agent as HttpsAgent, request as httpsRequest } from "node:https";
import { isIP, type LookupFunction } from "node:net";
import type { Readable } from "node:stream";
import { rootCertificates } from "node:tls";
import { urlToHttpOptions } from "node:url";
import { parseRetryAfter } from "@osbert/protocol/client";
import { mayLeadTo, type Reach, reachOf } from "./address-reach.js";
import { type FindProxy, noProxy, type ProxyAddress, WrongProxy } from "./find-proxy.js";
import { SourceError } from "./source-error.js";
import { ProxyFailure, TunnelAgent } from "./tunnel-agent.js";

/** How the certificate of a source is checked. */
export interface TlsOptions {
  /** Authorities in PEM that are trusted besides the usual ones. */
  readonly ca: string | null;
  /** `false`: whoever answers at the source's address is believed to be the source. */
  readonly verify: boolean;
}

export interface HttpRequest {
  readonly method: "GET" | "HEAD" | "POST" | "PUT";
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | Buffer;
  /** What is asked for, in errors. */
  readonly place: string;
  readonly timeoutMs: number;
  /**
   * `null`: the operator has named this host. Else a server has named it, and this is where that server itself stands: it is not followed to
   * a place that is nearer than its own.
   */
  readonly ledBy: Reach | null;
}

/** An answer whose body has not been read. Read it or drop it: it holds a connection. */
export interface HttpAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** Where the one who answered stands. */
  readonly reach: Reach;
  /** The whole body. More than the limit is thrown as `too large`. */
  bytes(limit: number): Promise<Buffer>;
  /** The body as it comes. What breaks it off is turned into a SourceError by `failure`. */
  readonly stream: Readable;
  failure(error: unknown): Error;
  drop(): void;
  /** As the source asked for. */
  readonly retryAfterMs: number | undefined;
}

/**
 * HTTP as hostile servers are spoken to: no redirect is followed by itself, nothing is kept but connections, no answer is unpacked, and every
 * exchange ends in its time. It is made on node:http because Node's fetch takes neither authorities for TLS nor a look at the address that a
 * name leads to.
 */
export class HttpClient {
  readonly #tls: TlsOptions;
  readonly #findProxy: FindProxy;
  readonly #ca: readonly string[] | undefined;
  readonly #http = new Agent({ keepAlive: true, maxSockets: 64 });
  readonly #https: HttpsAgent;
  /** By what is shown of them. */
  readonly #tunnels = new Map<string, HttpsAgent>();

  constructor(tls: TlsOptions, findProxy: FindProxy = noProxy) {
    this.#tls = tls;
    this.#findProxy = findProxy;
    this.#ca = tls.ca === null ? undefined : [...rootCertificates, tls.ca];
    this.#https = new HttpsAgent({ keepAlive: true, maxSockets: 64, ...this.#tlsOptions(tls.verify) });
  }

  async send(request: HttpRequest, signal: AbortSignal): Promise<HttpAnswer> {
    try {
      return await this.#exchange(request, signal);
    } catch (error) {
      // A connection that was kept may have been closed by the other side in the same moment: nobody has seen the request.
      if (!(error instanceof StaleConnection)) throw error;
      return this.#exchange(request, signal);
    }
  }

  async #exchange(request: HttpRequest, signal: AbortSignal): Promise<HttpAnswer> {
    const { url, method, headers, body, place, timeoutMs, ledBy } = request;
    signal.throwIfAborted();
    refuseNearer(request);
    const proxy = this.#proxyOf(request);
    if (proxy !== null && ledBy !== null) await refuseNearerName(request);
    return new Promise((resolve, reject) => {
      let cause: Error | undefined;
      const isTls = url.protocol === "https:";
      const sent = { "user-agent": "osbert", "accept-encoding": "identity", ...headers };
      const direct = { ...urlToHttpOptions(url), method, headers: sent };
      const outgoing =
        proxy !== null
          ? this.#throughProxy(proxy, request, direct)
          : (isTls ? httpsRequest : httpRequest)({
              ...direct,
              ...(ledBy === null
                ? { agent: isTls ? this.#https : this.#http }
                : { agent: false, lookup: guardedLookup(ledBy, place), ...this.#tlsOptions(true) }),
            });
      const end = (why: Error) => {
        cause ??= why;
        outgoing.destroy();
        // One that waits for a proxy's tunnel closes only when it has got that.
        reject(cause);
      };
      const timer = setTimeout(() => end(new SourceError("timeout", place, `after ${timeoutMs} ms`)), timeoutMs);
      const onAbort = () => end(asError(signal.reason));
      // A source is read with many requests at a time under one signal; each takes its listener away again.
      setMaxListeners(0, signal);
      signal.addEventListener("abort", onAbort, { once: true });
      let isAnswered = false;
      outgoing.once("close", () => {
        clearTimeout(timer);
        signal.removeEventListener("abort", onAbort);
        // An error is made with the whole stack: not for each of thousands of answers.
        if (!isAnswered) reject(cause ?? new SourceError("unreachable", place));
      });
      const failure = (error: unknown) => cause ?? failureOf(error, place);
      outgoing.on("error", (error: NodeJS.ErrnoException) => {
        const isStale = outgoing.reusedSocket && error.code === "ECONNRESET" && cause === undefined;
        reject(isStale ? new StaleConnection() : failure(error));
      });
      // Where the one stands who answers a proxy is not known: so it is trusted with nothing nearer than the Internet.
      const reachBy = (address: string) => (proxy === null ? reachOf(address) : "public");
      outgoing.once("response", (incoming) => {
        isAnswered = true;
        resolve(new Answer(incoming, request, failure, reachBy));
      });
      outgoing.end(body);
    });
  }

  #proxyOf({ url, headers, place }: HttpRequest): ProxyAddress | null {
    let proxy: ProxyAddress | null;
    try {
      proxy = this.#findProxy(url);
    } catch (error) {
      if (!(error instanceof WrongProxy)) throw error;
      throw new SourceError("unreachable", place, error.message);
    }
    // Over https a proxy sees nothing of it.
    if (proxy !== null && url.protocol === "http:" && headers.authorization !== undefined)
      throw new SourceError(
        "foreign host",
        place,
        `the proxy ${proxy.shown} would read the credentials; use https, or put ${url.hostname} into NO_PROXY`,
      );
    return proxy;
  }

  #throughProxy(proxy: ProxyAddress, { url, ledBy }: HttpRequest, direct: DirectRequest): ClientRequest {
    if (url.protocol === "https:") {
      const kept = this.#tunnels.get(proxy.shown);
      const agent = ledBy === null && kept !== undefined ? kept : this.#tunnel(proxy, ledBy !== null);
      if (ledBy === null) this.#tunnels.set(proxy.shown, agent);
      return httpsRequest({ ...direct, agent });
    }
    const { hostname: host, port, authorization, isTls } = proxy;
    const headers = {
      ...direct.headers,
      host: url.host,
      ...(authorization !== null && { "proxy-authorization": authorization }),
    };
    const path = `${url.origin}${url.pathname}${url.search}`;
    return (isTls ? httpsRequest : httpRequest)({ method: direct.method, host, port, path, headers, agent: false });
  }

  #tunnel(proxy: ProxyAddress, isLed: boolean): HttpsAgent {
    const options = { keepAlive: !isLed, maxSockets: 64, ...this.#tlsOptions(isLed || this.#tls.verify) };
    return new TunnelAgent(proxy, options);
  }

  #tlsOptions(verify: boolean): { readonly rejectUnauthorized: boolean; readonly ca?: string[] } {
    const rejectUnauthorized = verify || this.#tls.verify;
    return this.#ca === undefined ? { rejectUnauthorized } : { rejectUnauthorized, ca: [...this.#ca] };
  }
}

type DirectRequest = Omit<RequestOptions, "headers"> & { readonly headers: Readonly<Record<string, string>> };

class StaleConnection extends Error {}

/** What is left of an answer that nobody wants is still read up to here, so that its connection can be used again. */
const drainedBytes = 65_536;

/** A class, and no object with a getter of its own: V8 keeps the functions of such a one in its shape, with all that they refer to, for longer than the answer. */
class Answer implements HttpAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly stream: IncomingMessage;
  readonly failure: (error: unknown) => Error;
  readonly retryAfterMs: number | undefined;
  readonly #request: HttpRequest;
  readonly #remoteAddress: string;
  readonly #reachBy: (address: string) => Reach;

  constructor(
    incoming: IncomingMessage,
    request: HttpRequest,
    failure: (error: unknown) => Error,
    reachBy: (address: string) => Reach,
  ) {
    const { statusCode = 0, headers, socket } = incoming;
    this.status = statusCode;
    this.headers = headers;
    this.stream = incoming;
    this.failure = failure;
    this.#request = request;
    // Now: a socket that was closed does not tell it any more.
    this.#remoteAddress = socket.remoteAddress ?? "";
    this.#reachBy = reachBy;
    // Without a listener, an error of a body that nobody reads would end the process.
    incoming.on("error", () => undefined);
    const retryAfter = headers["retry-after"];
    this.retryAfterMs = retryAfter === undefined ? undefined : parseRetryAfter(retryAfter, Date.now);
  }

  /** Of few answers anybody wants to know. */
  get reach(): Reach {
    return this.#reachBy(this.#remoteAddress);
  }

  drop(): void {
    const isSmall =
      this.#request.method === "HEAD" || Number(this.headers["content-length"] ?? Infinity) <= drainedBytes;
    if (isSmall) this.stream.resume();
    else this.stream.destroy();
  }

  async bytes(limit: number): Promise<Buffer> {
    const { place } = this.#request;
    const chunks: Buffer[] = [];
    let size = 0;
    try {
      if (Number(this.headers["content-length"]) > limit)
        throw new SourceError("too large", place, `over ${limit} bytes`);
      if ((this.headers["content-encoding"] ?? "identity") !== "identity")
        throw new SourceError("malformed", place, "an encoding that was not asked for");
      for await (const chunk of this.stream) {
        size += (chunk as Buffer).length;
        if (size > limit) throw new SourceError("too large", place, `over ${limit} bytes`);
        chunks.push(chunk as Buffer);
      }
    } catch (error) {
      this.stream.destroy();
      throw this.failure(error);
    }
    return Buffer.concat(chunks);
  }
}

/** An address in the place of a name is not looked up, so it is judged here. */
function refuseNearer({ url, ledBy, place }: HttpRequest): void {
  const host = url.hostname.replaceAll(/[[\]]/g, "");
  if (ledBy !== null && isIP(host) !== 0 && !mayLeadTo(ledBy, reachOf(host))) throw leadsNearer(place, url.hostname);
}

/**
 * Of a name that a proxy is asked for. It is the proxy that looks it up, and it may know others than this machine does: what cannot be
 * looked up here is left to it.
 */
async function refuseNearerName({ url, ledBy, place }: HttpRequest): Promise<void> {
  if (ledBy === null || isIP(url.hostname.replaceAll(/[[\]]/g, "")) !== 0) return;
  const addresses = await lookupAll(url.hostname, { all: true }).catch(() => []);
  if (addresses.some(({ address }) => !mayLeadTo(ledBy, reachOf(address)))) throw leadsNearer(place, url.hostname);
}

/** Judges the very addresses that are connected to: a name that is asked for twice may answer twice. */
function guardedLookup(ledBy: Reach, place: string): LookupFunction {
  return (hostname, options, callback) => {
    lookup(hostname, { ...options, all: true }, (error, addresses) => {
      if (error !== null) return callback(error, []);
      const isNearer = addresses.some(({ address }) => !mayLeadTo(ledBy, reachOf(address)));
      if (isNearer || addresses[0] === undefined) return callback(leadsNearer(place, hostname), []);
      if (options.all) return callback(null, addresses);
      callback(null, addresses[0].address, addresses[0].family);
    });
  };
}

function leadsNearer(place: string, hostname: string): SourceError {
  return new SourceError("foreign host", place, `${hostname} is nearer to this machine than the source itself`);
}

function failureOf(error: unknown, place: string): Error {
  if (error instanceof SourceError) return error;
  if (error instanceof ProxyFailure) return new SourceError("unreachable", place, error.message, { cause: error });
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  if (/^HPE_/.test(code)) return new SourceError("malformed", place, "not HTTP", { cause: error });
  // OpenSSL tells it in words alone: the first bytes of the answer are none of TLS.
  if (error instanceof Error && /wrong version number|packet length too long/.test(error.message))
    return new SourceError("no tls", place, null, { cause: error });
  const isTls = /CERT|SELF_SIGNED|UNABLE_TO_|^ERR_TLS|^ERR_SSL|^EPROTO$/.test(code);
  return new SourceError(isTls ? "tls" : "unreachable", place, code === "" ? null : code, { cause: error });
}

function asError(reason: unknown): Error {
  return reason instanceof Error ? reason : new Error("called off", { cause: reason });
}
