import { type ChildProcess, spawn } from "node:child_process";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";

// What was asked of a broker's binding jobs: "Bind Job State", sentence by sentence. The broker is a process of its own that answers over
// HTTP, the bundle a program whose bind and unbind wait for the test's word.

const description = `
osbert: 1
name: slow
version: 1.0.0
description: Binds when it is told to
bindable: true
command: [sh, ./run.sh]
plans:
  small:
    description: A small one
    free: true
`;

/** Each bind and unbind says that it began, and waits for a file: what stands in it says how it ends. */
const script = (work: string) => `
case "$1" in bind|unbind) ;; *) exit 0;; esac
echo "$1" >>'${work}/begun'
echo '{"progress":"waiting for a word"}'
i=0; while [ ! -s "${work}/$1" ] && [ $i -lt 1200 ]; do sleep 0.05; i=$((i+1)); done
if [ "$(cat "${work}/$1")" = fail ]; then echo "the database said no to pass-phrase-of-the-user" >&2; exit 3; fi
[ "$1" = bind ] && echo '{"credentials":{"user":"u","password":"s3cret-of-the-binding"}}'
exit 0
`;

const patience = { timeout: 30_000 };
const instance = "/v2/service_instances/i1";
const binding = `${instance}/service_bindings/b1`;
const asynchronously = "?accepts_incomplete=true";
const admin = `Basic ${Buffer.from("ann:the-admin-s3cret").toString("base64")}`;

interface Running {
  readonly process: ChildProcess;
  readonly url: string;
}

/** A broker with one instance, i1, which is ready. */
async function start({ concurrency = 100 } = {}) {
  const root = await mkdtemp(join(tmpdir(), "osbert-bind-job-"));
  onTestFinished(() => rm(root, { recursive: true, force: true }));
  const [bundles, data, work] = [join(root, "bundles"), join(root, "data"), join(root, "work")];
  for (const folder of [join(bundles, "slow"), data, work]) await mkdir(folder, { recursive: true });
  await writeFile(join(bundles, "slow", "osbert.yaml"), description);
  await writeFile(join(bundles, "slow", "run.sh"), script(work));
  let broker = await startBroker(bundles, data, concurrency);
  const ask = async (method: string, path: string, body?: object) => {
    const headers = {
      "content-type": "application/json",
      "x-broker-api-version": "2.17",
      ...(path.startsWith("/admin/") && { authorization: admin }),
    };
    const answer = await fetch(`${broker.url}${path}`, {
      method,
      headers,
      ...(body && { body: JSON.stringify(body) }),
    });
    return { status: answer.status, body: JSON.parse((await answer.text()) || "{}") };
  };
  await expect.poll(async () => (await ask("GET", "/v2/catalog")).status, patience).toBe(200);
  const { services } = (await ask("GET", "/v2/catalog")).body;
  const ids = { service_id: services[0].id, plan_id: services[0].plans[0].id };
  const provision = async (path: string) =>
    expect((await ask("PUT", path, { ...ids, organization_guid: "o", space_guid: "s" })).status).toBe(201);
  await provision(instance);
  const query = `${asynchronously}&${new URLSearchParams(ids)}`;
  return {
    ask,
    provision,
    bind: (path = binding, parameters = { phrase: "pass-phrase-of-the-user" }) =>
      ask("PUT", `${path}${asynchronously}`, { ...ids, parameters }),
    unbind: () => ask("DELETE", `${binding}${query}`),
    polled: async (operation?: string) =>
      (await ask("GET", `${binding}/last_operation${operation === undefined ? "" : `?operation=${operation}`}`)).body,
    /** The one look: by the ids of instance and binding, which every request has. */
    job: async () => (await ask("GET", "/admin/v1/bundles/jobs?instance=i1&binding=b1")).body.items[0],
    begun: async () =>
      (await readFile(join(work, "begun"), "utf8").catch(() => "")).split("\n").filter((line) => line !== ""),
    let: (verb: "bind" | "unbind", how: "go" | "fail") => writeFile(join(work, verb), how),
    forbid: (verb: "bind" | "unbind") => rm(join(work, verb), { force: true }),
    kill: async () => {
      const ended = new Promise((resolve) => broker.process.once("exit", resolve));
      broker.process.kill("SIGKILL");
      await ended;
      broker = await startBroker(bundles, data, concurrency);
    },
  };
}

async function startBroker(bundles: string, data: string, concurrency: number): Promise<Running> {
  const fixture = fileURLToPath(new URL("bundle-broker.fixture.ts", import.meta.url));
  const args = ["--conditions=@osbert/source", "--import", "tsx", fixture, bundles, data];
  const env = { ...process.env, OSBERT_TEST_CONCURRENCY: String(concurrency) };
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"], env });
  onTestFinished(() => void child.kill("SIGKILL"));
  for await (const url of createInterface({ input: child.stdout })) return { process: child, url };
  throw new Error("the broker ended before it answered");
}

test("the state of a binding is tracked, whether its creation is in progress or complete", async () => {
  const { ask, bind, polled, begun, let: allow } = await start();
  const first = await bind();
  expect([first.status, first.body.operation]).toEqual([202, expect.any(String)]);
  await expect.poll(begun, patience).toEqual(["bind"]);
  const looked = async () => (await ask("GET", "/admin/v1/instances/i1/bindings/b1")).body;
  expect(await looked()).toMatchObject({
    phase: "creating",
    credentials: null,
    operation: { id: first.body.operation, verb: "bind", binding: "b1", last_error: null },
  });
  await expect.poll(polled, patience).toEqual({ state: "in progress", description: "waiting for a word" });
  await allow("bind", "go");
  await expect.poll(async () => (await polled()).state, patience).toBe("succeeded");
  expect(await looked()).toMatchObject({ phase: "ready", credentials: "***", operation: null });
  expect((await looked()).last_operation).toMatchObject({ id: first.body.operation, state: "succeeded" });
});

test("that a binding is found in the store does not make it complete: a second identical request gets the same operation, then the credentials", async () => {
  const { bind, polled, begun, let: allow } = await start();
  const { operation } = (await bind()).body;
  await expect.poll(begun, patience).toEqual(["bind"]);
  for (const again of [await bind(), await bind()])
    expect([again.status, again.body.operation]).toEqual([202, operation]);
  // Another one under the same id is none of these.
  expect((await bind(binding, { phrase: "something-else-entirely" })).status).toBe(409);
  await allow("bind", "go");
  await expect.poll(async () => (await polled(operation)).state, patience).toBe("succeeded");
  const after = await bind();
  expect([after.status, after.body.credentials]).toEqual([200, { user: "u", password: "s3cret-of-the-binding" }]);
  expect(await begun()).toEqual(["bind"]);
});

test("GET of a binding is 404 if it does not exist, or if the operation that makes it is still in progress", async () => {
  const { ask, bind, polled, begun, let: allow } = await start();
  expect((await ask("GET", binding)).status).toBe(404);
  await bind();
  expect((await ask("GET", binding)).status).toBe(404);
  await expect.poll(begun, patience).toEqual(["bind"]);
  expect((await ask("GET", binding)).status).toBe(404);
  await allow("bind", "go");
  await expect.poll(async () => (await polled()).state, patience).toBe("succeeded");
  const got = await ask("GET", binding);
  expect([got.status, got.body.credentials]).toMatchObject([200, { user: "u" }]);
});

test("from the binding alone its job is found, in one look: token, state, worker, method and error", async () => {
  const { ask, bind, polled, job, begun, let: allow } = await start();
  const { operation } = (await bind()).body;
  await expect.poll(begun, patience).toEqual(["bind"]);
  expect(await job()).toMatchObject({ operation, action: "bind", binding: "b1", error: null, log_kept: false });
  expect(["running", "waiting", "queued"]).toContain((await job()).state);
  expect((await job()).place).toMatch(/./);
  await allow("bind", "fail");
  await expect.poll(async () => (await polled()).state, patience).toBe("failed");
  expect(await job()).toMatchObject({ operation, state: "failed", error: "the bundle ended with exit code 3" });
  // Why it failed stays with the operation, without what was secret.
  expect(await job()).toMatchObject({ log_kept: true });
  const log = await ask("GET", `/admin/v1/bundles/jobs/${(await job()).job}/log?instance=i1`);
  expect(log.body.log).toBe("the database said no to ***\n");
});

test("a job that failed is not polled for ever: the failure is told with its reason, and a further request begins anew", async () => {
  const { ask, bind, polled, begun, let: allow, forbid } = await start();
  await allow("bind", "fail");
  const { operation } = (await bind()).body;
  await expect.poll(async () => (await polled(operation)).state, patience).toBe("failed");
  expect((await polled(operation)).description).toContain("exit code 3");
  expect((await ask("GET", binding)).status).toBe(404);
  await forbid("bind");
  const again = await bind();
  expect(again.status).toBe(202);
  expect(again.body.operation).not.toBe(operation);
  await expect.poll(begun, patience).toEqual(["bind", "bind"]);
  await allow("bind", "go");
  await expect.poll(async () => (await polled(again.body.operation)).state, patience).toBe("succeeded");
});

test("both records are stored before the first answer, and refer to each other: after a kill the second request still finds the job", async () => {
  const { ask, bind, polled, job, begun, let: allow, kill } = await start();
  const { operation } = (await bind()).body;
  // At once: accepted, and perhaps not begun.
  await kill();
  expect((await ask("GET", binding)).status).toBe(404);
  expect(await polled(operation)).toMatchObject({ state: "in progress" });
  await expect.poll(begun, patience).toEqual(["bind"]);
  await kill();
  // While it runs: neither failed nor done, and not started a second time.
  expect((await ask("GET", binding)).status).toBe(404);
  const again = await bind();
  expect([again.status, again.body.operation]).toEqual([202, operation]);
  expect(await job()).toMatchObject({ operation, action: "bind", error: null });
  await allow("bind", "go");
  await expect.poll(async () => (await polled(operation)).state, patience).toBe("succeeded");
  expect((await bind()).status).toBe(200);
  expect(await begun()).toEqual(["bind"]);
  expect((await job()).state).toBe("done");
});

test("not started yet is neither failed nor done", async () => {
  const { ask, provision, bind, polled, begun, let: allow, job } = await start({ concurrency: 1 });
  const other = "/v2/service_instances/i2";
  await provision(other);
  // The one place is taken.
  await bind(`${other}/service_bindings/b2`);
  await expect.poll(begun, patience).toEqual(["bind"]);
  const { operation } = (await bind()).body;
  const found = (await ask("GET", "/admin/v1/instances/i1/bindings/b1")).body;
  expect(found).toMatchObject({ phase: "creating", last_operation: null, operation: { id: operation, steps: 0 } });
  expect((await polled(operation)).state).toBe("in progress");
  expect((await ask("GET", binding)).status).toBe(404);
  const again = await bind();
  expect([again.status, again.body.operation]).toEqual([202, operation]);
  expect(await job()).toBeUndefined();
  expect(await begun()).toEqual(["bind"]);
  await allow("bind", "go");
  await expect.poll(async () => (await polled(operation)).state, { timeout: 60_000 }).toBe("succeeded");
  expect(await begun()).toEqual(["bind", "bind"]);
}, 120_000);

test("unbinding is tracked likewise, also over a kill", async () => {
  const { ask, bind, unbind, polled, job, begun, let: allow, kill } = await start();
  await allow("bind", "go");
  const bound = (await bind()).body.operation;
  await expect.poll(async () => (await polled(bound)).state, patience).toBe("succeeded");
  const first = await unbind();
  expect(first.status).toBe(202);
  const { operation } = first.body;
  await expect.poll(begun, patience).toEqual(["bind", "unbind"]);
  const again = await unbind();
  expect([again.status, again.body.operation]).toEqual([202, operation]);
  expect(await job()).toMatchObject({ operation, action: "unbind", binding: "b1", error: null });
  await kill();
  const looked = (await ask("GET", "/admin/v1/instances/i1/bindings/b1")).body;
  expect(looked).toMatchObject({ phase: "deleting", operation: { id: operation, verb: "unbind" } });
  // A binding that is going is not given out.
  expect((await ask("GET", binding)).status).toBe(422);
  expect((await unbind()).body.operation).toBe(operation);
  // What has ended before can still be told apart from it.
  expect((await polled(bound)).state).toBe("succeeded");
  await allow("unbind", "go");
  await expect.poll(async () => (await polled(operation)).state, patience).toBe("succeeded");
  expect((await ask("GET", binding)).status).toBe(404);
  expect((await unbind()).status).toBe(410);
  expect(await begun()).toEqual(["bind", "unbind"]);
});
