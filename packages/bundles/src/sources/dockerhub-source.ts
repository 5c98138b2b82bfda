import type { KeyObject } from "node:crypto";
import type { Credentials, ReadCredentials } from "./credentials.js";
import { distributionSource } from "./distribution-source.js";
import type { FindProxy } from "./find-proxy.js";
import { asObject } from "./json-object.js";
import { readPages } from "./listing.js";
import type { Source } from "./source.js";
import { SourceError } from "./source-error.js";
import type { SourceLimits } from "./source-limits.js";
import { VendorApi } from "./vendor-api.js";

export interface DockerHubOptions {
  readonly organization: string;
  readonly credentials: ReadCredentials;
  readonly limits: SourceLimits;
  readonly signatureKeys?: readonly KeyObject[] | null;
  readonly hosts?: DockerHubHosts;
  readonly findProxy?: FindProxy;
}

/** Docker Hub is three hosts: one lists repositories, one holds them, one gives out tokens. All are its own. */
export interface DockerHubHosts {
  readonly api: string;
  readonly registry: string;
  readonly tokens: string;
}

const dockerHub: DockerHubHosts = {
  api: "https://hub.docker.com",
  registry: "https://registry-1.docker.io",
  tokens: "auth.docker.io",
};

/** The repositories of an organisation on Docker Hub, which lists none by the distribution protocol. */
export function dockerHubSource(options: DockerHubOptions): Source {
  const { organization, credentials, limits, hosts = dockerHub, findProxy, signatureKeys = null } = options;
  const api = new VendorApi(new URL(hosts.api), limits, findProxy);
  return distributionSource({
    url: new URL(hosts.registry),
    imageHost: "docker.io",
    credentials,
    tokenHosts: [hosts.tokens],
    tls: { ca: null, verify: true },
    limits,
    signatureKeys,
    ...(findProxy && { findProxy }),
    repositories: { kind: "vendor", list: (signal) => listOrganization(api, organization, credentials, signal) },
  });
}

async function* listOrganization(
  api: VendorApi,
  organization: string,
  credentials: ReadCredentials,
  signal: AbortSignal,
): AsyncGenerator<readonly string[]> {
  const authorization = await logIn(api, await credentials(), signal);
  const path = `/v2/namespaces/${encodeURIComponent(organization)}/repositories`;
  const place = `${api.url.host}${path}`;
  const { pages, repositories } = api.limits;
  let [count, found] = [0, 0];
  const read = async (page: string) => {
    const document = await api.get(`${path}?page_size=100&page=${page}`, authorization, signal);
    const { results, next } = document;
    const names = Array.isArray(results) ? results.map((result) => asObject(result)?.name) : [undefined];
    if (!names.every((name) => typeof name === "string") || !Number.isSafeInteger(document.count))
      throw new SourceError("malformed", place, "no list of repositories");
    count = Number(document.count);
    // Pages are counted here: where the next one is said to be does not matter.
    return {
      names: names.map((name) => `${organization}/${name}`),
      next: typeof next === "string" ? String(Number(page) + 1) : null,
    };
  };
  for await (const names of readPages("1", { pages, names: repositories }, place, read)) {
    found += names.length;
    yield names;
  }
  // What is deleted while the pages are read moves the rest up, and one that was at the head of a page is never seen.
  if (found < count)
    throw new SourceError("malformed", place, `${found} of ${count} repositories; it changed meanwhile`);
}

async function logIn(api: VendorApi, credentials: Credentials, signal: AbortSignal): Promise<string | undefined> {
  if (credentials.kind === "anonymous") return undefined;
  if (credentials.kind === "token") return `Bearer ${credentials.token}`;
  const { username: identifier, password: secret } = credentials;
  const { access_token: token } = await api.post("/v2/auth/token", { identifier, secret }, signal);
  if (typeof token !== "string" || !/^[\x21-\x7e]+$/.test(token))
    throw new SourceError("malformed", `${api.url.host}/v2/auth/token`, "no token");
  return `Bearer ${token}`;
}
