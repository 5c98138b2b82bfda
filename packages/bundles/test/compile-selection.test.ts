import { expect, test } from "vitest";
import { compileSelection } from "../src/selection/compile-selection.js";
import type { Selection, TagRule } from "../src/selection/selection.js";

const latest: TagRule = { kind: "tag", channel: "", tag: "latest" };
const everything: Selection = { default: "allow", allow: [], deny: [], tags: [latest], named: [] };

function pick(range: string, prereleases: boolean, tags: readonly string[]): string | null {
  const [channel] = compileSelection({
    ...everything,
    tags: [{ kind: "range", channel: "", range, prereleases }],
  }).channels("a");
  return channel?.kind === "range" ? channel.pick(tags) : "no range";
}

function channelsOf(selection: Selection, repository: string): readonly string[] {
  return compileSelection(selection)
    .channels(repository)
    .map(({ channel }) => channel)
    .sort();
}

test("F5-66: a named tag is a channel of its own, and the default one has no name", () => {
  const named = [{ repository: "team/a", only: false, tags: [{ kind: "tag", channel: "v1", tag: "v1" }] as const }];
  expect(channelsOf({ ...everything, named }, "team/a")).toEqual(["", "v1"]);
  expect(channelsOf(everything, "team/a")).toEqual([""]);
});

test("F5-67: the default is read besides named tags unless they are to be the only ones", () => {
  const tags = [{ kind: "tag", channel: "v1", tag: "v1" }] as const;
  expect(channelsOf({ ...everything, named: [{ repository: "a", only: true, tags }] }, "team/a")).toEqual(["v1"]);
  expect(channelsOf({ ...everything, named: [{ repository: "a", only: true, tags }] }, "team/aa")).toEqual([""]);
});

test("F5-68: the default tag that is named once more is no second service, nor is a channel that is named twice", () => {
  const tags = [
    { kind: "tag", channel: "latest", tag: "latest" },
    { kind: "tag", channel: "v1", tag: "v1" },
    { kind: "tag", channel: "v1", tag: "v1" },
  ] as const;
  expect(channelsOf({ ...everything, named: [{ repository: "a", only: false, tags }] }, "a")).toEqual(["", "v1"]);
});

test("a tag that is named for a repository is its default instead of the common one", () => {
  const named = [{ repository: "a", only: false, tags: [{ kind: "tag", channel: "", tag: "stable" }] as const }];
  expect(compileSelection({ ...everything, named }).channels("a")).toEqual([
    { kind: "tag", channel: "", tag: "stable" },
  ]);
});

test("F5-69: a range is its newest tag; other tags do not count, and pre-releases only if they are asked for", () => {
  const tags = [
    "latest",
    "1.2",
    "v1.2.0",
    "1.10.0",
    "1.9.9",
    "2.0.0",
    "1.11.0-rc.1",
    "not-1.99.0",
    "1.99.0.0",
    "ü1.99.0",
  ];
  expect(pick("^1", false, tags)).toBe("1.10.0");
  expect(pick("^1", true, tags)).toBe("1.11.0-rc.1");
  expect(pick("^1.11.0-rc.0", false, tags)).toBeNull();
  expect(pick("^3", false, tags)).toBeNull();
  expect(pick("*", false, [])).toBeNull();
  expect(pick("^1", false, ["v1.2.0", "1.2.0"])).toBe("1.2.0");
  expect(pick("^1", false, ["1.2.0", "v1.2.0"])).toBe("1.2.0");
  expect(pick("1.x", false, ["v1.2.0"])).toBe("v1.2.0");
});

test("F5-70: of a hundred thousand tags the newest is found", () => {
  const tags = Array.from({ length: 100_000 }, (_, at) => `1.0.${at}`);
  expect(pick("^1", false, tags)).toBe("1.0.99999");
});

test("names in other alphabets, and those that lead elsewhere, are filtered with a reason", () => {
  const { refusal } = compileSelection(everything);
  for (const name of [
    "команда/бд",
    "Team/x",
    "team/../x",
    "/team",
    "team/",
    "",
    "team//x",
    "a".repeat(256),
    "team/x y",
    "ａ",
  ])
    expect(refusal(name)).toBe("its name is none that a registry can be asked for");
  expect(refusal("team/postgres-apb")).toBeNull();
});

test("a pattern that makes other engines think for ever is quick", () => {
  const { refusal } = compileSelection({
    ...everything,
    default: "deny",
    allow: [{ pattern: "(a+)+(a|aa)+b", match: "whole" }],
  });
  expect(refusal("a".repeat(255))).toBe("allowed by no pattern");
});
