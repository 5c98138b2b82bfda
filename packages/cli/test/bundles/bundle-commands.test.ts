import { once } from "node:events";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createBroker } from "@osbert/broker";
import { serve } from "@osbert/broker/http";
import { bundleServices, openBundleSource, openProcessRunner, PushedStore, parseSources } from "@osbert/bundles";
import { buildBundle, ociArchive, openBundleFolder } from "@osbert/bundles/author";
import { memoryStore } from "@osbert/journal/memory";
import { createClient } from "@osbert/protocol/client";
import { expect, onTestFinished, test } from "vitest";
import { registerBundlesCommands } from "../../src/bundles/register-bundles-commands.js";
import { commandOf } from "../admin/admin-run.js";

const yaml = (name: string) => `
osbert: 1
name: ${name}
version: 1.0.0
description: Notes in a file
bindable: true
command: [sh, ./run.sh]
plans:
  small: { description: A small one, free: true }
`;

const platform = { username: "platform", password: "platform-password" };

async function folder(): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), "osbert-bundles-"));
  // A job that is on its last line still writes.
  onTestFinished(() => rm(path, { recursive: true, force: true, maxRetries: 10 }));
  return path;
}

/** A broker on a real socket that offers the bundles of a folder. */
async function start(names: readonly string[]) {
  const [bundles, work] = [await folder(), await folder()];
  for (const name of names) {
    await mkdir(join(bundles, name));
    await writeFile(join(bundles, name, "osbert.yaml"), yaml(name));
    await writeFile(join(bundles, name, "run.sh"), `echo "made $(grep -o 'pass-[a-z]*' "$OSBERT_INPUT")" >&2`);
  }
  const parsed = parseSources({
    sources: [{ name: "folder", type: "folder", path: bundles, interval: "1h" }, { type: "push" }],
  });
  if (parsed.kind === "invalid") throw new Error(JSON.stringify(parsed.faults));
  const ports = { readFile: (path: string) => readFile(path, "utf8"), environment: () => undefined, folder: bundles };
  const pushed = new PushedStore();
  const sources = await Promise.all(parsed.sources.map((config) => openBundleSource(config, { ...ports, pushed })));
  const services = bundleServices({
    sources,
    pushed,
    runner: (files) => openProcessRunner({ directory: join(work, "jobs"), files, unsandboxed: true }),
    mirror: join(work, "mirror"),
  });
  const broker = createBroker({ stderr: "nothing", services, store: memoryStore() });
  const served = await serve(broker, {
    port: 0,
    credentials: [platform],
    admin: { credentials: [{ username: "ops", password: "ops-password" }] },
  });
  onTestFinished(() => served.close({ drainMs: 0 }));
  const env = { OSBERT_ADMIN_URL: served.url, OSBERT_ADMIN_LOGIN: "ops:ops-password" };
  const run = (...args: string[]) => commandOf(registerBundlesCommands, ["bundles", ...args], env);
  const json = async (...args: string[]) => JSON.parse((await run(...args, "--json")).stdout);
  await expect.poll(async () => (await json("source", "folder")).specs.active).toBe(names.length);
  return { run, json, broker, bundles, client: createClient({ url: served.url, credentials: platform }) };
}

const because = ["--reason", "because"];

test("a source that could not be read as a whole is shown with why", async () => {
  const { run, json, bundles } = await start(["one"]);
  // Neither a file nor a folder.
  const socket = createServer().listen(join(bundles, "one", "socket"));
  onTestFinished(() => void socket.close());
  await once(socket, "listening");
  await run("refresh", "folder", ...because);
  await expect.poll(async () => (await json("source", "folder")).last_error).not.toBeNull();
  expect((await run("sources")).stdout).toMatch(/\nfolder +active +1 .* could not read all of it: one: \S/);
});

test("sources, specs and runs are shown to people and to programs", async () => {
  const { run, json } = await start(["one", "two"]);
  const sources = await run("sources");
  expect([sources.status, sources.stdout]).toEqual([
    0,
    expect.stringMatching(/^SOURCE +MODE[^\n]*\nfolder +active +2 /),
  ]);
  expect((await run("source", "folder")).stdout).toContain("2 active");
  const { items } = await json("specs", "folder");
  const spec = await run("spec", "folder", items[0].id);
  expect(spec.stdout).toMatch(/state +active since.*VERSION +DIGEST.*1\.0\.0 +sha256:/s);
  expect((await run("specs", "folder", "--state", "retired")).stdout).toBe("there are none\n");
  const runs = (await json("runs", "folder")).items;
  expect((await run("runs", "folder")).stdout).toContain("spec.added");
  expect((await run("run", "folder", String(runs[0].run))).stdout).toContain("spec.added");
  expect((await run("dangling")).stdout).toBe("there are none\n");
  expect((await run("collectable")).stdout).toBe("there is nothing\n");
  const none = await run("source", "nobody");
  expect([none.status, none.stderr]).toEqual([1, expect.stringContaining("there is no source of bundles")]);
});

test("decisions are carried out, and one that cannot be says why", async () => {
  const { run, json } = await start(["one", "two"]);
  const id = (await json("specs", "folder")).items[0].id;
  expect((await run("hold", "folder", id, ...because)).stdout).toBe(`spec ${id} is held\n`);
  expect((await run("spec", "folder", id)).stdout).toMatch(/held +by ops since .*: because/);
  const again = await run("hold", "folder", id, ...because);
  expect([again.status, again.stderr]).toEqual([1, expect.stringContaining("held already")]);
  for (const decision of ["release", "withdraw", "restore"])
    expect((await run(decision, "folder", id, ...because)).status).toBe(0);
  for (const decision of ["refresh", "disable", "enable", "drain"])
    expect((await run(decision, "folder", ...because)).status).toBe(0);
  expect((await run("confirm", "folder", "--observation", "x", ...because)).stderr).toContain("no removal is held");
  const digest = ["--digest", "sha256:00"];
  expect((await run("confirm-content", "folder", id, ...digest, ...because)).stderr).toContain("waits to be confirmed");
  expect((await run("hold", "folder", id)).status).toBe(2);
});

test("the log of an action is printed without what is secret", async () => {
  const { run, broker, client } = await start(["one"]);
  const [service] = [...broker.catalog.services.values()];
  const ids = { service_id: service?.offering.id ?? "", plan_id: service?.offering.plans[0]?.id ?? "" };
  const request = { ...ids, organization_guid: "o", space_guid: "s", parameters: { password: "pass-phrase" } };
  const made = await client.provision("i1", request);
  const job = `${made.kind === "accepted" ? made.operation : ""}-provision-1`;
  await expect.poll(async () => (await run("logs", "i1")).stdout).toBe("made ***\n");
  expect((await run("logs", "i1", job)).stdout).toBe("made ***\n");
  expect((await run("jobs", "i1")).stdout).toMatch(new RegExp(`${job} +provision +- .* done `));
  expect((await run("jobs", "nobody")).status).not.toBe(0);
  expect((await run("logs", "i1", "--binding", "nobody")).stderr).toContain("no bundle has run anything for nobody");
});

test("F5-86: events are listed with their codes, of a source or of one spec, newest first", async () => {
  const { run, json } = await start(["one", "two"]);
  const { stdout } = await run("specs", "folder");
  const one = /^(\S*one\S*)/m.exec(stdout)?.[1] ?? "";
  expect((await run("withdraw", "folder", one, "--reason", "it leaks")).status).toBe(0);
  expect((await run("events", "folder", one)).stdout).toMatch(
    /spec\.withdrawn .* by ops: it leaks\n[\s\S]*spec\.added /,
  );
  const { items, next } = await json("events", "folder", "--limit", "1");
  expect([items.length, items[0].code]).toEqual([1, "spec.withdrawn"]);
  const rest = await json("events", "folder", "--after", next);
  expect(
    rest.items.map(({ code }: { code: string }) => code).filter((code: string) => code === "spec.added"),
  ).toHaveLength(2);
  expect((await run("sources")).stdout).toMatch(/REMARKS\s+folder /);
});

test("a tag is read from its source now, with its faults and their places, and nothing of it is kept", async () => {
  const { run, json, bundles } = await start(["one"]);
  const read = await run("read", "folder", "one");
  expect([read.status, read.stderr]).toEqual([0, ""]);
  expect(read.stdout).toMatch(
    /found +bundle[\s\S]*format +osbert, runs as files[\s\S]*version +1\.0\.0[\s\S]*small +yes +yes +A small one/,
  );
  await mkdir(join(bundles, "wrong"));
  await writeFile(join(bundles, "wrong", "osbert.yaml"), yaml("wrong").replace("free: true", "free: perhaps"));
  const wrong = await run("read", "folder", "wrong:latest");
  expect([wrong.status, wrong.stdout]).toEqual([
    1,
    expect.stringMatching(/found +invalid[\s\S]*plans\.small\.free +\d+ +fault/),
  ]);
  const answer = await json("read", "folder", "wrong");
  expect(answer).toMatchObject({ found: "invalid", digest: expect.stringMatching(/^sha256:/), name: null });
  expect((await run("read", "folder", "nobody")).stdout).toMatch(/found +absent/);
  expect((await run("read", "folder", "one:v2")).stdout).toMatch(/found +absent/);
  await rm(bundles, { recursive: true });
  expect((await run("read", "folder", "one")).stdout).toMatch(/found +unreadable\nwhy .*does not answer/);
  expect((await run("read", "nobody", "one")).stderr).toContain("there is no source of bundles");
  expect((await run("read", "folder", "../etc")).stderr).toContain("repository must be a name");
  expect((await json("specs", "folder")).items.map(({ id }: { id: string }) => id)).toEqual(["one"]);
});

test("F5-64, F5-65: a folder, an archive and a classic bundle are added, listed and removed", async () => {
  const { run, json, broker, client } = await start(["one"]);
  const [own, classic] = [await folder(), await folder()];
  await writeFile(join(own, "osbert.yaml"), yaml("mine"));
  await writeFile(join(own, "run.sh"), "exit 0\n");
  const because = ["--reason", "a test"];
  const added = await run("add", own, ...because);
  expect([added.status, added.stdout, added.stderr]).toEqual([
    0,
    expect.stringMatching(/^mine is offered by the source push: sha256:[0-9a-f]{64}\n$/),
    "",
  ]);
  const names = () => [...broker.catalog.services.values()].map(({ offering }) => offering.name).sort();
  await expect.poll(names).toEqual(["mine", "one"]);
  const archive = join(await folder(), "bundle.tar");
  await writeFile(archive, ociArchive(await buildBundle(await openBundleFolder(own))));
  const again = await json("add", archive, "--repository", "team/mine", "--tag", "next", "--ttl", "7d", ...because);
  expect(again).toMatchObject({ spec: "team/mine:next", by: "ops", expires_at: expect.any(String) });
  const apb =
    "version: 1.0\nname: old-apb\ndescription: Old\nbindable: false\nplans: [{ name: a, description: b, free: true, parameters: [] }]\n";
  await writeFile(join(classic, "apb.yml"), apb);
  expect((await run("add", classic, ...because)).stderr).toContain("name it with --image");
  const image = `registry.example/old@sha256:${"ab".repeat(32)}`;
  expect((await run("add", classic, "--image", image, ...because)).stdout).toContain("old-apb is offered");
  await expect.poll(() => names().length).toBe(4);
  const listed = (await json("pushed")).items as { spec: string }[];
  expect(listed.map(({ spec }) => spec)).toEqual(["mine", "old-apb", "team/mine:next"]);
  expect((await run("pushed")).stdout).toContain("SPEC");

  const mine = [...broker.catalog.services.values()].find(({ offering }) => offering.name === "mine")?.offering;
  const ids = { service_id: mine?.id ?? "", plan_id: mine?.plans[0]?.id ?? "" };
  await client.provision("i1", { ...ids, organization_guid: "o", space_guid: "s" });
  const refused = await run("remove", "mine", ...because);
  expect([refused.status === 0, refused.stderr]).toEqual([false, expect.stringContaining("instances of mine")]);
  expect((await run("remove", ...because)).status).toBe(2);
  expect((await run("remove", "old-apb", "team/mine:next", ...because)).stdout).toBe("2 bundles were removed\n");
  expect((await run("remove", "--all", "--force", ...because)).stdout).toBe("1 bundle was removed\n");
  await expect.poll(names).toEqual(["one"]);
  for (const [args, why] of [
    [["add", join(own, "nothing")], "cannot be read (ENOENT)"],
    [["add", join(own, "osbert.yaml")], "not an archive of one bundle"],
    [["add", own, "--ttl", "soon"], "It must look like"],
  ] as const) {
    const { status, stderr } = await run(...args, ...because);
    expect([status, stderr]).toEqual([2, expect.stringContaining(why)]);
  }
});
