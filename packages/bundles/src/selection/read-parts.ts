import { RE2JSSyntaxException } from "re2js";
import { validRange } from "semver";
import { isRepositoryName, isTag } from "../sources/names.js";
import type { CredentialsPlace } from "../sources/open-source.js";
import { compilePattern } from "./compile-selection.js";
import type { NamePattern, TagRule } from "./selection.js";
import { type SettingFaults, type SettingReader, textOf } from "./setting-reader.js";

/** What a source of what is pushed is called, unless it has another name. */
export const pushName = "push";

/** Ids are made of it, and it stands in addresses and labels. */
export function readName(reader: SettingReader, isPush = false): string | undefined {
  if (!reader.has("name"))
    return reader.fault("name", "is missing; it is what ids are made of, so choose one that can stay");
  const name = reader.text("name");
  if (name === undefined) return undefined;
  if (!isSourceName(name)) return reader.fault("name", nameForm);
  return name === pushName && !isPush
    ? reader.fault("name", `${pushName} is for a source of type push; choose another name`)
    : name;
}

/** What ids are made of: see `Rules`. */
export const identities = ["place", "legacy"] as const;

export const nameForm = "must be 1 to 63 lower-case letters, digits and dashes, with no dash at an end";

export function isSourceName(name: string): boolean {
  return /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/.test(name);
}

export interface UrlForm {
  /** What stands before an address without a scheme; `null`: it must have one. */
  readonly scheme: "https" | null;
}

/** The address of a registry: scheme, host and port. What else stands in it, such as a password, is never repeated. */
export function readUrl(reader: SettingReader, { scheme }: UrlForm): string | undefined {
  const given = reader.text("url");
  if (given === undefined) return undefined;
  const hasScheme = /^[a-z][a-z0-9+.-]*:\/\//i.test(given);
  if (!hasScheme && scheme !== null) reader.faults.advise(reader.at("url"), `has no scheme; ${scheme} is used`);
  const text = hasScheme || scheme === null ? given : `${scheme}://${given}`;
  if (!URL.canParse(text)) return reader.fault("url", "must be an address such as https://registry.example");
  const url = new URL(text);
  if (url.protocol !== "https:" && url.protocol !== "http:")
    return reader.fault("url", "must begin with https:// or http://");
  if (url.username !== "" || url.password !== "")
    return reader.fault("url", "must be without credentials; they have settings of their own");
  if (url.pathname !== "/" || url.search !== "" || url.hash !== "")
    return reader.fault("url", "must be scheme, host and port alone; repositories are named by patterns");
  return url.origin;
}

/** Whether credentials for it would be readable on the way. */
export function isInClear(url: string, credentials: CredentialsPlace): boolean {
  const { protocol, hostname } = new URL(url);
  return (
    protocol === "http:" && credentials.kind !== "anonymous" && !["localhost", "127.0.0.1", "[::1]"].includes(hostname)
  );
}

export function readPatterns(reader: SettingReader, name: string, match: NamePattern["match"]): readonly NamePattern[] {
  return reader.texts(name).flatMap(({ text, path }) => {
    if (text.length > longestPattern)
      return reader.faults.fault(path, `must have at most ${longestPattern} letters`) ?? [];
    try {
      compilePattern({ pattern: text, match });
    } catch (error) {
      if (!(error instanceof RE2JSSyntaxException)) throw error;
      const why = error.getDescription();
      return (
        reader.faults.fault(
          path,
          `is not a pattern (${why}); patterns are RE2's, without look-around and back references`,
        ) ?? []
      );
    }
    if (/(^|\/)\*/.test(text)) reader.faults.advise(path, "is a regular expression: any letters are .*, not *");
    return [{ pattern: text, match }];
  });
}

const longestPattern = 1_000;

export function readRepositories(reader: SettingReader, name: string): readonly string[] {
  return reader.texts(name).flatMap(({ text, path }) => {
    if (isRepositoryName(text)) return [text];
    const [, plain = "", tag = ""] = /^(.+):([^:/]+)$/.exec(text) ?? [];
    const advice = isRepositoryName(plain) ? `; write ${plain}, and ${tag} as its tag` : "";
    return reader.faults.fault(path, `must be a repository without host and tag, such as team/postgres${advice}`) ?? [];
  });
}

/** Namespaces of a cluster, at least one. */
export function readNamespaces(reader: SettingReader): readonly string[] | undefined {
  const raw = reader.raw("namespaces") ?? [];
  if (Array.isArray(raw) && raw.length === 0)
    return reader.fault("namespaces", "is missing: namespaces whose image streams are read");
  const namespaces = reader.texts("namespaces").flatMap(({ text, path }) => {
    // Names of sources have the form of those of namespaces.
    return isSourceName(text) ? [text] : (reader.faults.fault(path, `is no namespace: it ${nameForm}`) ?? []);
  });
  return [...new Set(namespaces)];
}

export function readTag(value: unknown, path: string, faults: SettingFaults): string | undefined {
  const tag = textOf(value, path, faults);
  if (tag === undefined || isTag(tag)) return tag;
  const advice = validRange(tag) === null ? "" : `; for a range of versions write { range: "${tag}" }`;
  return faults.fault(path, `must be a tag: letters, digits, dots, dashes and underscores${advice}`);
}

/** `{ range, prereleases }` of a channel. */
export function readRange(reader: SettingReader, channel: string): TagRule | undefined {
  const range = reader.text("range", 256);
  const prereleases = reader.flag("prereleases") ?? false;
  if (range === undefined) return reader.has("range") ? undefined : reader.fault("range", "is missing");
  if (validRange(range) === null)
    return reader.fault("range", "must be a range of semantic versions, such as ^1 or >=2.1 <3");
  return { kind: "range", channel, range, prereleases };
}
