import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createHandler } from "@osbert/broker/http";
import { testBroker } from "@osbert/broker/testing";
import { systemClock } from "@osbert/journal";
import { memoryStore } from "@osbert/journal/memory";
import { expect, onTestFinished, test } from "vitest";
import { followKind } from "../src/catalog/source-resource.js";
import { sourceKey } from "../src/reconcile/records.js";
import { bundleFolder, folderServices } from "./folder-services.js";

const yaml = (name: string) => `
osbert: 1
name: ${name}
version: 1.0.0
description: Notes in a file
command: [sh, ./run.sh]
plans:
  small: { description: A small one, free: true }
`;

const key = sourceKey("folder");
const dayMs = 24 * 60 * 60 * 1_000;
const patience = { timeout: 20_000 };
const authorization = `Basic ${Buffer.from("ann:the-admin-s3cret").toString("base64")}`;

/** A store whose clock can be put forward, and processes on it. */
async function lab() {
  const time = { aheadMs: 0 };
  const store = memoryStore({ clock: () => Date.now() + time.aheadMs });
  const bundles = await bundleFolder();
  const write = async (name: string) => {
    await mkdir(join(bundles, name), { recursive: true });
    await writeFile(join(bundles, name, "osbert.yaml"), yaml(name));
    await writeFile(join(bundles, name, "run.sh"), "");
  };
  const start = async () => {
    const services = await folderServices(bundles);
    const admin = { credentials: [{ username: "ann", password: "the-admin-s3cret" }] };
    const flow = await testBroker({
      ...{ services, store, journal: { clock: systemClock }, stderr: "nothing" },
      wire: (broker, options) => createHandler(broker, { ...options, admin }),
    });
    onTestFinished(() => flow.stop());
    const ask = async (method: string, path: string, body?: object) => {
      const headers = { authorization, ...(body !== undefined && { "content-type": "application/json" }) };
      const sent = { headers, ...(body !== undefined && { body: JSON.stringify(body) }) };
      return (await flow.request(method, `/admin/v1/bundles/sources/folder${path}`, sent)).body;
    };
    const { journal } = flow.broker;
    const followers = async () =>
      (await journal.entries(key, { after: 0, limit: 1_000 })).flatMap(({ kind, operation }) =>
        kind === "accepted" ? [operation] : [],
      );
    const open = async () => (await journal.operations(key)).items.filter(({ kind }) => kind === followKind);
    const specs = () => services.sources().get("folder")?.specs.size ?? 0;
    return { flow, journal, ask, followers, open, specs };
  };
  return { time, write, start };
}

test("whoever follows a source is relieved every day, so that what was noted can go some time, and a reading that was asked for is had", async () => {
  const { time, write, start } = await lab();
  await write("one");
  const first = await start();
  await expect.poll(first.specs, patience).toBe(1);
  expect(await first.followers()).toHaveLength(1);
  await first.flow.stop();

  time.aheadMs = 2 * dayMs;
  await write("two");
  const second = await start();
  const { reading } = await second.ask("POST", "/refresh", { reason: "look now" });
  const state = async () => (await second.ask("GET", `/readings/${reading}`)).state;
  await expect.poll(state, patience).toBe("ended");
  // Whichever of the two it was asked of: what there was when it was asked for has been seen.
  await expect.poll(second.specs, { timeout: 5_000 }).toBe(2);
  expect(await second.followers()).toHaveLength(2);
  const [one, ...others] = await second.open();
  expect([one?.id, others]).toEqual([(await second.followers())[1], []]);

  // The new one has its day before it.
  const at = one?.attempts ?? 0;
  await second.ask("POST", "/refresh", { reason: "look now" });
  await expect.poll(async () => (await second.open())[0]?.attempts, patience).toBeGreaterThan(at);
  expect(await second.followers()).toHaveLength(2);
});

test("a source whose operation was cancelled in the journal is followed again, and not at once", async () => {
  const { write, start } = await lab();
  await write("one");
  const { journal, open, specs } = await start();
  await expect.poll(specs, patience).toBe(1);
  const [before] = await open();
  await journal.cancel(key, before?.id ?? "", "by mistake", { actor: { type: "operator", subject: "ann" } });
  await expect.poll(async () => (await open())[0]?.id ?? before?.id, patience).not.toBe(before?.id);
  const [after] = await open();
  expect(after?.readyAt).toBeGreaterThan(journal.now() + 30_000);
});
