import type { FindProxy } from "./find-proxy.js";
import { HttpClient, type HttpRequest, type TlsOptions } from "./http-client.js";
import { parseJsonObject } from "./json-object.js";
import { statusError } from "./registry-client.js";
import { SourceError } from "./source-error.js";
import type { SourceLimits } from "./source-limits.js";

/**
 * The API by which a vendor lists repositories. It answers with 200 and a JSON object, or it is an error, whatever the body: a document
 * about an error must not look like a list without members. Redirects are not followed, so that nothing leaves the vendor's host.
 */
export class VendorApi {
  readonly url: URL;
  readonly limits: SourceLimits;
  readonly #http: HttpClient;

  constructor(url: URL, limits: SourceLimits, findProxy?: FindProxy, tls: TlsOptions = { ca: null, verify: true }) {
    this.#http = new HttpClient(tls, findProxy);
    this.url = url;
    this.limits = limits;
  }

  async get(
    path: string,
    authorization: string | undefined,
    signal: AbortSignal,
  ): Promise<{ readonly [name: string]: unknown }> {
    return this.#send({ method: "GET", headers: authorization === undefined ? {} : { authorization } }, path, signal);
  }

  async post(path: string, body: object, signal: AbortSignal): Promise<{ readonly [name: string]: unknown }> {
    const headers = { "content-type": "application/json" };
    return this.#send({ method: "POST", headers, body: JSON.stringify(body) }, path, signal);
  }

  async #send(request: Pick<HttpRequest, "method" | "headers" | "body">, path: string, signal: AbortSignal) {
    const url = new URL(path, this.url);
    const place = `${url.host}${url.pathname}`;
    const answer = await this.#http.send(
      { ...request, url, place, timeoutMs: this.limits.requestMs, ledBy: null },
      signal,
    );
    if (answer.status !== 200) throw statusError(answer, place);
    const document = parseJsonObject(await answer.bytes(this.limits.pageBytes));
    if (document === undefined) throw new SourceError("malformed", place, "no JSON object");
    return document;
  }
}
