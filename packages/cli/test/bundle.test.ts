import { chmodSync, existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { JsonObject } from "@osbert/protocol";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { required } from "../../../tools/required.js";
import { type LeftOut, type RunningServer, registryAccount, startRegistry } from "../../../tools/servers.js";
import { type KeptStates, keptAfter, nothingKept, readStateFile, writeStateFile } from "../src/bundle/state-file.js";
import { folderWith, run, start } from "./program.js";

// Each test starts the program several times.
vi.setConfig({ testTimeout: 240_000 });

let registry: RunningServer | LeftOut;

beforeAll(async () => {
  registry = await startRegistry({ kind: "htpasswd" });
});

afterAll(async () => {
  if (!("leftOut" in registry)) await registry.stop();
});

/** A folder with a bundle that `osbert bundle new` has made, and its program changed. */
async function newBundle(program?: string): Promise<string> {
  const cwd = folderWith({});
  expect((await run(["bundle", "new", "team-folder"], { cwd })).status).toBe(0);
  if (program !== undefined) writeFileSync(join(cwd, "team-folder", "run.sh"), `#!/bin/sh\n${program}`);
  return cwd;
}

test("a new bundle is never written over another, and its name is checked", async () => {
  const cwd = await newBundle();
  writeFileSync(join(cwd, "team-folder", "osbert.yaml"), "mine");
  const again = await run(["bundle", "new", "team-folder"], { cwd });
  expect(again).toMatchObject({ status: 1, stderr: "team-folder is there already; choose another name\n" });
  expect(readFileSync(join(cwd, "team-folder", "osbert.yaml"), "utf8")).toBe("mine");
  const outside = await run(["bundle", "new", "../team"], { cwd });
  expect(outside).toMatchObject({ status: 1, stderr: expect.stringMatching(/lower case letters/) as string });
});

test("lint names the line of a problem and ends with 1; with advice alone it ends with 0; apb.yml is read, too", async () => {
  const cwd = await newBundle();
  const file = join(cwd, "team-folder", "osbert.yaml");
  const yaml = readFileSync(file, "utf8");
  writeFileSync(file, yaml.replace("command:", "comand:"));
  const wrong = await run(["bundle", "lint", "team-folder"], { cwd });
  expect(wrong.stdout).toMatch(/^team-folder\/osbert.yaml:5 problem: comand .*command/m);
  expect(wrong.stderr).toMatch(/^problems: 1, /);
  expect(wrong.status).toBe(1);
  writeFileSync(file, yaml.replace("version: 0.1.0\n", ""));
  const advised = await run(["bundle", "lint"], { cwd: join(cwd, "team-folder") });
  expect(advised.stdout).toMatch(/^osbert.yaml\S* advice: version is missing/);
  expect(advised.status).toBe(0);
  const classic = folderWith({ "apb.yml": "version: 1.0\nname: a-apb\nplans: 3\n" });
  const { stdout, status } = await run(["bundle", "lint"], { cwd: classic });
  expect(stdout).toMatch(/^apb.yml:3 problem: plans /m);
  expect(status).toBe(1);
  const empty = await run(["bundle", "lint"], { cwd: folderWith({}) });
  expect(empty).toMatchObject({
    status: 1,
    stderr: expect.stringMatching(/neither osbert.yaml nor apb.yml/) as string,
  });
});

test("run gives an action what a broker would, keeps its state, and masks credentials unless they are asked for", async () => {
  const cwd = await newBundle(`
input=$(cat)
case "$1" in
  provision) echo '{"progress":"half way"}'; echo '{"state":{"name":"one"}}'; echo '{"dashboard":"https://ann:pass@one.example/?token=1&b=#c"}' ;;
  bind) case "$input" in *'"state":{"name":"one"}'*) ;; *) exit 3 ;; esac
    echo "the password is hunter2-secret" >&2
    echo '{"credentials":{"password":"hunter2-secret","hosts":["a"]}}' ;;
  deprovision) echo '{"refused":"not on a Monday"}'; exit 64 ;;
esac
`);
  const options = ["team-folder", "--unsandboxed", "--state-file", "state.json"];
  const provision = await run(["bundle", "run", "provision", ...options, "-P", '{"label":"books"}'], { cwd });
  expect(provision.stderr).toBe("progress: half way\n");
  expect(provision.stdout).toBe(
    'state: {"name":"one"}\ndashboard: https://***@one.example/?token=***&b=***#***\nprovision: is done (exit code 0)\n',
  );
  expect(provision.status).toBe(0);
  expect(JSON.parse(readFileSync(join(cwd, "state.json"), "utf8"))).toEqual({
    state: { name: "one" },
    credentials: null,
    parameters: { label: "books" },
    bindings: {},
  });
  expect(statSync(join(cwd, "state.json")).mode & 0o777).toBe(0o600);

  const bind = await run(["bundle", "run", "bind", ...options], { cwd });
  expect(bind.stdout).toContain('credentials: {"password":"***","hosts":["***"]}\n');
  expect(bind.stderr).toBe("log: the password is ***\n");
  const shown = await run(["bundle", "run", "bind", ...options, "--show-credentials"], { cwd });
  expect(shown.stdout).toContain('"password":"hunter2-secret"');

  const refused = await run(["bundle", "run", "deprovision", ...options], { cwd });
  expect(refused).toMatchObject({ status: 1, stdout: "deprovision: refused: not on a Monday (exit code 64)\n" });
  const update = await run(["bundle", "run", "provision", ...options, "-P", '{"lable":"x"}'], { cwd });
  expect(update.stderr).toMatch(/^the broker would refuse this provision: .*lable/);
  expect(update.status).toBe(1);
  const notJson = await run(["bundle", "run", "provision", ...options, "-P", "hunter2"], { cwd });
  expect(notJson.stderr).toMatch(/^--parameters: it is not JSON/);
  expect(notJson.stderr).not.toContain("hunter2");
  expect(notJson.status).toBe(2);
});

test("run sends what a broker would after the runs before: parameters, the state of the binding that is meant, and nothing of what is gone", async () => {
  const cwd = await newBundle(`
cat "$OSBERT_INPUT" >>inputs; echo >>inputs
case "$1" in bind) echo '{"state":{"user":"bob"}}'; echo '{"credentials":{"a":1}}' ;; esac
`);
  const runs = async (action: string, ...more: readonly string[]) => {
    const options = ["team-folder", "--unsandboxed", "--state-file", "state.json", ...more];
    const { status, stderr } = await run(["bundle", "run", action, ...options], { cwd });
    expect(status, stderr).toBe(0);
    const inputs = readFileSync(join(cwd, "team-folder", "inputs"), "utf8")
      .trim()
      .split("\n");
    return JSON.parse(inputs.at(-1) ?? "");
  };
  const file = join(cwd, "state.json");
  const b1 = { ...nothingKept, state: { user: "ann" } };
  const kept = { ...nothingKept, state: { name: "one" }, parameters: { label: "books" }, bindings: { b1 } };
  await writeStateFile(file, kept);
  expect((await runs("update")).previous.parameters).toEqual({ label: "books" });
  expect(await runs("bind", "--binding", "b1")).toMatchObject({ bindingState: {}, state: { name: "one" } });
  expect((await runs("unbind", "--binding", "b1")).bindingState).toEqual({ user: "bob" });
  expect(await readStateFile(file, "b1")).toEqual({ ...kept, bindings: {} });
  // As earlier versions wrote it.
  writeFileSync(file, JSON.stringify({ state: { a: 1 }, bindingState: { b: 2 } }));
  expect(await readStateFile(file, "b3")).toEqual({
    ...{ ...nothingKept, state: { a: 1 } },
    bindings: { b3: { ...nothingKept, state: { b: 2 } } },
  });
});

const noOutput = {
  ...{ progress: null, state: {}, credentials: null, dashboard: null, refused: null, retryAfterSeconds: null },
  ...{ lines: 0, stateLines: 0, rubbish: null },
};

test("run keeps the credentials and parameters of a classic bundle for its later actions", () => {
  const said = (credentials: JsonObject | null, kind: "done" | "not known" = "done") => ({
    ...{ end: { kind } as const, output: { ...noOutput, credentials } },
  });
  const empty = { ...nothingKept, bindings: {} };
  const asked = { binding: "b1", parameters: { region: "eu" } };
  const made = keptAfter(empty, { ...asked, action: "provision", tried: said({ user: "root" }) });
  expect(made).toEqual({ state: {}, credentials: { user: "root" }, parameters: { region: "eu" }, bindings: {} });
  const update = { binding: "b1", action: "update", parameters: { size: 2 } } as const;
  const changed = keptAfter(made, { ...update, tried: said(null) });
  expect(changed).toEqual({ ...made, parameters: { region: "eu", size: 2 } });
  const failed = { end: { kind: "failed", reason: "no" }, output: noOutput } as const;
  expect(keptAfter(made, { ...update, tried: failed })).toEqual(made);
  const gone = keptAfter(made, { ...asked, action: "deprovision", tried: said(null) });
  expect([gone, keptAfter(made, { ...asked, action: "deprovision", tried: failed })]).toEqual([empty, made]);
  const bind = { binding: "b1", action: "bind", parameters: { role: "reader" } } as const;
  const of = (kept: KeptStates) => kept.bindings.b1;
  const bound = { state: {}, parameters: { role: "reader" } };
  const own = { user: "reader" };
  expect(of(keptAfter(made, { ...bind, tried: said(own) }))).toEqual({ ...bound, credentials: own });
  expect(of(keptAfter(made, { ...bind, tried: said(null, "not known") }))).toEqual({
    ...bound,
    credentials: { user: "root" },
  });
});

test("run and test give a bundle what an operator would, from files, and show it nowhere", async () => {
  const cwd = await newBundle(`
cat "$OSBERT_INPUT" >&2
grep -q '"secrets":{"password":"hunter2-secret"}' "$OSBERT_INPUT" || exit 3
case "$1" in bind) echo '{"credentials":{"a":1}}' ;; esac
`);
  writeFileSync(join(cwd, "password"), "hunter2-secret\n");
  const options = ["team-folder", "--unsandboxed", "--secret", "password=password"];
  const provision = await run(["bundle", "run", "provision", ...options], { cwd });
  expect(provision).toMatchObject({ status: 0, stdout: "provision: is done (exit code 0)\n" });
  expect(provision.stderr).toContain('"secrets":{"password":"***"}');
  const tested = await run(["bundle", "test", ...options], { cwd });
  expect([tested.status, tested.stdout]).toEqual([0, expect.stringMatching(/the bundle passed\n$/)]);
  const wrong = await run(["bundle", "test", "team-folder", "--secret", "password"], { cwd });
  expect([wrong.status, wrong.stderr]).toEqual([2, expect.stringMatching(/a key, = and the name of a file/)]);
});

test("a container needs an image and an engine, and says which of them is missing", async () => {
  const cwd = await newBundle();
  const told = async (...options: readonly string[]) => {
    const { status, stderr } = await run(["bundle", "test", "team-folder", ...options], { cwd });
    return `${status} ${stderr}`;
  };
  expect(await told("--runner", "container")).toMatch(/^1 --runner container needs --image/);
  expect(await told("--image", "x")).toMatch(/^1 --image and --engine are for containers; add --runner container/);
  expect(await told("--runner", "container", "--image", "x", "--engine", "/none/podman")).toMatch(
    /^1 the program that runs containers does not answer/,
  );
});

test("Ctrl-C stops the bundle that runs", async () => {
  const cwd = await newBundle('echo $$ > "$TMPDIR/pid"; echo "{\\"progress\\":\\"pid $$\\"}"; sleep 600\n');
  const started = start(["bundle", "run", "provision", "team-folder", "--unsandboxed"], { cwd });
  const [, pid = ""] = await started.says(/progress: pid (\d+)/);
  started.signal("SIGINT");
  expect(await started.ended).toBe(1);
  expect(started.stderr()).toMatch(/stopped\n$/);
  expect(existsSync(`/proc/${pid}`)).toBe(false);
});

test("test ends with 1 and says which action cannot be run twice", async () => {
  const cwd = await newBundle(`
cat > /dev/null
case "$1" in
  provision) mkdir MADE ;;
  bind) echo '{"credentials":{"a":1}}' ;;
esac
`);
  const program = join(cwd, "team-folder", "run.sh");
  writeFileSync(program, readFileSync(program, "utf8").replace("MADE", join(cwd, "made")));
  chmodSync(program, 0o755);
  const { stdout, status } = await run(["bundle", "test", "team-folder", "--unsandboxed"], { cwd });
  expect(stdout).toMatch(/^provision: failed\n {2}problem: the second run .* exit code 1\n {2}log: mkdir/);
  expect(stdout).toMatch(/^bind: left out\n[\s\S]*^deprovision: passed, twice\nthe bundle failed\n$/m);
  expect(status).toBe(1);
});

test("build writes one digest to a file and to a folder, and push the same to a registry, with credentials from the environment or a file", async () => {
  const cwd = await newBundle();
  const built = await run(["bundle", "build", "team-folder", "--out", "bundle.tar"], { cwd });
  expect(built.stdout).toMatch(/^sha256:[0-9a-f]{64}\n$/);
  expect((await run(["bundle", "build", "team-folder", "--out", "layout/"], { cwd })).stdout).toBe(built.stdout);
  const digest = built.stdout.trim();
  expect(existsSync(join(cwd, "layout", "blobs", digest.replace(":", "/")))).toBe(true);

  const found = required("a push to a registry", registry);
  if (found === undefined) return;
  const target = `${new URL(found.url).host}/team/team-folder:0.1.0`;
  const push = (args: readonly string[], env = {}) =>
    run(["bundle", "push", "team-folder", target, "--plain-http", ...args], { cwd, env });
  const nobody = await push([]);
  expect(nobody.stderr).toMatch(/^\S+team-folder:0.1.0: the source wants other credentials/);
  expect(nobody.status).toBe(1);
  const withTls = await run(["bundle", "push", "team-folder", target], { cwd });
  expect(withTls).toMatchObject({
    status: 1,
    stderr: expect.stringMatching(/does not speak TLS.*--plain-http/) as string,
  });
  const { username, password } = registryAccount;
  const env = { OSBERT_REGISTRY_USERNAME: username, OSBERT_REGISTRY_PASSWORD: password };
  expect(await push([], env)).toMatchObject({ status: 0, stdout: `${target}@${digest}\n` });
  const wrong = await push([], { ...env, OSBERT_REGISTRY_PASSWORD: "hunter2" });
  expect(wrong.status).toBe(1);
  expect(wrong.stderr).not.toContain("hunter2");
  writeFileSync(join(cwd, "login.yaml"), `username: ${username}\npassword: ${password}\n`);
  expect((await push(["--credentials-file", "login.yaml"])).stdout).toBe(`${target}@${digest}\n`);
});
