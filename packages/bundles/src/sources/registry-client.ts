import { setTimeout as sleep } from "node:timers/promises";
import { Authorization } from "./authorization.js";
import type { ReadCredentials } from "./credentials.js";
import type { FindProxy } from "./find-proxy.js";
import { type HttpAnswer, HttpClient, type TlsOptions } from "./http-client.js";
import { SourceError, type SourceFailure } from "./source-error.js";
import type { SourceLimits } from "./source-limits.js";

export interface RegistryOptions {
  /** Scheme, host and port. */
  readonly url: URL;
  readonly credentials: ReadCredentials;
  readonly tokenHosts: readonly string[];
  readonly tls: TlsOptions;
  readonly limits: SourceLimits;
  readonly findProxy?: FindProxy;
}

export interface RegistryRequest {
  readonly method: "GET" | "HEAD" | "POST" | "PUT";
  /** With its query. */
  readonly path: string;
  readonly accept: string;
  /** What a token has to allow. */
  readonly scope: string | null;
  readonly place: string;
  /** A blob may lie elsewhere: its digest tells whether it is the one. Nothing else may. */
  readonly isBlob: boolean;
  readonly timeoutMs: number;
  /** Of a POST or a PUT. */
  readonly body?: Buffer;
  readonly contentType?: string;
}

/** Requests to one registry, with what it wants for them: credentials, patience, a second address. */
export class RegistryClient {
  readonly url: URL;
  readonly limits: SourceLimits;
  readonly #http: HttpClient;
  readonly #authorization: Authorization;

  constructor({ url, credentials, tokenHosts, tls, limits, findProxy }: RegistryOptions) {
    this.url = url;
    this.limits = limits;
    this.#http = new HttpClient(tls, findProxy);
    const timeoutMs = limits.requestMs;
    this.#authorization = new Authorization({ url, credentials, tokenHosts, http: this.#http, timeoutMs });
  }

  /** Answers with any status but those that are about asking itself: redirects, 401, and a 429 that is soon over. */
  async send(request: RegistryRequest, signal: AbortSignal): Promise<HttpAnswer> {
    let [waits, refusals] = [0, 0];
    for (;;) {
      const sent = await this.#authorization.header(request.scope, request.place, signal);
      const { answer, isForeign } = await this.#follow(request, sent, signal);
      if (answer.status === 401 && !isForeign && refusals++ < mostRefusals) {
        answer.drop();
        if (this.#authorization.refused(answer, sent, request.scope, request.place)) continue;
      } else if (answer.status === 429 && waits++ < mostWaits && this.#isSoon(answer.retryAfterMs)) {
        answer.drop();
        await sleep(answer.retryAfterMs, undefined, { signal });
        continue;
      }
      return answer;
    }
  }

  #isSoon(retryAfterMs: number | undefined): boolean {
    return retryAfterMs !== undefined && retryAfterMs <= this.limits.retryWithinMs;
  }

  async #follow(
    { method, path, accept, place, isBlob, timeoutMs, body, contentType }: RegistryRequest,
    authorization: string | undefined,
    signal: AbortSignal,
  ): Promise<{ readonly answer: HttpAnswer; readonly isForeign: boolean }> {
    let url = new URL(path, this.url);
    let ledBy: HttpAnswer["reach"] | null = null;
    for (let redirects = 0; redirects <= mostRedirects; redirects++) {
      const headers = {
        accept,
        ...(body !== undefined && {
          "content-type": contentType ?? "application/octet-stream",
          "content-length": String(body.length),
        }),
        ...(authorization === undefined || ledBy !== null ? {} : { authorization }),
      };
      const sent = { method, url, headers, place, timeoutMs, ledBy, ...(body !== undefined && { body }) };
      const answer = await this.#http.send(sent, signal);
      const target = answer.headers.location;
      if (![301, 302, 303, 307, 308].includes(answer.status) || target === undefined)
        return { answer, isForeign: ledBy !== null };
      answer.drop();
      const next = redirectTarget(target, url, place);
      // Once it has left the source, a request has no credentials any more, even if it is led back.
      if (next.origin !== this.url.origin) {
        if (!isBlob) throw new SourceError("foreign host", place, next.host);
        ledBy ??= answer.reach;
      }
      url = next;
    }
    throw new SourceError("malformed", place, `more than ${mostRedirects} redirects`);
  }
}

/** One tells how to ask, one that a token has run out. */
const mostRefusals = 2;
const mostWaits = 2;
const mostRedirects = 5;

function redirectTarget(text: string, from: URL, place: string): URL {
  if (!URL.canParse(text, from.href)) throw new SourceError("malformed", place, "a redirect to no address");
  const target = new URL(text, from);
  const isSafe = target.protocol === "https:" || (target.protocol === "http:" && from.protocol === "http:");
  if (!isSafe || target.username !== "" || target.password !== "")
    throw new SourceError("foreign host", place, `an unsafe redirect to ${target.protocol}//${target.host}`);
  return target;
}

/** What a status means that is not the one hoped for. The body is left away: it is the source's, and nobody has checked it. */
export function statusError(answer: HttpAnswer, place: string, detail?: string): SourceError {
  answer.drop();
  const { status, retryAfterMs } = answer;
  const text = detail === undefined ? `status ${status}` : `status ${status}; ${detail}`;
  return new SourceError(failureOf(status), place, text, retryAfterMs === undefined ? {} : { retryAfterMs });
}

function failureOf(status: number): SourceFailure {
  if (status === 401) return "unauthorized";
  if (status === 403) return "forbidden";
  if (status === 404) return "not found";
  if (status === 429) return "rate limited";
  return status >= 500 ? "server error" : "malformed";
}
