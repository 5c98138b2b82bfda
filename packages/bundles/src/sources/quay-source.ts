import type { KeyObject } from "node:crypto";
import type { ReadCredentials } from "./credentials.js";
import { distributionSource } from "./distribution-source.js";
import type { FindProxy } from "./find-proxy.js";
import type { TlsOptions } from "./http-client.js";
import { asObject } from "./json-object.js";
import { readPages } from "./listing.js";
import type { Source } from "./source.js";
import { SourceError } from "./source-error.js";
import type { SourceLimits } from "./source-limits.js";
import { VendorApi } from "./vendor-api.js";

export interface QuayOptions {
  readonly url: URL;
  readonly namespace: string;
  readonly credentials: ReadCredentials;
  readonly tls: TlsOptions;
  readonly limits: SourceLimits;
  readonly signatureKeys?: readonly KeyObject[] | null;
  readonly findProxy?: FindProxy;
}

/** The repositories of a namespace on Quay. One host lists them, holds them and gives out tokens. */
export function quaySource(options: QuayOptions): Source {
  const { url, namespace, credentials, tls, limits, findProxy, signatureKeys = null } = options;
  const api = new VendorApi(url, limits, findProxy, tls);
  return distributionSource({
    url,
    imageHost: url.host,
    // Its registry takes a token of its API as the password of this account.
    credentials: async () => {
      const given = await credentials();
      return given.kind === "token" ? { kind: "basic", username: "$oauthtoken", password: given.token } : given;
    },
    tokenHosts: [],
    tls,
    limits,
    signatureKeys,
    ...(findProxy && { findProxy }),
    repositories: { kind: "vendor", list: (signal) => listNamespace(api, namespace, credentials, signal) },
  });
}

async function* listNamespace(
  api: VendorApi,
  namespace: string,
  credentials: ReadCredentials,
  signal: AbortSignal,
): AsyncGenerator<readonly string[]> {
  const given = await credentials();
  // Robot accounts and their passwords are for the registry alone.
  const authorization = given.kind === "token" ? `Bearer ${given.token}` : undefined;
  const path = `/api/v1/repository?public=true&namespace=${encodeURIComponent(namespace)}`;
  const place = `${api.url.host}/api/v1/repository`;
  const { pages, repositories } = api.limits;
  yield* readPages(path, { pages, names: repositories }, place, async (page) => {
    const { repositories: list, next_page: next } = await api.get(page, authorization, signal);
    if (!Array.isArray(list)) throw new SourceError("malformed", place, "no list of repositories");
    const names = list.map((each) => asObject(each)?.name);
    if (!names.every((name) => typeof name === "string"))
      throw new SourceError("malformed", place, "one without a name");
    const following = typeof next === "string" ? `${path}&next_page=${encodeURIComponent(next)}` : null;
    return { names: names.map((name) => `${namespace}/${name}`), next: following };
  });
}
