import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createHandler } from "@osbert/broker/http";
import { testBroker } from "@osbert/broker/testing";
import { memoryStore } from "@osbert/journal/memory";
import { expect, onTestFinished, test } from "vitest";
import { bundleDescriptions, bundleRoutes } from "../src/admin/index.js";
import { bundleFolder, folderServices } from "./folder-services.js";

const yaml = (name: string, version = "1.0.0") => `
osbert: 1
name: ${name}
version: ${version}
description: Notes in a file
bindable: true
command: [sh, ./run.sh]
plans:
  small: { description: A small one, free: true }
`;
const authorization = `Basic ${Buffer.from("ann:the-admin-s3cret").toString("base64")}`;

/** A broker with bundles in a folder and an admin API. */
async function start({ guarded = false, store = memoryStore() } = {}) {
  const bundles = await bundleFolder();
  const services = await folderServices(bundles, { guarded });
  const admin = { credentials: [{ username: "ann", password: "the-admin-s3cret" }] };
  const flow = await testBroker({
    services,
    store,
    wire: (broker, options) => createHandler(broker, { ...options, admin }),
  });
  onTestFinished(() => flow.stop());
  const ask = async (method: string, path: string, body?: object) => {
    const headers = { authorization, ...(body !== undefined && { "content-type": "application/json" }) };
    const answer = await flow.request(method, `/admin/v1/bundles${path}`, {
      headers,
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const named = bundleRoutes.find(
      ([verb, route]) =>
        verb === method &&
        new RegExp(`^${route.replaceAll(/:\w+/g, "[^/]+")}$`).test(`/admin/v1/bundles${path.split("?")[0]}`),
    );
    // What a client would say of the answer.
    if (answer.status === 200 && named !== undefined) bundleDescriptions[named[2]].answer(answer.body);
    return answer;
  };
  const write = async (name: string, version?: string, script = "") => {
    await mkdir(join(bundles, name), { recursive: true });
    await writeFile(join(bundles, name, "osbert.yaml"), yaml(name, version));
    await writeFile(join(bundles, name, "run.sh"), script);
  };
  const names = async () =>
    ((await flow.request("GET", "/v2/catalog")).body?.services ?? []).map(({ name }: { name: string }) => name).sort();
  const refresh = () => ask("POST", "/sources/folder/refresh", { reason: "look now" });
  const specs = async () => {
    const { items } = (await ask("GET", "/sources/folder/specs")).body;
    return Object.fromEntries(items.map((item: { name: string; id: string }) => [item.name, item.id])) as Record<
      string,
      string
    >;
  };
  return { flow, ask, write, names, refresh, specs, bundles };
}

const because = { reason: "because" };

test("sources, specs and runs are shown, and a refresh reads the source", async () => {
  const { ask, write, names, refresh, specs } = await start();
  for (const name of ["one", "two"]) await write(name);
  const { status, body: asked } = await refresh();
  expect(status).toBe(200);
  const { reading } = asked;
  const stateOf = async (id: string) => (await ask("GET", `/sources/folder/readings/${id}`)).body.state;
  await expect.poll(() => stateOf(reading), { timeout: 10_000 }).toBe("ended");
  expect(await stateOf(`${reading}0000`)).toBe("waiting");
  for (const invented of ["none", `${reading}x`, "o999999.1", reading.replace(/\.[0-9]+$/, ".0")])
    expect((await ask("GET", `/sources/folder/readings/${invented}`)).status, invented).toBe(404);
  await expect.poll(names).toEqual(["one", "two"]);
  const { body } = await ask("GET", "/sources");
  expect(body.items).toMatchObject([
    { name: "folder", mode: "active", failures: 0, specs: { active: 2 }, guard: null },
  ]);
  expect((await ask("GET", "/sources/folder")).body).toEqual(body.items[0]);
  const first = (await ask("GET", "/sources/folder/specs?limit=1")).body;
  expect(first.items).toHaveLength(1);
  const rest = (await ask("GET", `/sources/folder/specs?after=${encodeURIComponent(first.next)}`)).body;
  expect(rest).toMatchObject({ items: [{ state: "active", offered: true, version: "1.0.0" }], next: null });
  expect((await ask("GET", "/sources/folder/specs?state=retired")).body.items).toEqual([]);
  const { one = "" } = await specs();
  expect((await ask("GET", `/sources/folder/specs/${encodeURIComponent(one)}`)).body).toMatchObject({
    ...{ id: one, name: "one", state: "active", history: [{ version: "1.0.0" }], hold: null, refused: null },
  });
  const runs = (await ask("GET", "/sources/folder/runs")).body.items;
  const codes = runs.flatMap(({ events }: { events: { code: string }[] }) => events.map(({ code }) => code));
  expect(codes.filter((code: string) => code === "spec.added")).toHaveLength(2);
  expect((await ask("GET", `/sources/folder/runs/${runs[0].run}`)).body).toMatchObject({ run: runs[0].run });
  expect((await ask("GET", "/sources/folder/runs/999999")).status).toBe(404);
});

test("of a source that is disabled no reading is promised: nothing would be read", async () => {
  const { ask, write, names, refresh } = await start();
  await write("one");
  await refresh();
  await expect.poll(names).toEqual(["one"]);
  expect((await ask("POST", "/sources/folder/disable", because)).status).toBe(200);
  const { status, body } = await refresh();
  expect([status, body.description]).toEqual([409, expect.stringContaining("is disabled")]);
  expect((await ask("POST", "/sources/folder/enable", because)).status).toBe(200);
  expect((await refresh()).status).toBe(200);
});

test("a spec is held, withdrawn and restored, with a name and a reason in the runs", async () => {
  const { ask, write, names, refresh, specs } = await start();
  for (const name of ["one", "two"]) await write(name);
  await refresh();
  await expect.poll(names).toEqual(["one", "two"]);
  const path = `/sources/folder/specs/${encodeURIComponent((await specs()).one ?? "")}`;
  expect((await ask("POST", `${path}/hold`, because)).status).toBe(200);
  expect((await ask("GET", path)).body).toMatchObject({ held: true, hold: { by: "ann", why: "because" } });
  const again = await ask("POST", `${path}/hold`, because);
  expect([again.status, again.body.description]).toEqual([409, expect.stringContaining("held already, by ann")]);
  expect((await ask("POST", `${path}/release`, because)).status).toBe(200);
  expect((await ask("POST", `${path}/withdraw`, { reason: "CVE" })).status).toBe(200);
  await expect.poll(names).toEqual(["two"]);
  expect((await ask("GET", path)).body).toMatchObject({ state: "retired", why: "CVE", offered: false });
  expect((await ask("POST", `${path}/restore`, because)).status).toBe(200);
  await expect.poll(names).toEqual(["one", "two"]);
  const { items } = (await ask("GET", "/sources/folder/runs")).body;
  expect(items[0]).toMatchObject({ by: "ann", events: [{ code: "spec.restored", why: "by ann: because" }] });
});

test("F5-17, F5-28: a source is disabled and enabled, and a removal that is held is confirmed by its observation", async () => {
  const { ask, write, names, refresh, bundles } = await start({ guarded: true });
  const all = ["a", "b", "c", "d", "e"];
  for (const name of all) await write(name);
  await refresh();
  await expect.poll(names).toEqual(all);
  expect((await ask("POST", "/sources/folder/disable", because)).status).toBe(200);
  expect((await ask("GET", "/sources/folder")).body.mode).toBe("disabled");
  for (const name of ["a", "b", "c", "d"]) await rm(join(bundles, name), { recursive: true });
  expect((await ask("POST", "/sources/folder/enable", because)).status).toBe(200);
  const guard = async () => (await ask("GET", "/sources/folder")).body.guard;
  await refresh();
  await expect.poll(guard).toMatchObject({ count: 4, of: 5 });
  const wrong = await ask("POST", "/sources/folder/confirm", { ...because, observation: "another" });
  expect(wrong.status).toBe(409);
  const { observation } = await guard();
  expect((await ask("POST", "/sources/folder/confirm", { ...because, observation })).status).toBe(200);
  await refresh();
  await expect.poll(names).toEqual(["e"]);
});

test("the log of an action is shown without what is secret", async () => {
  const { flow, ask, write, names, refresh } = await start();
  await write("one", "1.0.0", `echo "made with $(grep -o 'pass-[a-z]*' "$OSBERT_INPUT")" >&2`);
  await refresh();
  await expect.poll(names).toEqual(["one"]);
  const made = await flow.provision("i1", { parameters: { password: "pass-phrase" }, acceptsIncomplete: false });
  expect(made.status).toBe(201);
  const [entry] = await flow.broker.journal.entries("/i1", { after: 0, limit: 1 });
  const { status, body } = await ask("GET", `/jobs/${entry?.operation}-provision-1/log`);
  expect([status, body.log]).toEqual([200, expect.stringContaining("made with ***")]);
  expect(body.log).not.toContain("pass-phrase");
  expect((await ask("GET", "/jobs/..%2f..%2fetc/log")).status).toBe(400);
});

test("F5-54: instances whose service or revision no source knows are listed as dangling", async () => {
  const { flow, ask, write, names, refresh } = await start();
  for (const name of ["one", "two"]) await write(name);
  await refresh();
  await expect.poll(names).toEqual(["one", "two"]);
  expect((await flow.provision("i1", { service: "one", acceptsIncomplete: false })).status).toBe(201);
  expect((await flow.provision("i2", { service: "two", acceptsIncomplete: false })).status).toBe(201);
  expect((await ask("GET", "/dangling")).body).toEqual({ items: [], next: null });
  // What no program does: someone has removed a revision by hand.
  const key = "bundles.source.folder";
  const { items } = await flow.broker.journal.parts(key, "revision/", { limit: 10 });
  const part = items.find(({ id }) => id.includes("one"))?.id ?? "";
  await flow.broker.journal.transact(key, () => ({ result: null, change: { parts: { [part]: null } } }), {
    by: { actor: { type: "system", subject: "test" } },
  });
  expect((await ask("GET", "/dangling")).body.items).toMatchObject([
    { instance: "i1", phase: "ready", why: "its revision is not kept any more" },
  ]);
});

test("nobody without an admin credential, and nothing without a reason or at a wrong place", async () => {
  const { flow, ask } = await start();
  expect((await flow.request("GET", "/admin/v1/bundles/sources")).status).toBe(401);
  expect((await ask("POST", "/sources/folder/refresh", {})).status).toBe(400);
  expect((await ask("POST", "/sources/nobody/refresh", because)).status).toBe(404);
  expect((await ask("POST", "/sources/folder/specs/nothing/hold", because)).status).toBe(409);
  expect((await ask("GET", "/sources/folder/specs/nothing")).status).toBe(404);
  expect((await ask("GET", "/sources/folder/specs?state=strange")).status).toBe(400);
  expect((await ask("GET", "/nothing")).status).toBe(404);
  expect((await ask("DELETE", "/sources/folder")).status).toBe(405);
  expect((await ask("GET", "/collectable")).body).toEqual({ items: [], next: null });
});

test("the routes and what describes them are the same", () => {
  expect(Object.keys(bundleDescriptions).sort()).toEqual(bundleRoutes.map(([, , name]) => name).sort());
});
