import { parseChallenges } from "./challenge.js";
import { basicHeader, type ReadCredentials } from "./credentials.js";
import type { HttpAnswer, HttpClient } from "./http-client.js";
import { parseJsonObject } from "./json-object.js";
import { SourceError } from "./source-error.js";

export interface AuthorizationOptions {
  /** The source. Its credentials go here, and to `tokenHosts`, and nowhere else. */
  readonly url: URL;
  readonly credentials: ReadCredentials;
  /** Other hosts (with their port, if it is not the usual one) that the operator trusts to exchange the credentials for tokens. */
  readonly tokenHosts: readonly string[];
  readonly http: HttpClient;
  readonly timeoutMs: number;
}

/**
 * How a registry wants to be asked: found out by its first refusal, remembered after that. Nothing is sent before it was asked for.
 *
 * A registry says itself where its tokens are given out, so a registry that was broken into could send the credentials anywhere: they go
 * only where the operator has said. Tokens go to the registry alone, and are asked for with the scope that is needed, whatever scope the
 * registry asks for.
 */
export class Authorization {
  readonly #options: AuthorizationOptions;
  #asked: Asked = { kind: "nothing" };
  readonly #tokens = new Map<string, { readonly token: string; readonly until: number }>();

  constructor(options: AuthorizationOptions) {
    this.#options = options;
  }

  /** The header for a request to the source, or nothing if it has not asked for any. */
  async header(scope: string | null, place: string, signal: AbortSignal): Promise<string | undefined> {
    const asked = this.#asked;
    if (asked.kind === "nothing") return undefined;
    try {
      return await this.#headerFor(asked, scope, place, signal);
    } catch (error) {
      // Without a header nothing would be sent, and the source could never ask for something else: one wrong answer, by whomever, would be for ever.
      if (this.#asked === asked) this.#asked = { kind: "nothing" };
      throw error;
    }
  }

  async #headerFor(
    asked: Exclude<Asked, { readonly kind: "nothing" }>,
    scope: string | null,
    place: string,
    signal: AbortSignal,
  ): Promise<string> {
    const credentials = await this.#options.credentials();
    if (credentials.kind === "token") return `Bearer ${credentials.token}`;
    if (asked.kind === "bearer") return `Bearer ${await this.#token(asked, scope, place, signal)}`;
    if (credentials.kind === "basic") return basicHeader(credentials.username, credentials.password);
    throw new SourceError("unauthorized", place, "none are given in the settings");
  }

  /** Takes in the refusal of a request. `false`: it was sent with all that there is. */
  refused(answer: HttpAnswer, sent: string | undefined, scope: string | null, place: string): boolean {
    if (sent !== undefined) {
      // A token may have been taken back before its time.
      const isWorthAnother = this.#tokens.delete(scope ?? "");
      // It may ask in another way from now on; the next request finds out.
      if (!isWorthAnother) this.#asked = { kind: "nothing" };
      return isWorthAnother;
    }
    const challenges = parseChallenges(answer.headers["www-authenticate"] ?? "");
    const challenge = challenges.find(({ kind }) => kind === "bearer") ?? challenges[0];
    if (challenge === undefined) throw new SourceError("unauthorized", place, "it does not say which");
    this.#asked =
      challenge.kind === "basic" ? challenge : { ...challenge, realm: this.#realm(challenge.realm, place), by: answer };
    return true;
  }

  #realm(text: string, place: string): URL {
    const { url } = this.#options;
    if (!URL.canParse(text)) throw new SourceError("malformed", place, "tokens are given out at no address");
    const realm = new URL(text);
    const isSafe = realm.protocol === "https:" || (realm.protocol === "http:" && url.protocol === "http:");
    if (!isSafe || realm.username !== "" || realm.password !== "")
      throw new SourceError(
        "foreign host",
        place,
        `tokens are given out at ${realm.protocol}//${realm.host} in an unsafe way`,
      );
    return realm;
  }

  async #token(asked: Bearer, scope: string | null, place: string, signal: AbortSignal): Promise<string> {
    const kept = this.#tokens.get(scope ?? "");
    if (kept !== undefined && kept.until > Date.now()) return kept.token;
    const { url, http, tokenHosts, timeoutMs } = this.#options;
    const isTrusted = asked.realm.origin === url.origin || tokenHosts.includes(asked.realm.host);
    const credentials = await this.#options.credentials();
    if (credentials.kind === "basic" && !isTrusted) {
      const advice = `its tokens are given out at ${asked.realm.host}; if that belongs to it, add it to tokenHosts`;
      throw new SourceError("foreign host", place, advice);
    }
    const address = new URL(asked.realm);
    if (asked.service !== null) address.searchParams.set("service", asked.service);
    if (scope !== null) address.searchParams.set("scope", scope);
    const headers =
      credentials.kind === "basic" ? { authorization: basicHeader(credentials.username, credentials.password) } : {};
    const ledBy = isTrusted ? null : asked.by.reach;
    const answer = await http.send({ method: "GET", url: address, headers, place, timeoutMs, ledBy }, signal);
    return this.#keep(scope, await readToken(answer, place));
  }

  #keep(scope: string | null, { token, seconds }: { readonly token: string; readonly seconds: number }): string {
    const oldest = this.#tokens.size >= keptTokens ? this.#tokens.keys().next() : undefined;
    if (oldest !== undefined && oldest.done !== true) this.#tokens.delete(oldest.value);
    // A tenth of its time is left for the request that it is sent with.
    this.#tokens.set(scope ?? "", { token, until: Date.now() + seconds * 900 });
    return token;
  }
}

interface Bearer {
  readonly kind: "bearer";
  readonly realm: URL;
  readonly service: string | null;
  readonly by: Pick<HttpAnswer, "reach">;
}

type Asked = { readonly kind: "nothing" } | { readonly kind: "basic" } | Bearer;

const keptTokens = 1_000;
const largestToken = 65_536;

async function readToken(answer: HttpAnswer, place: string): Promise<{ token: string; seconds: number }> {
  if (answer.status !== 200) {
    answer.drop();
    const failure = answer.status === 429 ? "rate limited" : answer.status >= 500 ? "server error" : "unauthorized";
    const { retryAfterMs } = answer;
    const detail = `status ${answer.status} where tokens are given out`;
    throw new SourceError(failure, place, detail, retryAfterMs === undefined ? {} : { retryAfterMs });
  }
  const document = parseJsonObject(await answer.bytes(largestToken));
  const token = document?.token ?? document?.access_token;
  if (typeof token !== "string" || !/^[\x21-\x7e]+$/.test(token))
    throw new SourceError("malformed", place, "no token where tokens are given out");
  const seconds = Number(document?.expires_in ?? 60);
  return { token, seconds: seconds > 0 && seconds < 3_600 ? seconds : 60 };
}
