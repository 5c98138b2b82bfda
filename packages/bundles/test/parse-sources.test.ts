import { readFileSync } from "node:fs";
import { inspect } from "node:util";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { compileSelection } from "../src/selection/compile-selection.js";
import { ownSourceKeys } from "../src/selection/parse-own-source.js";
import { parseSources } from "../src/selection/parse-sources.js";
import type { SettingFault, SourceConfig } from "../src/selection/source-config.js";

function sourcesOf(yaml: string): readonly SourceConfig[] {
  const parsed = parseSources(parse(yaml));
  if (parsed.kind === "invalid")
    throw new Error(parsed.faults.map(({ path, message }) => `${path}: ${message}`).join("\n"));
  return parsed.sources;
}

function sourceOf(yaml: string): SourceConfig {
  const [source] = sourcesOf(yaml);
  if (source === undefined) throw new Error("no source");
  return source;
}

function faultsOf(yaml: string): Readonly<Record<string, string>> {
  const parsed = parseSources(parse(yaml));
  return toRecord(parsed.kind === "invalid" ? parsed.faults : []);
}

function adviceOf(yaml: string): Readonly<Record<string, string>> {
  const parsed = parseSources(parse(yaml));
  return toRecord(parsed.kind === "valid" ? parsed.advice : []);
}

function toRecord(faults: readonly SettingFault[]): Readonly<Record<string, string>> {
  return Object.fromEntries(faults.map(({ path, message }) => [path, message]));
}

const own = (lines: string) =>
  `sources:\n  - name: own\n    type: distribution\n    url: https://registry.example\n${lines}`;
const former = (lines: string) =>
  `registry:\n  - name: old\n    type: apiv2\n    url: https://registry.example\n${lines}`;

describe("the registry block of the Ansible Service Broker", () => {
  test("is taken as the proposal writes it", () => {
    const source = sourceOf(`
    registry:
      - type: dockerhub
        name: dh
        url: https://registry.hub.docker.com
        org: ansibleplaybookbundle
        tag:
          default: latest
          named: 
            - hello-apb: 
              - v1.0
              - v2.0
            - postgres-apb: 
              - v3.9
        white_list:
          - '.*-apb$'
`);
    expect(source).toMatchObject({
      name: "dh",
      connection: { kind: "dockerhub", organization: "ansibleplaybookbundle", credentials: { kind: "anonymous" } },
      onUnreachable: { kind: "keep" },
      deleteAfterFailures: null,
      failover: false,
      autoConfirm: "unless all",
    });
    const { refusal, channels } = compileSelection(source.selection);
    expect(refusal("ansibleplaybookbundle/hello-apb")).toBeNull();
    expect(refusal("ansibleplaybookbundle/hello")).toBe("allowed by no pattern");
    const tagsOf = (name: string) =>
      channels(name)
        .map((each) => `${each.channel}=${each.kind === "tag" ? each.tag : "?"}`)
        .sort();
    expect(tagsOf("ansibleplaybookbundle/hello-apb")).toEqual(["=latest", "v1.0=v1.0", "v2.0=v2.0"]);
    expect(tagsOf("ansibleplaybookbundle/postgres-apb")).toEqual(["=latest", "v3.9=v3.9"]);
    expect(tagsOf("ansibleplaybookbundle/other-apb")).toEqual(["=latest"]);
  });

  test("every type that has a living counterpart is taken", () => {
    for (const type of ["apiv2", "openshift", "partner_rhcc"])
      expect(
        sourceOf(`registry: [{ type: ${type}, name: x, url: 'https://registry.example:5000', images: [a/b] }]`)
          .connection,
      ).toEqual({
        kind: "distribution",
        url: "https://registry.example:5000",
        repositories: { kind: "catalog", besides: ["a/b"] },
        credentials: { kind: "anonymous" },
        tokenHosts: [],
        tls: { ca: null, verify: true },
      });
    const proxy = sourceOf(
      "registry: [{ type: registry_proxy, name: x, url: 'https://r.example', images: [a/b], skip_verify_tls: true }]",
    );
    expect(proxy.connection).toMatchObject({ repositories: { kind: "fixed", names: ["a/b"] }, tls: { verify: false } });
    const quay = sourceOf("registry: [{ type: quay, name: x, org: team, token: t0ken }]");
    expect(quay.connection).toMatchObject({
      kind: "quay",
      url: "https://quay.io",
      namespace: "team",
      credentials: { kind: "token" },
    });
  });

  test("image streams are read of the namespaces that are named, else of openshift", () => {
    const block = "type: local_openshift, name: x, white_list: ['-apb$']";
    expect(sourceOf(`registry: [{ ${block} }]`)).toMatchObject({
      connection: { kind: "image streams", namespaces: ["openshift"] },
      selection: { default: "deny", allow: [{ pattern: "-apb$", match: "part" }] },
    });
    const named = sourceOf(`registry: [{ ${block}, namespaces: [team, shared, team] }]`);
    expect(named.connection).toEqual({ kind: "image streams", namespaces: ["team", "shared"] });
    const unused = parseSources(parse(`registry: [{ ${block}, url: 'https://r.example', token: t, namespaces: [a] }]`));
    expect(unused).toMatchObject({
      advice: [
        { path: "registry[0].url", message: "is not used by local_openshift" },
        { path: "registry[0].token", message: "is not used by local_openshift" },
      ],
    });
    for (const namespaces of ["[Team]", "['../x']", "[7]", "[]", "team"])
      expect(Object.keys(faultsOf(`registry: [{ ${block}, namespaces: ${namespaces} }]`)).join()).toMatch(
        /^registry\[0\]\.namespaces/,
      );
    const own = "type: imagestreams, name: x, default: allow, channels: [v1]";
    expect(sourceOf(`sources: [{ ${own}, namespaces: [team] }]`)).toMatchObject({
      connection: { kind: "image streams", namespaces: ["team"] },
      selection: { tags: [{ tag: "latest" }, { tag: "v1" }] },
    });
    expect(faultsOf(`sources: [{ ${own} }]`)["sources[0].namespaces"]).toContain("is missing");
  });

  test("what has none is refused with what to use instead", () => {
    for (const type of ["rhcc", "galaxy", "helm", "mock"])
      expect(faultsOf(`registry: [{ type: ${type}, name: x, url: 'https://r.example' }]`)["registry[0].type"]).toMatch(
        /; (use|build|write)|use /,
      );
    expect(faultsOf("registry: [{ type: dockrhub, name: x, org: y }]")["registry[0].type"]).toContain(
      "did you mean dockerhub?",
    );
    expect(faultsOf("registry: [{ type: constructor, name: x, org: y }]")["registry[0].type"]).toContain(
      "must be one of",
    );
  });

  test("credentials are taken from the block or a file, and never seen again", () => {
    const inline = sourceOf(former("    user: me\n    pass: very-secret\n"));
    expect(inline.connection).toMatchObject({ credentials: { kind: "basic" } });
    expect(`${JSON.stringify(inline)} ${inspect(inline, { depth: 9 })} ${String(inline.connection)}`).not.toContain(
      "very-secret",
    );
    expect(sourceOf(former("    auth_type: file\n    auth_name: /etc/registry\n")).connection).toMatchObject({
      credentials: { kind: "file", path: "/etc/registry" },
    });
    expect(faultsOf(former("    auth_type: secret\n    auth_name: x\n"))["registry[0].auth_type"]).toContain(
      "mount the secret as a file",
    );
    expect(faultsOf(former("    user: me\n"))["registry[0].pass"]).toContain("go together");
    expect(
      faultsOf("registry: [{ type: apiv2, name: x, url: 'https://me:very-secret@r.example' }]")["registry[0].url"],
    ).not.toContain("very-secret");
  });

  test("F5-22: a deny list alone denies only what it names", () => {
    const { refusal } = compileSelection(sourceOf(former("    black_list: [secret]\n")).selection);
    expect(refusal("team/postgres")).toBeNull();
    expect(refusal("team/top-secret-thing")).toBe("denied by secret");
    const both = compileSelection(sourceOf(former("    white_list: ['-apb$']\n    black_list: [hello]\n")).selection);
    expect([both.refusal("a/x-apb"), both.refusal("a/hello-apb"), both.refusal("a/x")]).toEqual([
      null,
      "denied by hello",
      "allowed by no pattern",
    ]);
  });

  test("F5-20: a pattern that is none is a fault with its place, and nothing of the settings counts", () => {
    const faults = faultsOf(former("    white_list: ['.*-apb$', '(']\n"));
    expect(Object.keys(faults)).toEqual(["registry[0].white_list[1]"]);
    expect(faults["registry[0].white_list[1]"]).toContain("missing closing )");
    expect(faultsOf(former("    white_list: ['(?!x)']\n"))["registry[0].white_list[0]"]).toContain(
      "without look-around",
    );
  });

  test("what was silently nothing is a fault, and what has no effect is said", () => {
    expect(faultsOf(former("    whitelist: [x]\n"))["registry[0].whitelist"]).toBe(
      "is not a setting; did you mean white_list?",
    );
    expect(faultsOf(former("    tag: 3.10\n"))["registry[0].tag"]).toContain("quotes");
    expect(faultsOf(former("    tag: { named: [{ a: [3.9] }] }\n"))["registry[0].tag.named[0].a[0]"]).toContain(
      "quotes",
    );
    expect(faultsOf(former("    tag: { named: [a] }\n"))["registry[0].tag.named[0]"]).toContain("a list of its tags");
    expect(faultsOf(former("    images: ['a/b:v1']\n"))["registry[0].images[0]"]).toContain(
      "write a/b, and v1 as its tag",
    );
    expect(faultsOf("registry: [{ type: registry_proxy, name: x, url: r.example }]")["registry[0].images"]).toContain(
      "named here",
    );
    expect(faultsOf("registry: [7]")["registry[0]"]).toContain("must be a group");
    expect(faultsOf("registry: x")).toEqual({ registry: "must be a list" });
    expect(adviceOf(former("    fail_on_error: true\n"))["registry[0].fail_on_error"]).toContain("no effect");
    expect(adviceOf("registry: [{ type: apiv2, name: x, url: r.example }]")["registry[0].url"]).toContain(
      "https is used",
    );
    expect(
      adviceOf("registry: [{ type: apiv2, name: x, url: 'http://r.example', user: a, pass: b }]")["registry[0].url"],
    ).toContain("can read them");
  });
});

describe("the own form", () => {
  test("says all there is to say", () => {
    const source = sourceOf(`
sources:
  - name: main
    type: distribution
    url: https://registry.example:5000
    repositories: [other/unlisted]
    default: deny
    allow: ["team/.*"]
    deny: ["team/old-.*"]
    tag: { range: "^1" }
    channels:
      - beta
      - { name: next, range: "^2.0.0-0", prereleases: true }
    named:
      - { repository: team/one, only: true, channels: [v9] }
    credentials:
      username: reader
      password: { file: /run/secrets/registry }
    tokenHosts: [auth.example]
    tls: { ca: ca.pem }
    signatures: { keys: [one.pem, two.pem] }
    interval: 5m
    priority: 10
    failover: true
    onUnreachable: { hideAfter: 7d }
    deleteAfterFailures: 20
    autoConfirm: never
    previousNames: [older]
    identity: legacy
`);
    expect(source).toMatchObject({
      name: "main",
      previousNames: ["older"],
      enabled: true,
      intervalMs: 300_000,
      priority: 10,
      failover: true,
      onUnreachable: { kind: "hide after", ms: 604_800_000 },
      deleteAfterFailures: 20,
      autoConfirm: "never",
      identity: "legacy",
      connection: {
        kind: "distribution",
        url: "https://registry.example:5000",
        repositories: { kind: "catalog", besides: ["other/unlisted"] },
        credentials: { kind: "basic", password: { kind: "file", path: "/run/secrets/registry" } },
        tokenHosts: ["auth.example"],
        tls: { ca: "ca.pem", verify: true },
        signatures: { keys: ["one.pem", "two.pem"] },
      },
    });
    expect(source.selection).toEqual({
      default: "deny",
      allow: [{ pattern: "team/.*", match: "whole" }],
      deny: [{ pattern: "team/old-.*", match: "whole" }],
      tags: [
        { kind: "range", channel: "", range: "^1", prereleases: false },
        { kind: "tag", channel: "beta", tag: "beta" },
        { kind: "range", channel: "next", range: "^2.0.0-0", prereleases: true },
      ],
      named: [{ repository: "team/one", only: true, tags: [{ kind: "tag", channel: "v9", tag: "v9" }] }],
    });
  });

  test("of other types it takes what is theirs, and nothing else", () => {
    expect(sourceOf("sources: [{ name: x, type: folder, path: bundles }]")).toMatchObject({
      connection: { kind: "folder", path: "bundles" },
      selection: { default: "allow", tags: [{ tag: "latest" }] },
    });
    expect(
      sourceOf("sources: [{ name: x, type: images, url: 'https://r.example', repositories: [a/b] }]"),
    ).toMatchObject({
      connection: { repositories: { kind: "fixed", names: ["a/b"] } },
      selection: { default: "allow" },
    });
    expect(
      sourceOf("sources: [{ name: x, type: dockerhub, organization: team, default: allow }]").connection,
    ).toMatchObject({ organization: "team" });
    expect(sourceOf("sources: [{ name: x, type: quay, namespace: team, default: allow }]").connection).toMatchObject({
      url: "https://quay.io",
    });
    expect(
      faultsOf("sources: [{ name: x, type: folder, path: a, url: 'https://r.example' }]")["sources[0].url"],
    ).toContain("is not a setting");
    expect(faultsOf("sources: [{ name: x, type: foldr, path: a }]")["sources[0].type"]).toContain(
      "did you mean folder?",
    );
    expect(faultsOf("sources: [{ name: x }]")["sources[0].type"]).toContain("must be one of");
  });

  test("what becomes of the rest has to be said, and patterns describe whole names", () => {
    expect(faultsOf(own("    allow: [a]\n"))["sources[0].default"]).toContain("allow or deny");
    const { refusal } = compileSelection(sourceOf(own("    default: deny\n    allow: [postgres]\n")).selection);
    expect([refusal("postgres"), refusal("not-postgres")]).toEqual([null, "allowed by no pattern"]);
    expect(adviceOf(own("    default: deny\n    allow: ['team/*']\n"))["sources[0].allow[0]"]).toContain(".*");
  });

  test("every fault is told at once, with its place, and without secrets", () => {
    const faults = faultsOf(
      own(`    default: perhaps
    credentials: { username: me, password: very-secret }
    interval: 5
    priority: high
    onUnreachable: { hideAfter: 5m }
    channels: [{ name: a }, { range: "^1" }, "^1", 7]
    tag: { range: lots }
    tokenHosts: ["https://x"]
    previousNames: ["Not OK"]
    named: [{ only: true }]
`),
    );
    expect(Object.keys(faults).sort()).toEqual([
      "sources[0].channels[0]",
      "sources[0].channels[1].name",
      "sources[0].channels[2]",
      "sources[0].channels[3]",
      "sources[0].credentials.password",
      "sources[0].default",
      "sources[0].interval",
      "sources[0].named[0].repository",
      "sources[0].onUnreachable.hideAfter",
      "sources[0].previousNames[0]",
      "sources[0].priority",
      "sources[0].tag.range",
      "sources[0].tokenHosts[0]",
    ]);
    expect(faults["sources[0].channels[2]"]).toContain('{ range: "^1" }');
    expect(JSON.stringify(faults)).not.toContain("very-secret");
  });

  test("credentials do not go over http unless the operator says so", () => {
    const http = (rest: string) =>
      `sources: [{ name: x, type: distribution, url: 'http://r.example', default: allow, credentials: { token: { env: T } }${rest} }]`;
    expect(faultsOf(http(""))["sources[0].url"]).toContain("allowHttp");
    expect(sourceOf(http(", allowHttp: true")).connection).toMatchObject({
      credentials: { kind: "token", token: { name: "T" } },
    });
  });

  test("credentials that are half there, or nothing, are a fault", () => {
    for (const given of ["{}", "{ username: me }", "{ password: { file: a } }", "x", "{ token: { file: a, env: B } }"])
      expect(Object.keys(faultsOf(own(`    default: allow\n    credentials: ${given}\n`)))[0]).toMatch(
        /^sources\[0\]\.credentials/,
      );
  });
});

test("F5-25: two sources of one name are a fault that names both, over both forms and earlier names", () => {
  const one = "registry: [{ type: quay, name: same, org: a }, { type: quay, name: same, org: b }]";
  expect(faultsOf(one)).toEqual({
    "registry[1].name": "same is already the name at registry[0].name; every source needs one of its own",
  });
  const both = "registry: [{ type: quay, name: same, org: a }]\nsources: [{ type: folder, name: same, path: b }]";
  expect(faultsOf(both)["sources[0].name"]).toContain("registry[0].name");
  const earlier =
    "sources: [{ type: folder, name: one, path: b }, { type: folder, name: two, path: b, previousNames: [one] }]";
  expect(faultsOf(earlier)["sources[1].previousNames[0]"]).toContain("sources[0].name");
});

test("F5-38: signatures are required with keys alone, and turned off they leave no trace", () => {
  const hub = (signatures: string) =>
    `sources: [{ type: dockerhub, name: hub, organization: team, default: allow, signatures: ${signatures} }]`;
  const [required] = sourcesOf(hub("{ keys: [a.pem], policy: require }"));
  expect(required?.connection).toMatchObject({ signatures: { keys: ["a.pem"] } });
  const [off] = sourcesOf(hub("{ keys: [a.pem], policy: off }"));
  expect(off?.connection).not.toHaveProperty("signatures");
  const many = Array.from({ length: 17 }, (_, at) => `${at}.pem`);
  for (const wrong of ["{}", "{ policy: require }", "{ keys: [] }", `{ keys: [${many.join(", ")}] }`])
    expect(Object.keys(faultsOf(hub(wrong)))).toEqual(["sources[0].signatures.keys"]);
  expect(Object.keys(faultsOf(hub("{ keys: [a.pem], policy: warn }")))).toEqual(["sources[0].signatures.policy"]);
  expect(Object.keys(faultsOf(hub("yes")))).toEqual(["sources[0].signatures"]);
});

test("names that ids cannot be made of are faults", () => {
  for (const name of ["''", "Upper", "a b", "-a", "push", "ünï", "7", "x".repeat(64)])
    expect(Object.keys(faultsOf(`sources: [{ type: folder, name: ${name}, path: b }]`))).toEqual(["sources[0].name"]);
  expect(sourcesOf("registry:\nsources:\n")).toEqual([]);
});

test("settings that nobody would write are faults, and never a crash", () => {
  const names = [
    "type",
    "name",
    "url",
    "tag",
    "allow",
    "named",
    "channels",
    "credentials",
    "tls",
    "signatures",
    "onUnreachable",
    "white_list",
    "images",
  ];
  const values: readonly unknown[] = [
    null,
    0,
    -1,
    "",
    [],
    {},
    [[]],
    [null],
    { a: [] },
    { __proto__: null },
    true,
    "\u0000",
    "x".repeat(5_000),
  ];
  for (const name of names)
    for (const value of values)
      for (const base of [{ type: "distribution" }, { type: "apiv2" }, { type: "folder" }, {}]) {
        const item = { name: "x", url: "https://r.example", ...base, [name]: value };
        expect(["valid", "invalid"]).toContain(parseSources({ sources: [item], registry: [item] }).kind);
      }
});

test("what the README writes is valid", () => {
  const readme = readFileSync(new URL("../README.md", import.meta.url), "utf8");
  const blocks = [...readme.matchAll(/```yaml\n(.*?)```/gs)].map(([, text = ""]) => text);
  expect(blocks.map((text) => sourcesOf(text).map(({ name }) => name))).toEqual([
    ["main", "hub", "quay", "elsewhere", "shared", "local", "push"],
    ["dh"],
  ]);
  expect(blocks.map(adviceOf)).toEqual([{}, {}]);
});

test("a secret from the environment is called env, as in all other settings", () => {
  const source = (token: object) =>
    parseSources({
      sources: [
        { name: "x", type: "distribution", url: "https://r.example", default: "allow", credentials: { token } },
      ],
    });
  expect(source({ env: "T" })).toMatchObject({
    sources: [{ connection: { credentials: { token: { kind: "environment", name: "T" } } } }],
  });
  expect(source({ environment: "T" })).toEqual({
    kind: "invalid",
    faults: [{ path: "sources[0].credentials.token", message: "says environment; write { env: NAME }" }],
  });
});

test("F5-57: a registry of the predecessor keeps its ids with identity: legacy", () => {
  const block = { type: "apiv2", name: "old", url: "https://r.example" };
  const identityOf = (more: object) => {
    const parsed = parseSources({ registry: [{ ...block, ...more }] });
    return parsed.kind === "valid" ? parsed.sources[0]?.identity : parsed.faults;
  };
  expect([identityOf({}), identityOf({ identity: "legacy" })]).toEqual(["place", "legacy"]);
  expect(identityOf({ identity: "old" })).toMatchObject([{ path: "registry[0].identity" }]);
});

test("the page for operators has every key of a source, with the types that can have it, and no other", () => {
  const page = readFileSync(new URL("../../../docs/guides/operating-registries.md", import.meta.url), "utf8");
  const [table = ""] = /\| key \| of which types \|[\s\S]*?\n\n/.exec(page) ?? [];
  const rows = [...table.matchAll(/^\| `(\w+)` \| ([^|]*) \|/gm)].map(
    ([, key = "", types = ""]) => [key, types] as const,
  );
  const all = ["distribution", "images", "dockerhub", "quay", "imagestreams", "folder", "push"];
  const typesOf = (text: string) => {
    if (text === "all") return all;
    if (text === "all but `push`") return all.slice(0, 6);
    if (text === "registries, `imagestreams`") return all.slice(0, 5);
    return text === "registries" ? all.slice(0, 4) : all.filter((type) => text.includes(`\`${type}\``));
  };
  expect(rows.map(([key]) => key).sort()).toEqual([...ownSourceKeys].sort());
  for (const [key, types] of rows) {
    const taking = all.filter((type) => {
      const faults = faultsOf(JSON.stringify({ sources: [{ [key]: null, type }] }));
      return !(faults[`sources[0].${key}`] ?? "").includes("not a setting");
    });
    expect([key, taking]).toEqual([key, typesOf(types)]);
  }
});
