import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { answersAt, ask, folderWith, run, type Started, servicesModule, start } from "./program.js";

// `osbert serve` as an operator without code has it: a file of settings, a folder of bundles, and the real program in a process of its own.

const patience = { timeout: 30_000 };

const osbertYaml = `
osbert: 1
name: notes
version: 1.0.0
description: Notes in a folder
bindable: true
command: [sh, ./run.sh]
plans:
  small:
    description: A small one
    free: true
`;

/** Tells that it began, waits for a word while there is none, and makes a folder. */
const runSh = (work: string) => `
at='${work}/made'
case "$1" in
provision)
  echo begun >>'${work}/begun'
  i=0; while [ ! -e '${work}/go' ] && [ $i -lt 600 ]; do sleep 0.1; i=$((i+1)); done
  mkdir -p "$at"; echo '{"state":{"made":"yes"}}';;
bind) echo '{"credentials":{"password":"s3cret-of-the-binding"}}';;
deprovision) grep -q '"made":"yes"' "$OSBERT_INPUT" && rm -rf "$at";;
esac
`;

interface Place {
  readonly cwd: string;
  /** Where the bundle leaves its traces. */
  readonly work: string;
}

function placeWith(settings: string): Place {
  const work = folderWith({});
  const cwd = folderWith({ "osbert.yaml": `${settings}${own}` });
  mkdirSync(join(cwd, "bundles", "notes"), { recursive: true });
  writeFileSync(join(cwd, "bundles", "notes", "osbert.yaml"), osbertYaml);
  writeFileSync(join(cwd, "bundles", "notes", "run.sh"), runSh(work));
  return { cwd, work };
}

const own = "listen: { port: 0 }\ncredentials: [{ username: a, password: b }]\n";
const bundles = `bundles:
  unsandboxed: true
  sources:
    - { name: ours, type: folder, path: bundles }
`;

interface Offering {
  readonly id: string;
  readonly name: string;
  readonly plans: readonly { readonly id: string }[];
}

/** Before the first reading platforms are told to come again. */
async function offered(url: string, name: string) {
  await expect.poll(async () => (await services(url)).map((each) => each.name), patience).toContain(name);
  const { id, plans } = (await services(url)).find((each) => each.name === name) as Offering;
  return { service_id: id, plan_id: plans[0]?.id ?? "" };
}

async function services(url: string): Promise<readonly Offering[]> {
  const { status, body } = await ask(url, "GET", "/v2/catalog");
  expect([200, 503]).toContain(status);
  return (body.services ?? []) as readonly Offering[];
}

async function stop(broker: Started): Promise<void> {
  broker.signal("SIGTERM");
  expect(await broker.ended).toBe(0);
}

const instance = "/v2/service_instances/one";
const binding = `${instance}/service_bindings/app`;

test("a folder of bundles is served without code, and a provision survives kill -9 without being run twice", async () => {
  const { cwd, work } = placeWith(bundles);
  const first = start(["serve"], { cwd });
  const url = await answersAt(first);
  expect(first.stdout()).toContain("with the bundles of 1 source;");
  const ids = await offered(url, "notes");
  await first.says(/info {2}source of bundles was read {"source":"ours","bundles":1}/);
  const body = { ...ids, organization_guid: "o", space_guid: "s" };
  const begun = await ask(url, "PUT", `${instance}?accepts_incomplete=true`, { body });
  expect(begun.status).toBe(202);
  await expect.poll(() => existsSync(join(work, "begun")), patience).toBe(true);
  first.signal("SIGKILL");
  expect(await first.ended).toBe("SIGKILL");

  const second = start(["serve"], { cwd });
  const again = await answersAt(second);
  // What is stored is offered at once, whatever becomes of the folder.
  expect((await services(again)).map(({ name }) => name)).toEqual(["notes"]);
  writeFileSync(join(work, "go"), "");
  const state = async () => (await ask(again, "GET", `${instance}/last_operation`)).body.state;
  await expect.poll(state, patience).toBe("succeeded");
  expect(readFileSync(join(work, "begun"), "utf8")).toBe("begun\n");
  expect(existsSync(join(work, "made"))).toBe(true);

  const bound = await ask(again, "PUT", binding, { body: ids });
  expect([bound.status, bound.body]).toEqual([201, { credentials: { password: "s3cret-of-the-binding" } }]);
  // The bundle is kept for what was made of it, when its source has lost it.
  rmSync(join(cwd, "bundles", "notes"), { recursive: true });
  const which = `service_id=${ids.service_id}&plan_id=${ids.plan_id}`;
  expect((await ask(again, "DELETE", `${binding}?${which}`)).status).toBe(200);
  expect((await ask(again, "DELETE", `${instance}?${which}`)).status).toBe(200);
  expect(existsSync(join(work, "made"))).toBe(false);
  await stop(second);
  const printed = [first, second].map((each) => each.stdout() + each.stderr()).join("");
  expect(printed).not.toContain("s3cret-of-the-binding");
  expect(second.stderr()).toContain("bundles.unsandboxed is true");
}, 120_000);

test("services of a module are offered beside bundles; a reload applies what it can and says what needs a restart", async () => {
  const { cwd } = placeWith(`module: ${servicesModule}\n${bundles}`);
  const broker = start(["serve"], { cwd });
  const url = await answersAt(broker);
  await offered(url, "notes");
  await offered(url, "database");
  const file = join(cwd, "osbert.yaml");
  const before = readFileSync(file, "utf8");
  writeFileSync(file, before.replace("type: folder", "type: floder"));
  await broker.says(/not reloaded .*\n?.*bundles\.sources\[0\]\.type: must be one of .*did you mean folder\?/);
  writeFileSync(file, before.replace("path: bundles", "path: bundles, tls: { ca: none.pem }"));
  await broker.says(/not reloaded .*\n?.*bundles\.sources\[0\]\.tls: is not a setting/);
  // Another folder, and what is in it, without a restart. What was offered stays until its grace is over.
  mkdirSync(join(cwd, "others", "lists"), { recursive: true });
  writeFileSync(join(cwd, "others", "lists", "osbert.yaml"), osbertYaml.replace("name: notes", "name: lists"));
  writeFileSync(join(cwd, "others", "lists", "run.sh"), "exit 0\n");
  writeFileSync(file, `${before.replace("path: bundles", "path: others")}log: { level: debug }\n`);
  await broker.says(/changed .*bundles\.sources/);
  await offered(url, "lists");
  expect((await services(url)).map(({ name }) => name)).toContain("notes");
  writeFileSync(file, before.replace("unsandboxed: true", "unsandboxed: true\n  concurrency: 3"));
  await broker.says(/only a restart changes bundles\.concurrency; until then the old values hold/);
  await stop(broker);
}, 120_000);

test("a bundle that cannot be offered is told once, with what is wrong, and holds up no other", async () => {
  const { cwd, work } = placeWith(bundles);
  mkdirSync(join(cwd, "bundles", "broken"));
  writeFileSync(join(cwd, "bundles", "broken", "osbert.yaml"), "osbert: 1\nname: broken\n");
  const broker = start(["serve"], { cwd });
  await offered(await answersAt(broker), "notes");
  await broker.says(/warn {2}bundles: spec\.rejected {"source":"ours","code":"spec\.rejected","spec":"broken",/);
  await broker.says(/info {2}source of bundles was read {"source":"ours","bundles":1}/);
  expect(broker.stderr()).not.toContain("bundle cannot be offered");
  expect(existsSync(join(work, "begun"))).toBe(false);
  await stop(broker);
  // Nothing has happened since, and whoever starts it is told all the same.
  const again = start(["serve"], { cwd });
  await again.says(/warn {2}bundle cannot be offered {"source":"ours","bundle":"broken:/);
  await stop(again);
}, 120_000);

test("osbert config checks sources without reading them, in the same words as osbert serve, and shows no secret", async () => {
  const registry = `bundles:
  registry:
    - { type: apiv2, name: old, url: "http://127.0.0.1:1", user: u, pass: hunter2 }
  sources:
    - { name: ours, type: distribution, url: "https://registry.example", tls: { ca: none.pem }, default: allow }
`;
  const { cwd } = placeWith(registry);
  for (const command of ["config", "serve"]) {
    const { status, stderr } = await run([command], { cwd });
    expect([command, status, stderr]).toEqual([
      command,
      2,
      expect.stringMatching(
        /^osbert\.yaml:5:7 bundles\.sources\[0\]: the file .*none\.pem cannot be read \(ENOENT\)\n$/,
      ),
    ]);
  }
  writeFileSync(join(cwd, "osbert.yaml"), `${registry.split("  sources:")[0]}${own}`);
  const right = await run(["config"], { cwd });
  expect([right.status, right.stderr]).toEqual([0, ""]);
  expect(right.stdout).toMatch(/^bundles\.registry +\[\{ ?"?name"?: ?"?old"?, ?"?type"?: ?"?apiv2"? ?\}\]/m);
  expect(right.stdout).not.toContain("hunter2");
}, 120_000);

test("F5-83: bundles get the operator's secrets, after a reload the new ones; nobody else sees them", async () => {
  const secrets = `  secrets:
    server: { sources: [ours], services: [notes], values: { password: { file: password } } }
`;
  const { cwd } = placeWith(`${bundles}${secrets}admin: { credentials: [{ username: ann, password: the-admin-s3cret }] }
`);
  const script = `case "$1" in bind) cat "$OSBERT_INPUT" >&2
if grep -q hunter2-of-the-operator "$OSBERT_INPUT"; then w=old; else w=new; fi; echo "{\\"credentials\\":{\\"word\\":\\"$w\\"}}";; esac
`;
  writeFileSync(join(cwd, "bundles", "notes", "run.sh"), script);
  writeFileSync(join(cwd, "password"), "hunter2-of-the-operator\n");
  const broker = start(["serve"], { cwd });
  const url = await answersAt(broker);
  const ids = await offered(url, "notes");
  const made = await ask(url, "PUT", instance, { body: { ...ids, organization_guid: "o", space_guid: "s" } });
  expect(made.status).toBe(201);
  expect((await ask(url, "PUT", binding, { body: ids })).body).toEqual({ credentials: { word: "old" } });
  writeFileSync(join(cwd, "password"), "hunter3-of-the-operator\n");
  broker.signal("SIGHUP");
  await broker.says(/reloaded \(SIGHUP\): changed bundles\.secrets\.server\.values\.password/);
  expect((await ask(url, "PUT", `${binding}-2`, { body: ids })).body).toEqual({ credentials: { word: "new" } });
  const runs = join(cwd, ".osbert", "bundles", "runs", "jobs");
  const authorization = `Basic ${Buffer.from("ann:the-admin-s3cret").toString("base64")}`;
  for (const job of readdirSync(runs)) {
    expect(existsSync(join(runs, job, "input.json"))).toBe(false);
    const log = await fetch(`${url}/admin/v1/bundles/jobs/${job}/log`, { headers: { authorization } });
    expect([log.status, await log.text()]).toEqual([200, expect.not.stringMatching(/hunter/)]);
  }
  await stop(broker);
  expect(broker.stdout() + broker.stderr()).not.toMatch(/hunter/);
}, 120_000);
