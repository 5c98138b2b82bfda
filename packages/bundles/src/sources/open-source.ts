import type { KeyObject } from "node:crypto";
import { resolve } from "node:path";
import type { Secret } from "@osbert/server/yaml";
import { parse } from "yaml";
import type { Credentials, ReadCredentials } from "./credentials.js";
import { distributionSource, type RepositoryList } from "./distribution-source.js";
import { dockerHubSource } from "./dockerhub-source.js";
import { findProxy } from "./find-proxy.js";
import { folderSource } from "./folder-source.js";
import type { TlsOptions } from "./http-client.js";
import { asObject } from "./json-object.js";
import { type PushedBundles, pushSource } from "./push-source.js";
import { quaySource } from "./quay-source.js";
import { parseSignatureKey } from "./signature-keys.js";
import type { Source } from "./source.js";
import { SourceError } from "./source-error.js";
import { defaultSourceLimits, type SourceLimits } from "./source-limits.js";

/** How a source is reached: what the settings say, without a secret in it that could be seen. */
export type SourceConnection =
  | {
      readonly kind: "distribution";
      readonly url: string;
      readonly repositories: Exclude<RepositoryList, { readonly kind: "vendor" }>;
      readonly credentials: CredentialsPlace;
      readonly tokenHosts: readonly string[];
      readonly tls: TlsPlace;
      readonly signatures?: SignaturePlace;
    }
  | {
      readonly kind: "dockerhub";
      readonly organization: string;
      readonly credentials: CredentialsPlace;
      readonly signatures?: SignaturePlace;
    }
  | {
      readonly kind: "quay";
      readonly url: string;
      readonly namespace: string;
      readonly credentials: CredentialsPlace;
      readonly tls: TlsPlace;
      readonly signatures?: SignaturePlace;
    }
  /** Image streams of the cluster that the program has. */
  | { readonly kind: "image streams"; readonly namespaces: readonly string[] }
  | { readonly kind: "folder"; readonly path: string }
  | { readonly kind: "push" };

export interface TlsPlace {
  /** A file in PEM with authorities that are trusted besides the usual ones. */
  readonly ca: string | null;
  readonly verify: boolean;
}

/** Whose signatures a source requires of all that it offers (F5-38). Not there: none are. */
export interface SignaturePlace {
  /** Files with a public key each, in PEM. One of them is enough: so keys are exchanged. */
  readonly keys: readonly string[];
}

/** Where credentials are. */
export type CredentialsPlace =
  | { readonly kind: "anonymous" }
  | { readonly kind: "basic"; readonly username: SecretPlace; readonly password: SecretPlace }
  | { readonly kind: "token"; readonly token: SecretPlace }
  /** A file in YAML with `username` and `password`, or with `token`. */
  | { readonly kind: "file"; readonly path: string };

export type SecretPlace =
  | { readonly kind: "text"; readonly text: Secret }
  | { readonly kind: "file"; readonly path: string }
  | { readonly kind: "environment"; readonly name: string };

/** What a source needs of the program that opens it. */
export interface SourcePorts {
  readonly readFile: (path: string) => Promise<string>;
  readonly environment: (name: string) => string | undefined;
  readonly pushed: PushedBundles;
  /** Opens image streams, whose cluster this room does not know: `imageStreamSource` of @osbert/kubernetes. Not there: none can be read. */
  readonly imageStreams?: (namespaces: readonly string[]) => Promise<Source>;
  /** Relative paths are looked for from here. */
  readonly folder: string;
  readonly limits?: Partial<SourceLimits>;
}

/** Opens a source. Nothing is asked of it yet. A file with authorities or with a key that cannot be read is thrown. */
export async function openSource(connection: SourceConnection, ports: SourcePorts): Promise<Source> {
  const limits = { ...defaultSourceLimits, ...ports.limits };
  const proxies = findProxy(ports.environment);
  switch (connection.kind) {
    case "distribution": {
      const url = new URL(connection.url);
      const { repositories, tokenHosts } = connection;
      const credentials = credentialsReader(connection.credentials, url.host, ports);
      return distributionSource({
        url,
        imageHost: url.host,
        repositories,
        tokenHosts,
        credentials,
        limits,
        findProxy: proxies,
        tls: await readTls(connection.tls, ports),
        signatureKeys: await readSignatureKeys(connection.signatures, ports),
      });
    }
    case "dockerhub": {
      const credentials = credentialsReader(connection.credentials, "docker.io", ports);
      const signatureKeys = await readSignatureKeys(connection.signatures, ports);
      const { organization } = connection;
      return dockerHubSource({ organization, credentials, limits, signatureKeys, findProxy: proxies });
    }
    case "quay": {
      const url = new URL(connection.url);
      const credentials = credentialsReader(connection.credentials, url.host, ports);
      const tls = await readTls(connection.tls, ports);
      const signatureKeys = await readSignatureKeys(connection.signatures, ports);
      const { namespace } = connection;
      return quaySource({ url, namespace, credentials, tls, limits, signatureKeys, findProxy: proxies });
    }
    case "image streams":
      if (ports.imageStreams === undefined)
        throw new TypeError("a source of image streams needs a cluster: pass imageStreams to whoever opens it");
      return ports.imageStreams(connection.namespaces);
    case "folder":
      return folderSource(resolve(ports.folder, connection.path), limits);
    case "push":
      return pushSource(ports.pushed);
  }
}

export async function readTls(
  { ca, verify }: TlsPlace,
  { readFile, folder }: Pick<SourcePorts, "readFile" | "folder">,
): Promise<TlsOptions> {
  return { ca: ca === null ? null : await readFile(resolve(folder, ca)), verify };
}

async function readSignatureKeys(
  place: SignaturePlace | undefined,
  { readFile, folder }: Pick<SourcePorts, "readFile" | "folder">,
): Promise<readonly KeyObject[] | null> {
  if (place === undefined) return null;
  return Promise.all(place.keys.map(async (path) => parseSignatureKey(await readFile(resolve(folder, path)), path)));
}

type SecretPorts = Pick<SourcePorts, "readFile" | "environment" | "folder">;

/** Secrets that cannot be had are a failure of the source, not of the program: others are read all the same. */
export function credentialsReader(place: CredentialsPlace, host: string, ports: SecretPorts): ReadCredentials {
  return async () => {
    try {
      return await readCredentials(place, ports);
    } catch (error) {
      throw new SourceError("unauthorized", host, error instanceof Error ? reasonOf(error) : null, { cause: error });
    }
  };
}

/** Why the credentials of a source cannot be had now, without any of them; `null`: they can, or it needs none. */
export async function credentialsProblem(connection: SourceConnection, ports: SecretPorts): Promise<string | null> {
  if (!("credentials" in connection)) return null;
  try {
    await readCredentials(connection.credentials, ports);
    return null;
  } catch (error) {
    return error instanceof Error ? reasonOf(error) : "they cannot be read";
  }
}

async function readCredentials(place: CredentialsPlace, ports: SecretPorts): Promise<Credentials> {
  if (place.kind === "anonymous") return place;
  if (place.kind === "token") return { kind: "token", token: checkToken(await readSecret(place.token, ports)) };
  if (place.kind === "basic") {
    const [username, password] = await Promise.all(
      [place.username, place.password].map((each) => readSecret(each, ports)),
    );
    return { kind: "basic", username: username ?? "", password: password ?? "" };
  }
  const { username, password, token } = parseCredentials(await ports.readFile(resolve(ports.folder, place.path)));
  if (typeof token === "string") return { kind: "token", token: checkToken(token) };
  if (typeof username === "string" && typeof password === "string") return { kind: "basic", username, password };
  throw new Unusable(`${place.path} has neither username and password nor token, as texts`);
}

/** It becomes part of a header. */
function checkToken(token: string): string {
  if (!/^[\x21-\x7e]+$/.test(token)) throw new Unusable("the token has letters that no token has");
  return token;
}

/** The error of a parser quotes what it could not read. */
function parseCredentials(text: string): { readonly [name: string]: unknown } {
  try {
    return asObject(parse(text, { maxAliasCount: 0 })) ?? {};
  } catch {
    return {};
  }
}

async function readSecret(place: SecretPlace, { readFile, environment, folder }: SecretPorts): Promise<string> {
  if (place.kind === "text") return place.text.reveal();
  if (place.kind === "file") return (await readFile(resolve(folder, place.path))).trim();
  const value = environment(place.name);
  if (value === undefined || value === "") throw new Unusable(`${place.name} is not in the environment`);
  return value;
}

class Unusable extends Error {}

/** What a file system says names the file; anything else could hold the secret. */
function reasonOf(error: Error): string {
  if (error instanceof Unusable) return error.message;
  return "code" in error ? `their file cannot be read: ${String(error.code)}` : "they cannot be read";
}
