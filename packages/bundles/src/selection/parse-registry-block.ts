import { didYouMean, Secret } from "@osbert/server/yaml";
import { defaultRules } from "../reconcile/rules.js";
import type { CredentialsPlace, SourceConnection } from "../sources/open-source.js";
import {
  identities,
  isInClear,
  readName,
  readNamespaces,
  readPatterns,
  readRepositories,
  readTag,
  readUrl,
} from "./read-parts.js";
import type { NamedTags, Selection, TagRule } from "./selection.js";
import { type SettingFaults, SettingReader } from "./setting-reader.js";
import type { SourceConfig } from "./source-config.js";

/**
 * One item of `registry:` as the Ansible Service Broker took it. What it means there it means here, but for three things: a deny list alone
 * allows all the rest (F5-22), an address without a scheme is https, and what is wrong is a fault instead of nothing.
 */
export function parseRegistryBlock(value: unknown, path: string, faults: SettingFaults): SourceConfig | undefined {
  const reader = SettingReader.of(value, path, faults, keys);
  if (reader === undefined) return undefined;
  const name = readName(reader);
  const connection = readConnection(reader);
  const selection = readSelection(reader);
  if (reader.flag("fail_on_error") === true)
    faults.advise(
      reader.at("fail_on_error"),
      "has no effect: a source that fails holds no other one up, and removes nothing",
    );
  if (name === undefined || connection === undefined || selection === undefined) return undefined;
  const { onUnreachable, deleteAfterFailures, guard } = defaultRules;
  return {
    name,
    previousNames: [],
    enabled: true,
    connection,
    selection,
    intervalMs: 600_000,
    priority: 0,
    failover: false,
    onUnreachable,
    deleteAfterFailures,
    autoConfirm: guard.autoConfirm,
    identity: reader.choice("identity", identities) ?? "place",
  };
}

const keys = [
  ...["type", "name", "url", "org", "user", "pass", "token", "auth_type", "auth_name", "images", "tag", "white_list"],
  ...["black_list", "skip_verify_tls", "fail_on_error", "namespaces", "runner", "token_hosts", "identity"],
];

const types = ["dockerhub", "apiv2", "openshift", "partner_rhcc", "registry_proxy", "quay", "local_openshift"] as const;

/** What there was once, and what does its work now. */
const formerTypes: Readonly<Record<string, string>> = {
  rhcc: "searched by an API that is gone; use registry_proxy, and name the repositories under images",
  galaxy: "read an API of Ansible Galaxy that is gone; build the roles into bundles, and use apiv2 or registry_proxy",
  helm: "made bundles of charts, which are none; write a bundle whose actions run helm, and use apiv2, or a folder under sources",
  mock: "was for tests; use a source of type folder under sources",
};

function readConnection(reader: SettingReader): SourceConnection | undefined {
  const type = readType(reader);
  const credentials = readCredentials(reader);
  if (type === undefined || credentials === undefined) return undefined;
  if (type === "local_openshift") {
    warnUnused(reader, type, ["url", "org", "images", "token_hosts", "skip_verify_tls", ...credentialKeys]);
    const namespaces = reader.has("namespaces") ? readNamespaces(reader) : ["openshift"];
    return namespaces && { kind: "image streams", namespaces };
  }
  const org = reader.text("org", 255);
  const verify = reader.flag("skip_verify_tls") !== true;
  const url = readUrl(reader, { scheme: "https" });
  if (type === "dockerhub" || type === "quay") {
    if (org === undefined)
      return reader.has("org") ? undefined : reader.fault("org", "is missing: the organisation that is read");
    warnUnused(reader, type, type === "dockerhub" ? ["images", "url", "skip_verify_tls"] : ["images"]);
    if (type === "dockerhub") return { kind: "dockerhub", organization: org, credentials };
    return { kind: "quay", url: url ?? "https://quay.io", namespace: org, credentials, tls: { ca: null, verify } };
  }
  const images = readRepositories(reader, "images");
  const tokenHosts = reader.texts("token_hosts").map(({ text }) => text);
  if (type === "registry_proxy" && reader.list("images").length === 0)
    return reader.fault("images", "is missing: a registry_proxy lists nothing, so its repositories are named here");
  if (url === undefined)
    return reader.has("url") ? undefined : reader.fault("url", "is missing: the address of the registry");
  warnUnused(reader, type, ["org"]);
  if (isInClear(url, credentials))
    reader.faults.advise(reader.at("url"), "sends credentials over http, where all on the way can read them");
  return {
    kind: "distribution",
    url,
    repositories: type === "registry_proxy" ? { kind: "fixed", names: images } : { kind: "catalog", besides: images },
    credentials,
    tokenHosts,
    tls: { ca: null, verify },
  };
}

function readType(reader: SettingReader): (typeof types)[number] | undefined {
  const given = reader.text("type");
  if (given === undefined)
    return reader.has("type") ? undefined : reader.fault("type", `is missing: one of ${types.join(", ")}`);
  const former = Object.hasOwn(formerTypes, given) ? formerTypes[given] : undefined;
  if (former !== undefined) return reader.fault("type", `${given} ${former}`);
  const found = types.find((type) => type === given);
  return found ?? reader.fault("type", `must be one of ${types.join(", ")}${didYouMean(given, types)}`);
}

function warnUnused(reader: SettingReader, type: string, names: readonly string[]): void {
  const never = type === "local_openshift" ? ["runner"] : ["namespaces", "runner"];
  for (const name of [...names, ...never])
    if (reader.has(name)) reader.faults.advise(reader.at(name), `is not used by ${type}`);
}

const credentialKeys = ["user", "pass", "token", "auth_type", "auth_name"];

function readCredentials(reader: SettingReader): CredentialsPlace | undefined {
  const type = reader.choice("auth_type", ["config", "file", "secret"]);
  if (type === "secret")
    return reader.fault(
      "auth_type",
      "secret is read by no one here: mount the secret as a file with username and password, and write file",
    );
  if (type === "file") {
    const path = reader.text("auth_name");
    if (path !== undefined) return { kind: "file", path };
    return reader.has("auth_name")
      ? undefined
      : reader.fault("auth_name", "is missing: the file with username and password");
  }
  const [user, pass, token] = ["user", "pass", "token"].map((name) => reader.text(name));
  if (token !== undefined) return { kind: "token", token: inline(token) };
  if (user !== undefined && pass !== undefined)
    return { kind: "basic", username: inline(user), password: inline(pass) };
  if (user === undefined && pass === undefined) return { kind: "anonymous" };
  return reader.fault(user === undefined ? "user" : "pass", "is missing: user and pass go together");
}

function inline(text: string): { readonly kind: "text"; readonly text: Secret } {
  return { kind: "text", text: new Secret(text) };
}

function readSelection(reader: SettingReader): Selection {
  const allow = readPatterns(reader, "white_list", "part");
  const deny = readPatterns(reader, "black_list", "part");
  return { default: reader.list("white_list").length > 0 ? "deny" : "allow", allow, deny, ...readTags(reader) };
}

function readTags(reader: SettingReader): Pick<Selection, "tags" | "named"> {
  const raw = reader.raw("tag");
  const isGroup = typeof raw === "object";
  const group = isGroup
    ? SettingReader.of(raw, reader.at("tag"), reader.faults, ["default", "named", "onlyNamed"])
    : undefined;
  const value = isGroup ? group?.raw("default") : raw;
  const path = isGroup ? `${reader.at("tag")}.default` : reader.at("tag");
  const tag = value === undefined ? "latest" : readTag(value, path, reader.faults);
  const tags: readonly TagRule[] = tag === undefined ? [] : [{ kind: "tag", channel: "", tag }];
  return { tags, named: group === undefined ? [] : readNamed(group) };
}

/** `- hello-apb: [v1.0, v2.0]` */
function readNamed(group: SettingReader): readonly NamedTags[] {
  const only = group.flag("onlyNamed") ?? false;
  return group.list("named").flatMap((item, at) => {
    const path = `${group.at("named")}[${at}]`;
    const isGroup = typeof item === "object" && item !== null && !Array.isArray(item);
    if (!isGroup) return group.faults.fault(path, "must be a repository with a list of its tags") ?? [];
    return Object.keys(item).flatMap((repository): readonly NamedTags[] => {
      const reader = SettingReader.of(item, path, group.faults, Object.keys(item));
      const tags = (reader?.list(repository) ?? []).flatMap((value, tagAt): readonly TagRule[] => {
        const tag = readTag(value, `${reader?.at(repository)}[${tagAt}]`, group.faults);
        return tag === undefined ? [] : [{ kind: "tag", channel: tag, tag }];
      });
      return [{ repository, tags, only }];
    });
  });
}
