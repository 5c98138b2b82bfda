import { RE2JS } from "re2js";
import { parse, Range, type SemVer } from "semver";
import { isRepositoryName, isTag } from "../sources/names.js";
import type { NamePattern, Selection, TagRule } from "./selection.js";

/** A selection that can be asked. Pure, and quick for any name. */
export interface CompiledSelection {
  /** Why a repository is not read, for a person; `null`: it is. */
  readonly refusal: (repository: string) => string | null;
  /** What is read of a repository; no channel twice. */
  readonly channels: (repository: string) => readonly CompiledChannel[];
}

export type CompiledChannel =
  | { readonly kind: "tag"; readonly channel: string; readonly tag: string }
  /** `null`: no tag is of the range. */
  | { readonly kind: "range"; readonly channel: string; readonly pick: (tags: readonly string[]) => string | null };

/** The patterns and ranges have been checked: what does not compile is thrown. */
export function compileSelection(selection: Selection): CompiledSelection {
  const allow = selection.allow.map(compilePattern);
  const deny = selection.deny.map(compilePattern);
  const common = selection.tags.map(compileRule);
  const named = selection.named.map(({ repository, only, tags }) => ({
    repository,
    only,
    channels: tags.map(compileRule),
  }));
  return {
    refusal(repository) {
      if (!isRepositoryName(repository)) return "its name is none that a registry can be asked for";
      const denied = deny.find(({ matches }) => matches(repository));
      if (denied !== undefined) return `denied by ${denied.pattern}`;
      if (selection.default === "allow" || allow.some(({ matches }) => matches(repository))) return null;
      return "allowed by no pattern";
    },
    channels(repository) {
      const own = named.filter((each) => repository === each.repository || repository.endsWith(`/${each.repository}`));
      const rules = [...own.flatMap(({ channels }) => channels), ...(own.some(({ only }) => only) ? [] : common)];
      const defaultTag = rules.find(({ channel }) => channel === "");
      return rules.filter((rule, at) => {
        const isFirst = rules.findIndex(({ channel }) => channel === rule.channel) === at;
        // The default tag, named once more, is no second service.
        const isDefault =
          rule !== defaultTag && rule.kind === "tag" && defaultTag?.kind === "tag" && rule.tag === defaultTag.tag;
        return isFirst && !isDefault;
      });
    },
  };
}

/** Throws what is wrong with a pattern. */
export function compilePattern({ pattern, match }: NamePattern): {
  pattern: string;
  matches: (name: string) => boolean;
} {
  const compiled = RE2JS.compile(pattern);
  return { pattern, matches: (name) => (match === "whole" ? compiled.matches(name) : compiled.matcher(name).find()) };
}

function compileRule(rule: TagRule): CompiledChannel {
  if (rule.kind === "tag") return rule;
  const range = new Range(rule.range, { includePrerelease: rule.prereleases });
  return { kind: "range", channel: rule.channel, pick: (tags) => newestTag(tags, range, rule.prereleases) };
}

/**
 * The newest of those that are semantic versions, with or without a `v`. Unless they are asked for, pre-releases do not count, even if the
 * range names one: `^1.0.0-rc.1` then begins with 1.0.0.
 */
function newestTag(tags: readonly string[], range: Range, prereleases: boolean): string | null {
  let newest: { readonly tag: string; readonly version: SemVer } | null = null;
  for (const tag of tags.filter(isTag)) {
    const version = parse(tag);
    if (version === null || (!prereleases && version.prerelease.length > 0) || !range.test(version)) continue;
    const order = newest === null ? 1 : version.compare(newest.version);
    // Of two tags of one version (`1.2.0`, `v1.2.0`) it is always the same one, whatever order they are listed in.
    if (newest === null || order > 0 || (order === 0 && tag < newest.tag)) newest = { tag, version };
  }
  return newest?.tag ?? null;
}
