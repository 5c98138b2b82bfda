import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { inForce } from "../src/settings/in-force.js";
import { loadSettings } from "../src/settings/load.js";
import { realSystem } from "../src/settings/system.js";
import { table } from "../src/settings/table.js";
import { folderWith } from "./program.js";
import { systemWith } from "./system.js";

type World = Parameters<typeof systemWith>;

function load(yaml: string, environment: World[1] = {}, files: World[0] = {}) {
  return loadSettings("osbert.yaml", systemWith({ ...files, "/place/osbert.yaml": yaml }, environment));
}

/** The lines that a person reads. */
function faults(yaml: string, environment: World[1] = {}, files: World[0] = {}): readonly string[] {
  try {
    load(yaml, environment, files);
  } catch (error) {
    return (error as Error).message.split("\n");
  }
  return [];
}

const module = "module: services.ts\n";
const png = Buffer.concat([Buffer.from("\x89PNG\r\n\x1a\n", "latin1"), Buffer.alloc(16)]);

describe("values", () => {
  test("the environment counts more than the file, the file more than the default", () => {
    const { settings, places } = load(`${module}listen: { port: 1000, host: a }\n`, { OSBERT_LISTEN_HOST: "b" });
    expect(settings.listen).toEqual({ host: "b", port: 1000 });
    expect(settings.log.level).toBe("info");
    expect(places.get("listen.host")).toEqual({ kind: "environment", name: "OSBERT_LISTEN_HOST" });
    expect(places.get("listen.port")).toMatchObject({ kind: "file", line: 2 });
    expect(places.get("log.level")).toEqual({ kind: "default" });
  });

  test.each([
    ["credentials", "OSBERT_CREDENTIALS", "OSBERT_LOGIN"],
    ["admin.credentials", "OSBERT_ADMIN_CREDENTIALS", "OSBERT_ADMIN_LOGIN"],
    ["metrics.credentials", "OSBERT_METRICS_CREDENTIALS", ""],
  ])("%s in the file are not replaced by $%s in silence", (key, variable, login) => {
    const list = "[{ username: a, password: in-the-file }]";
    const yaml = `${module}${key
      .split(".")
      .reduceRight((inner, name) => `{ ${name}: ${inner} }`, list)
      .slice(2, -2)}\n`;
    const [fault = "", ...others] = faults(yaml, { [variable]: "b:hunter2" });
    expect(others).toEqual([]);
    expect(fault).toContain(`$${variable} ${key}: would replace the list in the file; unset one of them`);
    expect(fault).toContain(login);
    expect(fault).not.toMatch(/hunter2|in-the-file/);
    expect(faults(yaml, { [variable]: "" })).toEqual([]);
    expect(faults(`${module}`, { [variable]: "b:hunter2" })).toEqual([]);
  });

  test("PORT, OSBERT_DATA and OSBERT_CREDENTIALS do without a file", () => {
    const environment = {
      OSBERT_MODULE: "m.js",
      PORT: "9000",
      OSBERT_DATA: "d",
      OSBERT_CREDENTIALS: "a:b:c\nd:e",
      OSBERT_PLATFORMS: "one, two",
      OSBERT_API_CASCADE: "true",
    };
    const { settings, file } = loadSettings(undefined, systemWith({}, environment));
    expect(file).toBeUndefined();
    expect(settings.listen.port).toBe(9000);
    expect(settings.data).toBe("/place/d");
    expect(settings.module).toBe("/place/m.js");
    expect(settings.platforms).toEqual(["one", "two"]);
    expect(settings.api.cascade).toBe(true);
    const credentials = settings.credentials?.map(({ username, password }) => [username, password?.reveal()]);
    expect(credentials).toEqual([
      ["a", "b:c"],
      ["d", "e"],
    ]);
  });

  test("an empty variable counts as none", () => {
    expect(load(module, { PORT: "" }).settings.listen.port).toBe(8080);
  });

  test("durations have units; forever is one", () => {
    const { settings } = load(`${module}retention: { failed: 3d, notes: forever }\napi: { syncTimeout: 1500ms }\n`);
    expect(settings.retention.failed).toBe(3 * 86_400_000);
    expect(settings.retention.notes).toBeNull();
    expect(settings.api.syncTimeout).toBe(1_500);
  });

  test("what looks like a number is a text where a text is meant, as it was typed", () => {
    const { settings } = load(
      `${module}api: { minimumVersion: 2.20 }\ncredentials: [{ username: 1e3, password: 0123 }]\n`,
    );
    expect(settings.api.minimumVersion).toBe("2.20");
    expect(settings.credentials?.[0]?.username).toBe("1e3");
    expect(settings.credentials?.[0]?.password?.reveal()).toBe("0123");
  });

  test("paths start from the folder of the file, those of the environment from the current one", () => {
    const files = { "/place/etc/o.yaml": "module: s.ts\n" };
    const { settings } = loadSettings("etc/o.yaml", systemWith(files, { OSBERT_DATA: "d" }));
    expect(settings.module).toBe("/place/etc/s.ts");
    expect(settings.data).toBe("/place/d");
  });

  test("an alias stands for what its anchor says", () => {
    const { settings } = load(`${module}log: { level: &level warn }\nlisten: { host: *level }\n`);
    expect(settings.listen.host).toBe("warn");
  });

  test("a picture is known by its content", () => {
    const yaml = `${module}catalog: { services: { db: { image: p.jpg } } }\n`;
    const { settings, files } = load(yaml, {}, { "/place/p.jpg": png });
    const image = settings.catalog.services.get("db")?.image;
    expect(image?.dataUri).toBe(`data:image/png;base64,${png.toString("base64")}`);
    expect([...files.keys()]).toEqual(["/place/osbert.yaml", "/place/p.jpg"]);
    expect(faults(yaml, {}, { "/place/p.jpg": "text" })[0]).toMatch(
      /^osbert.yaml:2:\d+ .*image: must be the path of a pic/,
    );
    expect(faults(yaml, {}, { "/place/p.jpg": Buffer.concat([png, Buffer.alloc(131_072)]) })[0]).toMatch(
      /\/place\/p.jpg has more than 131072 bytes/,
    );
  });

  test("names of an operator's choice cannot reach a prototype", () => {
    const { settings } = load(
      `${module}catalog: { services: { __proto__: { description: x }, s: { metadata: { __proto__: { polluted: 1 } } } } }\n`,
    );
    expect([...settings.catalog.services.keys()]).toEqual(["__proto__", "s"]);
    const metadata = settings.catalog.services.get("s")?.metadata ?? {};
    expect(Object.getPrototypeOf(metadata)).toBe(Object.prototype);
    expect((metadata as { polluted?: number }).polluted).toBeUndefined();
    expect(({} as { polluted?: number }).polluted).toBeUndefined();
    expect(faults(`${module}constructor: 1\n__proto__: { x: 1 }\n`)).toEqual([
      expect.stringMatching(/^osbert.yaml:2:1 constructor: is not a setting/),
      expect.stringMatching(/^osbert.yaml:3:1 __proto__: is not a setting/),
    ]);
  });
});

describe("faults", () => {
  test("all of them at once, each with its line and what to write", () => {
    const yaml = "modul: s.ts\nlisten:\n  port: eighty\n  hots: x\nlog: { level: inf }\nretention: { failed: 3 }\n";
    expect(faults(yaml)).toEqual([
      "module: is missing; write e.g. module: services.ts, or name sources under bundles in osbert.yaml",
      "osbert.yaml:1:1 modul: is not a setting; did you mean module?",
      'osbert.yaml:3:9 listen.port: must be a whole number from 0 to 65535, not "eighty"; write e.g. port: 8080',
      "osbert.yaml:4:3 listen.hots: is not a setting; did you mean host?",
      'osbert.yaml:5:15 log.level: must be debug, info, warn, error or silent, not "inf"; did you mean info?',
      'osbert.yaml:6:22 retention.failed: must be a number with a unit: ms, s, m, h or d, or forever, not "3"; write e.g. failed: 90d',
    ]);
  });

  test("of the environment are told with the variable", () => {
    expect(faults(module, { PORT: "-1", OSBERT_LOG_LEVEL: "loud" })).toEqual([
      '$PORT listen.port: must be a whole number from 0 to 65535, not "-1"; write e.g. port: 8080',
      '$OSBERT_LOG_LEVEL log.level: must be debug, info, warn, error or silent, not "loud"; write e.g. level: info',
    ]);
  });

  test("without a file, what is missing is told with the name of the file to write", () => {
    expect(() => loadSettings(undefined, systemWith({}))).toThrow(
      "module: is missing; write e.g. module: services.ts, or name sources under bundles in osbert.yaml, which is not there",
    );
  });

  test.each([
    ["a list where a group belongs", "listen: [1]", /^osbert.yaml:2:9 listen: must be a group of settings: host, port/],
    ["a text where a list belongs", "platforms: one", /^osbert.yaml:2:12 platforms: must be a list/],
    ["a group where a text belongs", "listen: { host: { a: 1 } }", /listen.host: must be a text/],
    ["an empty text", 'listen: { host: "" }', /listen.host: must not be empty/],
    [
      "yes for true",
      "api: { cascade: yes }",
      /api.cascade: must be true or false, not "yes"; write e.g. cascade: false/,
    ],
    ["a fraction", "listen: { port: 80.5 }", /listen.port: must be a whole number/],
    [
      "a platform that is not there",
      "platforms: [alpha]\ncredentials: [{ username: a, password: b, platform: alhpa }]",
      /^osbert.yaml:3:\d+ credentials\[0\].platform: is none of platforms; did you mean alpha\?/,
    ],
    ["a platform twice", "platforms: [a, a]", /^osbert.yaml:2:16 platforms\[1\]: is there twice/],
    [
      "a certificate without a key",
      "tls: { certificate: osbert.yaml }",
      /tls.certificate: needs its key; write tls.key/,
    ],
    [
      "no authentication and credentials",
      "authentication: none\ncredentials: [{ username: a, password: b }]",
      /^osbert.yaml:2:17 authentication: is none, although/,
    ],
    [
      "no password",
      "credentials: [{ username: a }]",
      /^osbert.yaml:2:15 credentials\[0\]: must have either password or passwordHash/,
    ],
    ["an empty list of credentials", "credentials: []", /credentials: is empty; leave it out/],
    [
      "more of one service than of all",
      "limits: { concurrency: 2, perService: 3 }",
      /limits.perService: must not be more than limits.concurrency, which is 2/,
    ],
    [
      "a schedule of five fields",
      'cleanup: { instances: { all: "0 3 * * *" } }',
      /cleanup.instances.all: must be six fields/,
    ],
    [
      "a time zone that is none",
      "cleanup: { timezone: Mars }",
      /^osbert.yaml:2:22 cleanup.timezone: is not a time zone/,
    ],
  ])("%s", (_what, yaml, line) => {
    const [first, ...others] = faults(`${module}${yaml}\n`);
    expect(first).toMatch(line);
    expect(others).toEqual([]);
  });

  test("a file that is named must be there", () => {
    expect(() => loadSettings("no.yaml", systemWith({}))).toThrow("no.yaml is not there");
  });

  test("a file that is no UTF-8 is refused", () => {
    expect(() => loadSettings("o.yaml", systemWith({ "/place/o.yaml": Buffer.from([0xff, 0xfe]) }))).toThrow(
      "o.yaml is not UTF-8; save it as UTF-8",
    );
  });
});

test("a pipe or a folder in place of a file is refused, not waited for", () => {
  const folder = folderWith({});
  execFileSync("mkfifo", [join(folder, "pipe")]);
  for (const name of ["pipe", ""]) {
    const system = { ...realSystem(), folder };
    expect(() => loadSettings(join(folder, name), system)).toThrow(/ is (not a file|a folder)$/);
  }
});

test("an empty file has no settings", () => {
  expect(load("# nothing\n", { OSBERT_MODULE: "m.ts" }).settings.listen.port).toBe(8080);
});

describe("secrets", () => {
  const files = { "/place/pw": "from-file\n", "/run/pw": "from-variable-file" };
  const yaml = (password: string) => `${module}credentials: [{ username: a, password: ${password} }]\n`;
  const passwordOf = (text: string, environment = {}) =>
    load(yaml(text), environment, files).settings.credentials?.[0]?.password?.reveal();

  test("come as text, from a file, or from the environment", () => {
    expect(passwordOf("as-text")).toBe("as-text");
    expect(passwordOf("{ file: pw }")).toBe("from-file");
    expect(passwordOf("{ env: PW }", { PW: "from-environment" })).toBe("from-environment");
    const { settings } = load(module, { OSBERT_STORE_FILE: "/run/url" }, { "/run/url": "mysql://u:p@h/d\n" });
    expect(settings.store.reveal()).toBe("mysql://u:p@h/d");
  });

  test.each([
    ["{ file: nope }", /password: the file \/place\/nope is not there/],
    ["{ env: NOPE }", /password: the environment variable NOPE is not set/],
    ["{ fiel: pw }", /must be a text, or { file: path } or { env: NAME }/],
    ["[x]", /must be a text, or { file: path } or { env: NAME }/],
    ['""', /must not be empty/],
  ])("%s is refused", (text, line) => {
    expect(faults(yaml(text), {}, files)[0]).toMatch(line);
  });

  test("are masked in what is in force, in errors, in JSON and in every print", () => {
    const text = `${module}store: postgres://user:hunter2@host/db?password=hunter2\ncredentials: [{ username: a, password: hunter2 }]\n`;
    const { settings, places } = load(text);
    const shown = inForce(table, settings, places).map(({ key, value, from }) => ({ key, value, from }));
    expect(JSON.stringify(shown)).not.toContain("hunter2");
    expect(shown).toContainEqual({
      key: "store",
      value: "postgres://user:***@host/db?password=***",
      from: "osbert.yaml:2:8",
    });
    expect(shown).toContainEqual({ key: "credentials[0].password", value: "***", from: "osbert.yaml:3:40" });
    expect(JSON.stringify(settings)).not.toContain("hunter2");
    expect(`${settings.store}`).toBe("postgres://user:***@host/db?password=***");
    expect(faults(`${module}store: postgress://u:hunter2@h\n`).join()).not.toContain("hunter2");
    expect(faults(`${module}credentials: [{ username: a, passwordHash: hunter2 }]\n`).join()).not.toContain("hunter2");
    expect(faults(module, { OSBERT_CREDENTIALS: "hunter2" })).toEqual([
      "$OSBERT_CREDENTIALS credentials: must be name:password, one a line",
    ]);
  });
});
