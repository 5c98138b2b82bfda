import { readdir, readFile, rename, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createHandler } from "@osbert/broker/http";
import { testBroker } from "@osbert/broker/testing";
import { systemClock } from "@osbert/journal";
import { sqliteStore } from "@osbert/journal/sqlite";
import { expect, onTestFinished, test } from "vitest";
import { hideParameters } from "../src/formats/hide-parameters.js";
import { parseApb } from "../src/formats/parse-apb.js";
import { type OperatorSecret, openProcessRunner, secretProblem } from "../src/index.js";
import { maskLog } from "../src/runners/mask-log.js";
import type { Job } from "../src/runners/runner.js";
import { bundleSpec, givenUpOncePlaced, limits } from "./bundle-jobs.js";
import { bundleFolder, folderServices, writeBundle } from "./folder-services.js";

const password = "hunter2-of-the-operator";
const osbertYaml = `
osbert: 1
name: databases
version: 1.0.0
description: Databases on a server
command: [sh, ./run.sh]
plans:
  small:
    description: A small one
    provision:
      type: object
      additionalProperties: false
      required: [size, admin_password]
      properties: { size: { type: integer }, admin_password: { type: string } }
`;
/** Says what it was given, in a form that is no secret of its own: the letters of the password, and where they were. */
const runSh = `
input=$(cat "$OSBERT_INPUT")
echo "the log has $input" >&2
count() { echo "$input" | grep -o "$1" | wc -l; }
say() { echo "$1"; echo "$1" >&2; }
say "{\\"state\\":{\\"$1-parameters\\":$(count '"parameters":{[^}]*hunter2'),\\"$1-secrets\\":$(count '"secrets":{[^}]*hunter2')}}"
case "$1" in bind) echo '{"credentials":{"user":"u"}}';; esac
`;

function secret(part: Partial<OperatorSecret> = {}, text = password): OperatorSecret {
  const values = new Map([["admin_password", { reveal: () => text }]]);
  return { name: "server", sources: ["folder"], services: ["data.*"], values, ...part };
}

async function start(secrets: readonly OperatorSecret[]) {
  const [bundles, work] = [await bundleFolder(), await bundleFolder()];
  await writeBundle(bundles, "databases", osbertYaml, runSh);
  const services = await folderServices(bundles, {
    secrets,
    runner: (files) => openProcessRunner({ directory: join(work, "runs"), files, unsandboxed: true }),
  });
  const admin = { credentials: [{ username: "ann", password: "the-admin-s3cret" }] };
  const flow = await testBroker({
    services,
    store: sqliteStore(join(work, "broker.db")),
    wire: (broker, options) => createHandler(broker, { ...options, admin }),
  });
  onTestFinished(() => flow.stop());
  const schema = async () => {
    const { body } = await flow.request("GET", "/v2/catalog");
    return body?.services?.[0]?.plans[0].schemas?.service_instance.create.parameters;
  };
  await expect.poll(schema).toBeDefined();
  const jobs = () => readdir(join(work, "runs/jobs"));
  /** What an operator reads of all jobs. */
  const logs = async () => {
    const authorization = `Basic ${Buffer.from("ann:the-admin-s3cret").toString("base64")}`;
    const answers = (await jobs()).map((job) =>
      flow.request("GET", `/admin/v1/bundles/jobs/${job}/log`, { headers: { authorization } }),
    );
    return JSON.stringify((await Promise.all(answers)).map(({ body }) => body));
  };
  /** What the programs have said. */
  const said = async () => {
    const texts = (await jobs()).map((job) => readFile(join(work, "runs/jobs", job, "log"), "utf8"));
    return (await Promise.all(texts)).join("");
  };
  return { flow, services, work, schema, jobs, logs, said };
}

/** Every byte of every file below a folder, as text. */
async function everythingIn(folder: string): Promise<string> {
  const files = (await readdir(folder, { recursive: true, withFileTypes: true })).filter((each) => each.isFile());
  // SQLite may remove one of its own meanwhile.
  const texts = files.map((file) => readFile(join(file.parentPath, file.name), "latin1").catch(() => ""));
  return (await Promise.all(texts)).join("\n");
}

const sync = { acceptsIncomplete: false };

test("F5-83: a parameter that the operator gives is asked of nobody, is filled in, and stays nowhere when the action has ended", async () => {
  const { flow, work, schema, jobs, logs, said } = await start([secret()]);
  expect(await schema()).toMatchObject({ required: ["size"], properties: { size: { type: "integer" } } });
  expect(JSON.stringify(await schema())).not.toContain("admin_password");
  const mine = await flow.provision("i0", { ...sync, parameters: { size: 1, admin_password: "mine" } });
  expect(mine.status).toBe(400);
  expect(await flow.provision("i1", { ...sync, parameters: { size: 1 } })).toMatchObject({ status: 201 });
  expect((await flow.bind("i1", "b1", sync)).body).toEqual({ credentials: { user: "u" } });
  expect(await jobs()).toHaveLength(2);
  for (const job of await jobs()) {
    // What the bundle was given and has said is in the journal, and may be secret.
    expect((await readdir(join(work, "runs/jobs", job))).sort()).toEqual(["claim", "exit", "job.json", "log"]);
  }
  expect(await logs()).toContain("the log has");
  expect(await logs()).not.toContain("hunter2");
  expect(await said()).toContain('{"state":{"provision-parameters":1,"provision-secrets":1}}');
  expect(await said()).toContain('{"state":{"bind-parameters":0,"bind-secrets":1}}');
  await flow.stop();
  // The log of the bundle is what it wrote itself; all that Osbert keeps is without the secret.
  const kept = (await everythingIn(work)).replaceAll(/^the log has .*$/gm, "");
  expect(kept).not.toContain("hunter2");
});

test.each([
  ["another source", { sources: ["other"] }],
  ["other services", { services: ["data"] }],
])("a secret for %s is given to no other bundle, and hides nothing", async (_, part) => {
  const { flow, said, schema } = await start([secret(part)]);
  expect(await schema()).toMatchObject({ required: ["size", "admin_password"] });
  await flow.provision("i1", { ...sync, parameters: { size: 1, admin_password: "mine" } });
  expect(await said()).toContain('"provision-parameters":0,"provision-secrets":0');
});

test("F5-83: another value is given from the next action on, and the old one stays out of logs; what no setting names is seen again", async () => {
  const { flow, services, schema, logs, said } = await start([secret()]);
  await flow.provision("i1", { ...sync, parameters: { size: 1 } });
  await services.exchangeSecrets([secret({}, "another-of-the-operator")]);
  expect(JSON.stringify(await schema())).not.toContain("admin_password");
  await flow.bind("i1", "b1", sync);
  expect(await said()).toContain('"bind-parameters":0,"bind-secrets":0');
  expect(await logs()).toContain("the log has");
  expect(await logs()).not.toMatch(/hunter2|another-of/);
  await expect(services.exchangeSecrets([secret({ services: ["("] })])).rejects.toThrow(/services\[0\] is no pattern/);
  expect(JSON.stringify(await schema())).not.toContain("admin_password");
  await services.exchangeSecrets([]);
  expect(await schema()).toMatchObject({ required: ["size", "admin_password"] });
});

test.each([
  ["refuses", `echo "{\\"refused\\":\\"no login for admin:$pw\\"}"; exit 64`, "no login for admin:***"],
  ["fails", `echo "{\\"refused\\":\\"no login for admin:$pw\\"}"; exit 3`, /exit code 3: no login for admin:\*\*\*$/],
  [
    "tells its progress",
    `echo "{\\"progress\\":\\"admin:$pw\\"}"; while [ ! -e "$0.go" ]; do sleep 0.1; done; echo "{\\"refused\\":\\"$pw\\"}"; exit 64`,
    "admin:***",
  ],
])(
  "a bundle that %s with an operator's secret in its words does not get it to users or into the store",
  async (_, says, told) => {
    const work = await bundleFolder();
    const bundles = await bundleFolder();
    const script = `pw=$(grep -o 'hunter2[a-z-]*' "$OSBERT_INPUT" | head -1)\n${says.replace("$0.go", join(work, "go"))}\n`;
    await writeBundle(bundles, "databases", osbertYaml, script);
    const services = await folderServices(bundles, { secrets: [secret()] });
    const store = join(work, "broker.db");
    const flow = await testBroker({
      services,
      store: sqliteStore(store),
      journal: { clock: systemClock },
      stderr: "nothing",
    });
    onTestFinished(() => flow.stop());
    const patiently = { timeout: 20_000 };
    await expect.poll(async () => (await flow.request("GET", "/v2/catalog")).status, patiently).toBe(200);
    await flow.provision("i1", { parameters: { size: 1 } });
    const description = async () => (await flow.lastOperation("i1")).body.description;
    await expect.poll(description, patiently).toMatch(told);
    // What is exchanged while a job runs is a secret all the same.
    await services.exchangeSecrets([secret({}, "another-one-of-the-operator")]);
    await writeFile(join(work, "go"), "");
    await expect.poll(async () => (await flow.lastOperation("i1")).body.state, patiently).not.toBe("in progress");
    const kept = await Promise.all((await readdir(work)).map((name) => readFile(join(work, name), "latin1")));
    expect(kept.join("")).toContain("***");
    expect(kept.join("")).not.toContain(password);
  },
);

test("what is wrong with a secret is told with its place, and without its value", () => {
  expect(secretProblem(secret())).toBeNull();
  expect(secretProblem(secret({ name: "../x" }))).toMatchObject({ path: "" });
  const values = new Map([["../etc", { reveal: () => password }]]);
  expect(secretProblem(secret({ values }))).toMatchObject({ path: "values.../etc" });
  expect(secretProblem(secret({ services: ["a", "(?=b)"] }))).toMatchObject({ path: "services[1]" });
});

test("a job that was killed keeps no secret either", async () => {
  const directory = await bundleFolder();
  const runner = await openProcessRunner({ directory, files: async () => directory, unsandboxed: true });
  const { signal } = new AbortController();
  const command = ["sh", "-c", "sleep 600"];
  const job: Job = {
    ...{ id: "killed-1", action: "provision", spec: bundleSpec({ command }), limits, operation: null },
    artifact: { kind: "files", repository: "x", digest: `sha256:${"0".repeat(64)}` },
    input: { secrets: { password } },
    secrets: { server: { password } },
  };
  await runner.start(job, signal);
  expect(await everythingIn(join(directory, "jobs"))).toContain(password);
  const claim = await readFile(join(directory, "jobs/killed-1/claim"), "utf8");
  process.kill(Number(claim.split(" ")[0]), "SIGKILL");
  const look = () => runner.look("killed-1", { waitMs: 0, signal });
  await expect.poll(look, { timeout: 20_000 }).toMatchObject({ kind: "lost" });
  expect(await everythingIn(join(directory, "jobs"))).not.toContain(password);
});

test("what a start that was given up or killed has left keeps no secret for longer than an hour", async () => {
  const directory = await bundleFolder();
  const job = (id: string): Job => ({
    ...{ id, action: "provision", limits, operation: null },
    spec: bundleSpec({ command: ["true"] }),
    artifact: { kind: "files", repository: "x", digest: `sha256:${"0".repeat(64)}` },
    input: { secrets: { password } },
    secrets: { server: { password } },
  });
  const open = () => openProcessRunner({ directory, files: async () => directory, unsandboxed: true });
  const runner = await open();
  const cancelled = new Error("cancelled");
  await expect(runner.start(job("early"), AbortSignal.abort(cancelled))).rejects.toThrow(cancelled);
  expect(await everythingIn(directory)).not.toContain(password);

  /** As long ago as that, a start was given up after the folder was made. */
  const leave = async (id: string, ageMs: number) => {
    await expect(runner.start(job(id), givenUpOncePlaced(cancelled))).rejects.toThrow(cancelled);
    const at = new Date(Date.now() - ageMs);
    for (const path of [`jobs/${id}/exit`, `running/${id}`]) await utimes(join(directory, path), at, at);
  };
  for (const [id, ageMs] of [
    ["old", 7_200_000],
    ["young", 60_000],
    ["killed", 7_200_000],
  ] as const)
    await leave(id, ageMs);
  // Killed before the folder had its name.
  await rename(join(directory, "jobs/killed"), join(directory, "jobs/.killed"));
  expect(await readdir(join(directory, "jobs"))).toHaveLength(3);
  const again = await open();
  expect(await again.jobs()).toEqual([]);
  // The young one may be about to be started.
  expect(await readdir(join(directory, "jobs"))).toEqual(["young"]);
  const { signal } = new AbortController();
  expect(await again.look("old", { waitMs: 0, signal })).toEqual({ kind: "unknown" });
});

test("F5-83: what is kept of a log has no secret in it, also for those who do not know the secret any more", async () => {
  const directory = await bundleFolder();
  await writeFile(join(directory, "run"), 'cat "$OSBERT_INPUT" >&2\n');
  const open = () =>
    openProcessRunner({ directory: join(directory, "work"), files: async () => directory, unsandboxed: true });
  const { signal } = new AbortController();
  const secrets = { server: { password: "0f-the-operator" } };
  const artifact = { kind: "files", repository: "x", digest: `sha256:${"0".repeat(64)}` } as const;
  const spec = bundleSpec({ command: ["sh", "./run"] });
  const runner = maskLog(await open(), () => ["0f-the-operator"]);
  const job = { id: "told", action: "provision", spec, artifact, input: { secrets: secrets.server }, secrets } as const;
  await runner.start({ ...job, limits, operation: null }, signal);
  expect(await runner.look(job.id, { waitMs: 30_000, signal })).toMatchObject({ kind: "ended", exitCode: 0 });
  await runner.forget(job.id);
  // A broker that was started after the secret was exchanged.
  const log = await (await open()).log(job.id, 10_000);
  expect(log).toContain('"password":"***"');
  expect(log).not.toContain("0f-the-operator");
});

test("F5-83: of a classic bundle, parameters that the operator gives leave schemas, conditions and forms", () => {
  const parsed = parseApb(
    `
version: 1.0
name: db-apb
description: A database
bindable: true
async: optional
plans:
  - name: dev
    description: One server
    parameters:
      - { name: mode, type: enum, enum: [local, remote], required: true, display_group: Server }
      - { name: host, type: string, required: true, display_group: Server, dependencies: [{ key: mode, value: remote }] }
      - { name: password, type: string, required: true, display_type: password }
`,
    2,
  );
  if (parsed.kind === "invalid") throw new Error(JSON.stringify(parsed.problems));
  const [password] = hideParameters(parsed.spec, new Set(["password"])).plans;
  expect(password?.schemas.provision).toMatchObject({ required: ["mode"] });
  expect(password?.schemas.provision).toHaveProperty("allOf[0].then.required", ["host"]);
  expect(JSON.stringify(password)).not.toContain('"password"');
  // Nobody knows whether the condition holds: nothing is asked for because of it.
  const [mode] = hideParameters(parsed.spec, new Set(["mode"])).plans;
  expect(mode?.schemas.provision).toMatchObject({ required: ["password"], allOf: [{}] });
  expect(JSON.stringify(mode)).not.toContain('"mode"');
  expect(hideParameters(parsed.spec, new Set())).toBe(parsed.spec);
});
