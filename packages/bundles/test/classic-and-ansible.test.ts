import { randomUUID } from "node:crypto";
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { required } from "../../../tools/required.js";
import { findProgram } from "../../../tools/server-process.js";
import { openBundleFolder } from "../src/author/bundle-folder.js";
import { localInput, planNamed } from "../src/author/local-input.js";
import { withLocalActions } from "../src/author/try-action.js";
import { nothingKept } from "../src/catalog/action-input.js";
import type { Action } from "../src/formats/bundle-spec.js";
import { endOf, noOutput, readOutput } from "../src/runners/action-output.js";
import { openContainerRunner, pullFailure } from "../src/runners/container-runner.js";
import { openProcessRunner } from "../src/runners/process-runner.js";
import type { Job, Runner } from "../src/runners/runner.js";
import { bundleSpec, limits } from "./bundle-jobs.js";
import { openTestEngine, type TestEngine, testEngineLeftOut } from "./test-engine.js";

const { signal } = new AbortController();
const files = { kind: "files", repository: "x", digest: `sha256:${"0".repeat(64)}` } as const;

const playbook = `- hosts: localhost
  connection: local
  gather_facts: false
  tasks:
    - copy:
        dest: "{{ lookup('env', 'TMPDIR') }}/result.json"
        content: "{{ {'credentials': {'user': parameters.user, 'password': 'made-by-ansible'}} | to_json }}"
`;
/** All that an Ansible bundle needs: standard output is for the contract, so the playbook prints on standard error. */
const program = `#!/bin/sh
echo '{"progress":"the playbook runs"}'
ansible-playbook -i localhost, --extra-vars @"$OSBERT_INPUT" playbook.yml >&2 || exit 1
cat "$TMPDIR/result.json"
`;

let home = "";
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), "osbert-ansible-"));
  await mkdir(join(home, "bundle"));
  await writeFile(join(home, "bundle", "playbook.yml"), playbook);
  await writeFile(join(home, "bundle", "run"), program, { mode: 0o755 });
  await chmod(home, 0o711);
});
afterAll(async () => {
  await rm(home, { recursive: true, force: true });
});

function job(part: Partial<Job>): Job {
  const input = { parameters: { user: "ann" } };
  const whose = { id: randomUUID(), operation: null };
  return { ...whose, action: "provision", spec: bundleSpec({}), artifact: files, input, limits, ...part };
}

async function outcome(runner: Runner, each: Job) {
  await runner.start(each, signal);
  const state = await runner.look(each.id, { waitMs: 50_000, signal });
  const output = readOutput(noOutput, (await runner.output(each.id, 0)).lines);
  return { end: endOf(state, output), output, log: await runner.log(each.id, 100_000) };
}

const ansible = { end: { kind: "done" }, output: { credentials: { user: "ann", password: "made-by-ansible" } } };

if (required("ansible", findProgram("ansible-playbook") ? {} : { leftOut: "apt-get install ansible-core" })) {
  if (required("bubblewrap", findProgram("bwrap") ? {} : { leftOut: "apt-get install bubblewrap" })) {
    test("an Ansible playbook runs as a process, in the sandbox", async () => {
      const runner = await openProcessRunner({
        directory: join(home, "process"),
        files: async () => join(home, "bundle"),
      });
      const { log, ...rest } = await outcome(runner, job({}));
      expect(rest, log).toMatchObject(ansible);
      expect(log).toContain("PLAY RECAP");
      expect(log).not.toContain("made-by-ansible");
    });
  }
}

describe.each(["podman", "docker"] as const)("%s:", (name) => {
  if (!required(name, testEngineLeftOut(name))) return test("is left out", () => undefined);
  let engine: TestEngine;
  beforeAll(async () => {
    engine = await openTestEngine(name);
  });
  afterAll(() => engine.remove());

  const open = async () => {
    const { program, engineArguments, runArguments, environment } = engine;
    return openContainerRunner({
      ...{ engine: program, engineArguments, runArguments, environment },
      directory: join(home, name),
      files: async () => join(home, "bundle"),
      baseImage: await engine.image("localhost/base:1", null),
    });
  };
  /** An image as classic bundles have it: an entry point that is given the action, and a command for the credentials. */
  const classicImage = async (entrypoint: string) => {
    const folder = await mkdtemp(join(home, "image-"));
    await mkdir(join(folder, "opt"));
    await writeFile(join(folder, "opt/entrypoint"), `#!/bin/bash\n${entrypoint}\n`, { mode: 0o755 });
    await writeFile(
      join(folder, "opt/broker-bind-creds"),
      "#!/bin/bash\n[ -e /tmp/creds ] && base64 /tmp/creds && touch /tmp/taken\n",
      { mode: 0o755 },
    );
    const path = "ENV PATH=/opt:/usr/bin:/bin";
    const image = await engine.image(`localhost/classic-${randomUUID()}`, folder, [
      'ENTRYPOINT ["/opt/entrypoint"]',
      path,
    ]);
    return engine.published(image);
  };
  const classic = (runtime: 1 | 2) => bundleSpec({ format: "apb", runtime, command: null });
  const input = { password: "of-the-user", _apb_plan_id: "small" };

  if (required("ansible", findProgram("ansible-playbook") ? {} : { leftOut: "apt-get install ansible-core" })) {
    test("an Ansible playbook runs in a container", async () => {
      const { log, ...rest } = await outcome(await open(), job({}));
      expect(rest, log).toMatchObject(ansible);
    });
  }

  test("a classic bundle gets its action and the path of its variables, and hands over credentials when it is asked", async () => {
    const runner = await open();
    const artifact = await classicImage(
      `echo "arguments: $*"; file=\${3#@}; grep -o '"password":"[a-z-]*"' "$file"
       [ "$1" = bind ] || exit 8
       printf '{"user":"u","secret":"made-by-apb"}' >/tmp/creds; until [ -e /tmp/taken ]; do sleep 0.1; done`,
    );
    const bound = await outcome(runner, job({ action: "bind", spec: classic(1), artifact, input }));
    expect(bound.end, bound.log).toEqual({ kind: "done" });
    expect(bound.output.credentials).toEqual({ user: "u", secret: "made-by-apb" });
    expect(bound.log).toContain("arguments: bind --extra-vars @/run/osbert/input.json");
    expect(bound.log).toContain('"password":"***"');
    const unbound = await outcome(runner, job({ action: "unbind", spec: classic(1), artifact, input }));
    expect(unbound.end).toEqual({ kind: "not known" });
    expect(await engine.run("ps", "--all", "--quiet")).toBe("");
  });

  test("F5-83: a classic bundle finds the operator's secrets as files, which are gone when it has ended", async () => {
    const runner = await open();
    const artifact = await classicImage('echo "letters: $(wc -c </etc/apb-secrets/apb-server/password)"');
    const secrets = { server: { password: "of-the-operator" } };
    const each = job({ action: "unbind", spec: classic(1), artifact, input: { ...input, ...secrets.server }, secrets });
    const { end, log } = await outcome(runner, each);
    expect(end, log).toEqual({ kind: "done" });
    expect(log).toContain(`letters: ${secrets.server.password.length}`);
    const folder = join(home, name, "jobs", each.id);
    expect(await readdir(folder)).not.toContain("secrets");
    expect(await readFile(join(folder, "input.json"), "utf8")).toContain('"password":"***"');
  });

  test("an author runs a bundle in containers: files in a base image, and a classic bundle in its own", async () => {
    await open();
    // The options of this machine, as a program of its own: authors have none to give.
    const program = join(home, "engine");
    const settings = Object.entries(engine.environment).map(([key, value]) => `${key}=${value}`);
    const words = (list: readonly string[]) => list.map((word) => `'${word}'`).join(" ");
    await writeFile(
      program,
      `#!/bin/sh
case "$1" in run) shift; set -- run ${words(engine.runArguments)} "$@";; esac
exec env ${words(settings)} ${words([engine.program, ...engine.engineArguments])} "$@"
`,
      { mode: 0o755 },
    );
    const tried = async (folder: string, image: string, action: Action) => {
      const bundle = await openBundleFolder(folder);
      const secrets = { local: { password: "of-the-operator" } };
      const about = { state: nothingKept, bindingState: nothingKept, instance: "i", binding: "b", secrets };
      const plan = planNamed(bundle.spec, undefined);
      const asked = localInput(bundle.spec, { action, plan, parameters: {}, previousParameters: {}, ...about });
      const options = { runner: { kind: "container", engine: program, image }, network: false, secrets } as const;
      return withLocalActions(bundle, { ...options, onProgress: () => undefined }, signal, (tryAction) =>
        tryAction(action, "key", asked),
      );
    };
    const own = await mkdtemp(join(home, "own-"));
    await chmod(own, 0o755);
    const yaml =
      "osbert: 1\nname: own\ndescription: Own\ncommand: [sh, ./run.sh]\nplans: { small: { description: One } }\n";
    await writeFile(join(own, "osbert.yaml"), yaml);
    await writeFile(join(own, "run.sh"), 'cat >&2; echo "{\\"state\\":{\\"at\\":\\"$(pwd)\\"}}"\n');
    const provisioned = await tried(own, "localhost/base:1", "provision");
    expect(provisioned, provisioned.log).toMatchObject({ end: { kind: "done" }, output: { state: { at: "/bundle" } } });
    expect(provisioned.log).toContain('"secrets":{"password":"***"}');

    const classicFolder = await mkdtemp(join(home, "classic-"));
    await writeFile(
      join(classicFolder, "apb.yml"),
      "version: 1.0\nname: c-apb\ndescription: C\nbindable: true\nasync: optional\nplans: [{ name: dev, description: One, parameters: [] }]\n",
    );
    const { image } = await classicImage(
      `[ "$1" = bind ] || exit 8
       printf '{"user":"u"}' >/tmp/creds; until [ -e /tmp/taken ]; do sleep 0.1; done; cat /etc/apb-secrets/apb-local/password`,
    );
    const bound = await tried(classicFolder, image, "bind");
    expect(bound, bound.log).toMatchObject({ end: { kind: "done" }, output: { credentials: { user: "u" } } });
    expect(bound.log).toContain("***");
  });

  test("a container whose job lost its process is removed before the job is told to be lost", async () => {
    const runner = await open();
    const artifact = await classicImage("sleep 300");
    const each = job({ action: "unbind", spec: classic(1), artifact, input });
    await runner.start(each, signal);
    const label = `label=osbert.job=${each.id}`;
    await expect.poll(() => engine.run("ps", "--quiet", "--filter", label), { timeout: 20_000 }).not.toBe("");
    const claim = await readFile(join(home, name, "jobs", each.id, "claim"), "utf8");
    process.kill(Number(claim.split(" ")[0]), "SIGKILL");
    const look = () => runner.look(each.id, { waitMs: 0, signal });
    await expect.poll(look, { timeout: 20_000 }).toEqual({ kind: "lost", why: "its process was killed" });
    expect(await engine.run("ps", "--all", "--quiet", "--filter", label)).toBe("");
  });

  test("what a bundle prints is in no log of the engine", async () => {
    const runner = await open();
    const artifact = await classicImage("echo s3cret-of-the-bundle; sleep 300");
    const each = job({ action: "unbind", spec: classic(1), artifact, input });
    await runner.start(each, signal);
    await expect.poll(() => runner.log(each.id, 1_000), { timeout: 20_000 }).toContain("s3cret-of-the-bundle");
    const driver = engine.run("inspect", "--format", "{{.HostConfig.LogConfig.Type}}", `osbert-${each.id}`);
    expect(await driver).toBe("none");
    await runner.stop(each.id);
  });

  test("a container that needs too much memory is told as such", async () => {
    const runner = await open();
    const artifact = await classicImage(`x=$(head -c 300000000 /dev/zero | tr '\\0' x); echo "\${#x}"; exit 3`);
    const small = { ...limits, memoryBytes: 67_108_864 };
    const each = job({ action: "unbind", spec: classic(1), artifact, input, limits: small });
    const { end, log } = await outcome(runner, each);
    // Podman does not always notice why the kernel killed it; then it is said as what may be the reason.
    const noticed = /^the bundle needed more memory than it may have, and was ended$/;
    const reason = expect.stringMatching(name === "docker" ? noticed : /more memory than it may have/);
    expect(end, log).toEqual({ kind: "failed", reason });
  });

  test("a bundle that goes on without what the kernel killed for its memory has done what it says", async () => {
    const runner = await open();
    const greedy = "head -c 300000000 /dev/zero | tail -c 300000000 >/dev/null";
    const artifact = await classicImage(`${greedy}; echo "it ended with $?"`);
    const small = { ...limits, memoryBytes: 67_108_864 };
    const each = job({ action: "unbind", spec: classic(1), artifact, input, limits: small });
    const { end, log } = await outcome(runner, each);
    expect(log).toContain("it ended with 137");
    expect(end).toEqual({ kind: "done" });
  });

  test("a container that the engine cannot start is told as such, and one that ended with the same code is not", async () => {
    const runner = await open();
    const missing = await outcome(runner, job({ spec: bundleSpec({ command: ["/no/such/program"] }) }));
    const reason = "the engine could not start the container; its log says why";
    expect(missing.end, missing.log).toEqual({ kind: "failed", reason });
    expect(missing.log).toContain("/no/such/program");
    const ended = await outcome(runner, job({ spec: bundleSpec({ command: ["sh", "-c", "exit 127"] }) }));
    expect(ended.end).toEqual({ kind: "failed", reason: "the bundle ended with exit code 127" });
  });

  test("a classic bundle of runtime 2 is refused, because it needs Kubernetes", async () => {
    const runner = await open();
    await expect(runner.start(job({ spec: classic(2) }), signal)).rejects.toThrow(
      /runtime 2 write a Secret of Kubernetes/,
    );
  });

  test("an image that nobody has is told as such, and nothing is started", async () => {
    const runner = await open();
    const artifact = { kind: "image", image: "127.0.0.1:1/none", digest: files.digest } as const;
    const each = job({ artifact, spec: bundleSpec({ command: null }) });
    await expect(runner.start(each, signal)).rejects.toMatchObject({ failure: "no image" });
    expect(await runner.look(each.id, { waitMs: 0, signal })).toEqual({ kind: "unknown" });
  });
  return undefined;
});

test.each([
  ["Error: reading manifest sha256:1 in x/y: manifest unknown", "image not found"],
  ["Error: x/y: unauthorized: access to the requested resource is not authorized", "image forbidden"],
  ["Error response from daemon: pull access denied for x, repository does not exist", "image forbidden"],
  ["Error: writing blob: no space left on device", "disk full"],
  ["Error: dial tcp 127.0.0.1:1: connect: connection refused", "no image"],
])("why an image could not be pulled: %s", (text, failure) => {
  expect(pullFailure(text)).toBe(failure);
});
