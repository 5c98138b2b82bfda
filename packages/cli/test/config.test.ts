import { readdirSync } from "node:fs";
import { expect, test } from "vitest";
import { folderWith, run } from "./program.js";

/** A module that needs nothing, and keeps its process alive, as one with a pool of connections would. */
const servicesModule = `
setInterval(() => undefined, 1_000);
export const services = [
  {
    id: "2f1d5a7e-6f5e-4c57-9d43-7a4f6f0c0001",
    name: "database",
    description: "A database",
    plans: { small: { id: "2f1d5a7e-6f5e-4c57-9d43-7a4f6f0c0002", description: "A small one" } },
    async provision() {},
  },
];
`;

test("osbert config tells every value and where it comes from, without the secrets", async () => {
  const yaml = `module: s.mjs
store: { file: url }
log:
  level: warn
credentials:
  - username: a
    password: hunter2
keys: { env: RING }
`;
  const cwd = folderWith({ "o.yaml": yaml, "s.mjs": servicesModule, url: "postgres://u:hunter2@h/d\n" });
  const ring = "a:aHVudGVyMmh1bnRlcjJodW50ZXIyaHVudGVyMmh1bnQ=";
  const env = { RING: ring, PORT: "9", OSBERT_ADMIN_CREDENTIALS: "root:hunter2" };
  const text = await run(["config", "o.yaml"], { cwd, env });
  expect([text.status, text.stderr]).toEqual([0, ""]);
  const lines = text.stdout.split("\n").map((line) => line.split(/ {2,}/));
  expect(lines).toContainEqual(["store", "postgres://u:***@h/d", "o.yaml:2:8"]);
  expect(lines).toContainEqual(["log.level", "warn", "o.yaml:4:10"]);
  expect(lines).toContainEqual(["credentials[0].password", "***", "o.yaml:7:15"]);
  expect(lines).toContainEqual(["listen.port", "9", "$PORT"]);
  expect(lines).toContainEqual(["listen.host", "127.0.0.1", "default"]);

  const json = await run(["config", "o.yaml", "--json"], { cwd, env });
  const values = JSON.parse(json.stdout) as Record<string, unknown>;
  expect(values["retention.failed"]).toEqual({ value: "90d", from: "default" });
  expect(values.keys).toEqual({ value: "***", from: "o.yaml:8:7" });
  expect(values["admin.credentials[0].username"]).toEqual({ value: "root", from: "$OSBERT_ADMIN_CREDENTIALS" });
  for (const { stdout, stderr } of [text, json]) expect(stdout + stderr).not.toMatch(/hunter2|aHVudGVy/);
});

test("osbert config names a module that is not there, and defaults start from the folder of the file", async () => {
  const cwd = folderWith({ "o.yaml": "module: none.ts\n" });
  const missing = await run(["config", "o.yaml"], { cwd });
  expect(missing.stderr).toMatch(/^o.yaml:1:9 module: there is no file .*none.ts\n$/);
  expect(missing.status).toBe(2);
  const other = folderWith({ "o.yaml": "module: s.mjs\n", "s.mjs": servicesModule });
  const { stdout } = await run(["config", `${other}/o.yaml`], { cwd });
  expect(stdout).toMatch(new RegExp(`^data +${other}/.osbert`, "m"));
  // It is a check: nothing is made.
  expect(readdirSync(other).sort()).toEqual(["o.yaml", "s.mjs"]);
});

const refused: readonly (readonly [what: string, yaml: string, said: RegExp])[] = [
  [
    "an id that is there twice",
    `module: s.mjs
catalog:
  services:
    database:
      plans:
        large: { id: 2f1d5a7e-6f5e-4c57-9d43-7a4f6f0c0002, description: A large one }
`,
    /^o.yaml:6:22 catalog.services.database.plans.large.id: /,
  ],
  [
    "a plan without an id",
    `module: s.mjs
catalog:
  services:
    cache:
      use: database
      id: 2f1d5a7e-6f5e-4c57-9d43-7a4f6f0c0009
      description: A cache
      plans:
        tiny: { description: A tiny one }
`,
    /^o.yaml:9:9 catalog.services.cache.plans.tiny: a new one needs id\n$/,
  ],
  [
    "a schedule that is none",
    "module: s.mjs\ncleanup: { instances: { all: 99 0 3 * * * } }\n",
    /^o.yaml:2:30 cleanup.instances.all: /,
  ],
  [
    "a hash that is none",
    "module: s.mjs\ncredentials: [{ username: a, passwordHash: $scrypt$nonsense }]\n",
    /^o.yaml:2:15 credentials\[0\]: /,
  ],
];

test.each(refused)("%s is refused by osbert config in the same words as by osbert serve", async (_what, yaml, said) => {
  const cwd = folderWith({ "o.yaml": yaml, "s.mjs": servicesModule });
  const [config, serve] = await Promise.all(["config", "serve"].map((command) => run([command, "o.yaml"], { cwd })));
  expect(config?.stderr).toMatch(said);
  expect([config?.status, config?.stdout]).toEqual([2, ""]);
  expect(serve?.stderr).toBe(config?.stderr);
});

test("osbert config tells everything that is wrong in one round: values, rules between them, and the catalog", async () => {
  const yaml = `module: s.mjs
listen: { port: 99999 }
limits: { concurrency: 2, perService: 3 }
credentials:
  - { username: a, password: b, platform: nobody }
tls: { certificate: none.pem }
catalog:
  services:
    database:
      plans:
        large: { id: 2f1d5a7e-6f5e-4c57-9d43-7a4f6f0c0002, description: A large one }
    cache: { use: databse, id: c, description: A cache }
`;
  const { status, stderr } = await run(["config", "o.yaml"], {
    cwd: folderWith({ "o.yaml": yaml, "s.mjs": servicesModule }),
  });
  const keys = stderr.split("\n").map((line) => /^o.yaml:(\d+):\d+ (\S+):/.exec(line)?.slice(1).join(" "));
  expect(keys).toEqual([
    "2 listen.port",
    "3 limits.perService",
    "5 credentials[0].platform",
    "6 tls.certificate",
    "11 catalog.services.database.plans.large.id",
    "12 catalog.services.cache.use",
    undefined,
  ]);
  expect(status).toBe(2);
});

test("a module that cannot be loaded is told by osbert config, with its line", async () => {
  const cwd = folderWith({ "o.yaml": "module: s.mjs\n", "s.mjs": "throw new Error('no such host');\n" });
  const { status, stderr } = await run(["config", "o.yaml"], { cwd });
  expect(stderr).toMatch(/^o.yaml:1:9 module: the module \S+s.mjs cannot be loaded: no such host\n\s+at \S*s.mjs:1/);
  expect(status).toBe(2);
});

test("osbert config says what osbert serve would warn of, and ends well", async () => {
  const yaml = "bundles: { registry: [{ name: ours, type: apiv2, url: registry.example, white_list: [a] }] }\n";
  const { status, stdout, stderr } = await run(["config", "o.yaml"], { cwd: folderWith({ "o.yaml": yaml }) });
  expect(stderr).toMatch(/^o\.yaml:1:\d+ bundles\.registry\[0\]\.url: has no scheme; https is used\n$/);
  expect(stdout).toContain("bundles.registry");
  expect(status).toBe(0);
});

test("osbert config tells of folders and credentials of sources that are not there now, with their places, and ends with 0", async () => {
  const yaml = `bundles:
  sources:
    - { name: here, type: folder, path: . }
    - { name: away, type: folder, path: none }
    - { name: hub, type: dockerhub, organization: team, default: allow, credentials: { token: { file: none.txt } } }
    - { name: known, type: dockerhub, organization: team, default: allow, credentials: { token: { file: secret.txt } } }
    - { name: unset, type: quay, namespace: team, default: allow, credentials: { token: { env: NO_SUCH_TOKEN } } }
`;
  const cwd = folderWith({ "o.yaml": yaml, "secret.txt": "hunter2\n" });
  const { status, stdout, stderr } = await run(["config", "o.yaml"], { cwd });
  expect(stderr.split("\n").map((line) => line.replace(cwd, "…"))).toEqual([
    expect.stringMatching(
      /^o\.yaml:4:\d+ bundles\.sources\[1\]: there is no folder \S*none now; the source is read when there is$/,
    ),
    expect.stringMatching(
      /^o\.yaml:5:\d+ bundles\.sources\[2\]: its credentials cannot be had now: their file cannot be read: ENOENT$/,
    ),
    expect.stringMatching(
      /^o\.yaml:7:\d+ bundles\.sources\[4\]: its credentials cannot be had now: NO_SUCH_TOKEN is not in the environment$/,
    ),
    "",
  ]);
  expect(stdout + stderr).not.toContain("hunter2");
  expect(status).toBe(0);
});

test("osbert config refuses image streams where there is no cluster, with their place and what to set", async () => {
  const yaml =
    "cluster: { kubeconfig: none.kubeconfig }\nbundles:\n  registry:\n    - { name: local, type: local_openshift }\n";
  const { status, stderr } = await run(["config", "o.yaml"], { cwd: folderWith({ "o.yaml": yaml }) });
  expect(stderr).toMatch(
    /o\.yaml:4:\d+ bundles\.registry\[0\]\.type: reads image streams of a cluster, and no cluster can be reached: .*none\.kubeconfig could not be read: ENOENT.*; set cluster\.kubeconfig and cluster\.context/,
  );
  expect(status).toBe(2);
});

test("F5-38: osbert config refuses files that are no keys for signatures, with their places, and repeats nothing of them", async () => {
  const source = (key: string) =>
    `{ name: ${key}, type: dockerhub, organization: team, default: allow, signatures: { keys: [${key}.pem] } }`;
  const yaml = `bundles:\n  sources:\n    - ${source("none")}\n    - ${source("wrong")}\n`;
  const cwd = folderWith({ "o.yaml": yaml, "wrong.pem": "-----BEGIN PRIVATE KEY-----\nhunter2\n" });
  const { status, stdout, stderr } = await run(["config", "o.yaml"], { cwd });
  expect(stderr).toMatch(/o\.yaml:3:\d+ bundles\.sources\[0\]: the file \S*none\.pem cannot be read \(ENOENT\)/);
  expect(stderr).toMatch(
    /o\.yaml:4:\d+ bundles\.sources\[1\]\.signatures\.keys: wrong\.pem must be one public key in PEM/,
  );
  expect(stdout + stderr).not.toContain("hunter2");
  expect(status).toBe(2);
});
