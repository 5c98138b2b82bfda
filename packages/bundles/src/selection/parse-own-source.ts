import { didYouMean, Secret } from "@osbert/server/yaml";
import { defaultRules, leastUnreachableMs, type Rules } from "../reconcile/rules.js";
import { folderTag } from "../sources/folder-source.js";
import { asObject } from "../sources/json-object.js";
import type {
  CredentialsPlace,
  SecretPlace,
  SignaturePlace,
  SourceConnection,
  TlsPlace,
} from "../sources/open-source.js";
import {
  identities,
  isInClear,
  isSourceName,
  nameForm,
  pushName,
  readName,
  readNamespaces,
  readPatterns,
  readRange,
  readRepositories,
  readTag,
  readUrl,
} from "./read-parts.js";
import type { NamedTags, Selection, TagRule } from "./selection.js";
import { type SettingFaults, SettingReader } from "./setting-reader.js";
import type { SourceConfig } from "./source-config.js";

/**
 * One item of `sources:`. Stricter than the predecessor's form: what is not said is not guessed, patterns describe the whole name of a
 * repository, secrets are in files or in the environment.
 */
export function parseOwnSource(value: unknown, path: string, faults: SettingFaults): SourceConfig | undefined {
  const given = asObject(value)?.type;
  const type = types.find((each) => each === given);
  const reader = SettingReader.of(value, path, faults, [
    ...ownKeys,
    ...(type === "push" ? [] : listKeys),
    ...(type === undefined ? allKeys : keysOf[type]),
  ]);
  if (reader === undefined) return undefined;
  if (type === undefined) {
    const advice = typeof given === "string" ? didYouMean(given, types) : "";
    return reader.fault("type", `must be one of ${types.join(", ")}${advice}`);
  }
  const name = type === "push" && !reader.has("name") ? pushName : readName(reader, type === "push");
  const connection = readConnection(type, reader);
  const selection = readSelection(type, reader);
  // It lies in the broker's own journal: to look is cheap, and what has its time is gone within it.
  const rules = readRules(reader, type === "push" ? 60_000 : 600_000);
  if (name === undefined || connection === undefined || selection === undefined) return undefined;
  return { name, connection, selection, ...rules };
}

const types = ["distribution", "images", "dockerhub", "quay", "imagestreams", "folder", "push"] as const;
type Type = (typeof types)[number];

const ownKeys = ["name", "type", "enabled", "interval", "priority", "failover", "previousNames", "identity"];
/** Of what is listed by others, and may be out of reach. */
const listKeys = ["default", "allow", "deny", "onUnreachable", "deleteAfterFailures", "autoConfirm"];
const tagKeys = ["tag", "channels", "named"];
const registryKeys = ["credentials", "signatures", ...tagKeys];
const hostKeys = ["url", "tls", "allowHttp", ...registryKeys];
const keysOf: Readonly<Record<Type, readonly string[]>> = {
  distribution: [...hostKeys, "tokenHosts", "repositories"],
  images: [...hostKeys, "tokenHosts", "repositories"],
  dockerhub: ["organization", ...registryKeys],
  quay: [...hostKeys, "namespace"],
  imagestreams: ["namespaces", ...tagKeys],
  folder: ["path"],
  push: [],
};
const allKeys = [...new Set(Object.values(keysOf).flat())];

/** Every key that a source of some type can have. */
export const ownSourceKeys: readonly string[] = [...ownKeys, ...listKeys, ...allKeys];

function readConnection(type: Type, reader: SettingReader): SourceConnection | undefined {
  if (type === "push") return { kind: "push" };
  if (type === "folder") {
    const path = demand(reader, "path", "the folder with a folder for each bundle");
    return path === undefined ? undefined : { kind: "folder", path };
  }
  if (type === "imagestreams") {
    const namespaces = readNamespaces(reader);
    return namespaces && { kind: "image streams", namespaces };
  }
  const credentials = readCredentials(reader);
  const signatures = readSignatures(reader);
  const signed = signatures && { signatures };
  if (type === "dockerhub") {
    const organization = demand(reader, "organization", "whose repositories are read");
    return organization === undefined || credentials === undefined
      ? undefined
      : { kind: "dockerhub", organization, credentials, ...signed };
  }
  const tls = readTls(reader);
  const url = type === "quay" && !reader.has("url") ? "https://quay.io" : readDemandedUrl(reader);
  const repositories = readRepositories(reader, "repositories");
  const tokenHosts = reader.texts("tokenHosts").flatMap(({ text, path }) => {
    return /^[a-z0-9.-]+(:[0-9]{1,5})?$/.test(text)
      ? [text]
      : (reader.faults.fault(path, "must be a host, such as auth.example:8443") ?? []);
  });
  if (type === "images" && reader.list("repositories").length === 0)
    reader.fault("repositories", "is missing: what is read of a registry that lists nothing");
  const namespace = type === "quay" ? demand(reader, "namespace", "whose repositories are read") : undefined;
  if (url === undefined || credentials === undefined || tls === undefined) return undefined;
  if (isInClear(url, credentials) && reader.flag("allowHttp") !== true)
    return reader.fault(
      "url",
      "would send credentials over http, where all on the way can read them; use https, or write allowHttp: true",
    );
  if (type === "quay")
    return namespace === undefined ? undefined : { kind: "quay", url, namespace, credentials, tls, ...signed };
  return {
    kind: "distribution",
    url,
    repositories:
      type === "images" ? { kind: "fixed", names: repositories } : { kind: "catalog", besides: repositories },
    credentials,
    tokenHosts,
    tls,
    ...signed,
  };
}

function demand(reader: SettingReader, name: string, meaning: string): string | undefined {
  return reader.has(name) ? reader.text(name) : reader.fault(name, `is missing: ${meaning}`);
}

function readDemandedUrl(reader: SettingReader): string | undefined {
  return reader.has("url")
    ? readUrl(reader, { scheme: null })
    : reader.fault("url", "is missing: the address of the registry");
}

function readTls(reader: SettingReader): TlsPlace | undefined {
  if (!reader.has("tls")) return { ca: null, verify: true };
  const group = SettingReader.of(reader.raw("tls"), reader.at("tls"), reader.faults, ["ca", "verify"]);
  return group && { ca: group.text("ca") ?? null, verify: group.flag("verify") ?? true };
}

/** `{ keys: [FILE], policy: require }`. What is turned off leaves no trace, as if it had never been written. */
function readSignatures(reader: SettingReader): SignaturePlace | undefined {
  if (!reader.has("signatures")) return undefined;
  const group = SettingReader.of(reader.raw("signatures"), reader.at("signatures"), reader.faults, ["keys", "policy"]);
  const policy = group?.choice("policy", ["require", "off"]) ?? "require";
  const keys = group?.texts("keys").map(({ text }) => text) ?? [];
  if (group?.list("keys").length === 0) group.fault("keys", "is missing: files with public keys in PEM");
  if (keys.length > mostKeys) return group?.fault("keys", `must be at most ${mostKeys}`);
  return policy === "require" ? { keys } : undefined;
}

const mostKeys = 16;

/** `{ username, password }` or `{ token }`, each `{ file }` or `{ env }`; or `{ file }` with all of them in it. */
function readCredentials(reader: SettingReader): CredentialsPlace | undefined {
  if (!reader.has("credentials")) return { kind: "anonymous" };
  const keys = ["username", "password", "token", "file"];
  const group = SettingReader.of(reader.raw("credentials"), reader.at("credentials"), reader.faults, keys);
  if (group === undefined) return undefined;
  const file = group.text("file");
  if (file !== undefined) return { kind: "file", path: file };
  const token = readSecret(group, "token", false);
  if (token !== undefined) return { kind: "token", token };
  // A name is no secret, and may be written down.
  const username = readSecret(group, "username", true);
  const password = readSecret(group, "password", false);
  if (username !== undefined && password !== undefined) return { kind: "basic", username, password };
  const isHalf = !keys.some((key) => group.has(key)) || group.has("username") !== group.has("password");
  if (isHalf) reader.fault("credentials", "must be username and password, or token, or file");
  return undefined;
}

function readSecret(group: SettingReader, name: string, mayBeText: boolean): SecretPlace | undefined {
  if (!group.has(name)) return undefined;
  const raw = group.raw(name);
  if (typeof raw === "string") {
    if (mayBeText) return { kind: "text", text: new Secret(raw) };
    return group.fault(name, "must not stand here: write { file: PATH } or { env: NAME }");
  }
  if (asObject(raw)?.environment !== undefined) return group.fault(name, "says environment; write { env: NAME }");
  const place = SettingReader.of(raw, group.at(name), group.faults, ["file", "env"]);
  const [file, environment] = [place?.text("file"), place?.text("env")];
  if (file !== undefined && environment === undefined) return { kind: "file", path: file };
  if (environment !== undefined && file === undefined) return { kind: "environment", name: environment };
  return group.fault(name, "must be { file: PATH } or { env: NAME }");
}

function readSelection(type: Type, reader: SettingReader): Selection | undefined {
  // Who pushes has said what is wanted.
  if (type === "push") return { default: "allow", allow: [], deny: [], tags: [], named: [] };
  const allow = readPatterns(reader, "allow", "whole");
  const deny = readPatterns(reader, "deny", "whole");
  // What was named one by one, or put into a folder, is meant.
  const isNamed = type === "folder" || type === "images";
  const rest = reader.choice("default", ["allow", "deny"]) ?? (isNamed && !reader.has("allow") ? "allow" : undefined);
  if (rest === undefined && !reader.has("default"))
    reader.fault("default", "is missing: allow or deny, for repositories that no pattern names");
  const tags = type === "folder" ? [{ kind: "tag", channel: "", tag: folderTag } as const] : readTags(reader, true);
  const named = reader
    .list("named")
    .flatMap((item, at) => readNamed(item, `${reader.at("named")}[${at}]`, reader.faults));
  return rest && { default: rest, allow, deny, tags, named };
}

function readTags(reader: SettingReader, isDefaultMeant: boolean): readonly TagRule[] {
  const raw = reader.raw("tag");
  const rule = raw === undefined ? undefined : readRule(raw, "", reader.at("tag"), reader.faults);
  const latest: readonly TagRule[] =
    isDefaultMeant && raw === undefined ? [{ kind: "tag", channel: "", tag: "latest" }] : [];
  const channels = reader
    .list("channels")
    .map((item, at) => readChannel(item, `${reader.at("channels")}[${at}]`, reader.faults));
  return [...latest, rule, ...channels].filter((each) => each !== undefined);
}

/** A tag, or `{ range, prereleases }`. */
function readRule(value: unknown, channel: string, path: string, faults: SettingFaults): TagRule | undefined {
  if (typeof value === "object") {
    const group = SettingReader.of(value, path, faults, ["range", "prereleases"]);
    return group && readRange(group, channel);
  }
  const tag = readTag(value, path, faults);
  return tag === undefined ? undefined : { kind: "tag", channel, tag };
}

/** A tag, which is its own name, or `{ name, tag }`, or `{ name, range, prereleases }`. */
function readChannel(value: unknown, path: string, faults: SettingFaults): TagRule | undefined {
  if (typeof value !== "object") {
    const tag = readTag(value, path, faults);
    return tag === undefined ? undefined : { kind: "tag", channel: tag, tag };
  }
  const group = SettingReader.of(value, path, faults, ["name", "tag", "range", "prereleases"]);
  if (group === undefined) return undefined;
  const name = group.has("name")
    ? readTag(group.raw("name"), group.at("name"), faults)
    : group.fault("name", "is missing: ids are made of it");
  if (name === undefined) return undefined;
  if (group.has("tag") === group.has("range")) return faults.fault(path, "must have either tag or range");
  return group.has("tag") ? readRule(group.raw("tag"), name, group.at("tag"), faults) : readRange(group, name);
}

function readNamed(value: unknown, path: string, faults: SettingFaults): readonly NamedTags[] {
  const group = SettingReader.of(value, path, faults, ["repository", "only", "tag", "channels"]);
  if (group === undefined) return [];
  const repository = demand(group, "repository", "whose tags these are");
  const tags = readTags(group, false);
  return repository === undefined ? [] : [{ repository, tags, only: group.flag("only") ?? false }];
}

function readRules(reader: SettingReader, intervalMs: number): Omit<SourceConfig, "name" | "connection" | "selection"> {
  const previousNames = reader.texts("previousNames").flatMap(({ text, path }) => {
    return isSourceName(text) ? [text] : (reader.faults.fault(path, nameForm) ?? []);
  });
  return {
    previousNames,
    enabled: reader.flag("enabled") ?? true,
    intervalMs: reader.durationMs("interval", 10_000, "10s") ?? intervalMs,
    priority: reader.number("priority", -1_000, 1_000) ?? 0,
    failover: reader.flag("failover") ?? false,
    onUnreachable: readOnUnreachable(reader) ?? defaultRules.onUnreachable,
    deleteAfterFailures: reader.number("deleteAfterFailures", 1, 1_000_000) ?? null,
    autoConfirm: reader.choice("autoConfirm", ["never", "unless all", "always"]) ?? defaultRules.guard.autoConfirm,
    identity: reader.choice("identity", identities) ?? "place",
  };
}

function readOnUnreachable(reader: SettingReader): Rules["onUnreachable"] | undefined {
  const raw = reader.raw("onUnreachable");
  if (raw === undefined || raw === "keep") return undefined;
  const group = SettingReader.of(raw, reader.at("onUnreachable"), reader.faults, ["hideAfter", "retireAfter"]);
  if (group === undefined) return undefined;
  if (group.has("hideAfter") === group.has("retireAfter"))
    return reader.fault("onUnreachable", "must be keep, { hideAfter: 7d } or { retireAfter: 30d }");
  const name = group.has("hideAfter") ? "hideAfter" : "retireAfter";
  const ms = group.durationMs(
    name,
    leastUnreachableMs,
    "1h, or a registry that is started anew would be taken for one that is gone",
  );
  return ms === undefined ? undefined : { kind: name === "hideAfter" ? "hide after" : "retire after", ms };
}
