import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { testBroker } from "@osbert/broker/testing";
import { systemClock } from "@osbert/journal";
import { memoryStore } from "@osbert/journal/memory";
import { expect, onTestFinished, test } from "vitest";
import { bundleFolder, folderServices } from "./folder-services.js";

const by = { actor: { type: "operator", subject: "ann" } } as const;
const sync = { acceptsIncomplete: false };

const yaml = (version: string, plan: string) =>
  `osbert: 1\nname: notes\nversion: ${version}\ndescription: Notes\ncommand: [sh, ./run.sh]\nbindable: true\nplans:\n  small:\n    description: One\n${plan}`;

async function start() {
  const bundles = await bundleFolder();
  const services = await folderServices(bundles);
  const flow = await testBroker({ services, store: memoryStore(), journal: { clock: systemClock } });
  onTestFinished(() => flow.stop());
  const offer = async (version: string, plan: string) => {
    await mkdir(join(bundles, "notes"), { recursive: true });
    await writeFile(join(bundles, "notes", "osbert.yaml"), yaml(version, plan));
    await writeFile(
      join(bundles, "notes", "run.sh"),
      `[ "$1" = bind ] && echo '{"credentials":{"by":"${version}"}}'\ngrep -q "actions:.*$1" osbert.yaml || ! grep -q actions: osbert.yaml || exit 8\nexit 0\n`,
    );
    await services.refresh("folder", by);
    const offered = async () =>
      (await flow.request("GET", "/v2/catalog")).body.services?.[0]?.plans[0].maintenance_info.version;
    await expect.poll(offered, { timeout: 20_000 }).toBe(version);
  };
  return { flow, offer };
}

const provision = (size: string) =>
  `    provision: { type: object, additionalProperties: false, properties: { size: { type: integer, ${size} } } }\n`;

test.each([
  ["without a schema of updates", ""],
  ["with one", "    update: { type: object, properties: { size: { type: integer }, note: { type: string } } }\n"],
])(
  "F5-35: an upgrade that kept parameters do not fit is 400 with their places, and nothing changes: %s",
  async (_, update) => {
    const { flow, offer } = await start();
    await offer("1.0.0", `${provision("maximum: 100")}${update}`);
    expect((await flow.provision("i1", { ...sync, parameters: { size: 50 } })).status).toBe(201);
    if (update !== "") expect((await flow.update("i1", { ...sync, parameters: { note: "mine" } })).status).toBe(200);
    const before = await flow.fetch("i1");
    await offer("2.0.0", `${provision("maximum: 10")}${update}`);
    const upgrade = { ...sync, with: { maintenance_info: { version: "2.0.0" } } };
    const refused = await flow.update("i1", upgrade);
    expect([refused.status, refused.body.description]).toEqual([
      400,
      expect.stringMatching(/^after the upgrade to plan small, .*size/),
    ]);
    expect((await flow.fetch("i1")).body).toEqual(before.body);
    expect((await flow.bind("i1", "b1", sync)).body).toEqual({ credentials: { by: "1.0.0" } });
    // With what the new version takes, it is upgraded.
    expect((await flow.update("i1", { ...upgrade, parameters: { size: 5 } })).status).toBe(200);
    expect((await flow.bind("i1", "b2", sync)).body).toEqual({ credentials: { by: "2.0.0" } });
  },
);

test("F5-42: of a plan that is no longer bindable, instances made before are bound by their own revision", async () => {
  const { flow, offer } = await start();
  await offer("1.0.0", "");
  expect((await flow.provision("i1", sync)).status).toBe(201);
  expect((await flow.bind("i1", "b1", sync)).status).toBe(201);
  await offer("2.0.0", "    bindable: false\n");
  expect((await flow.provision("i2", sync)).status).toBe(201);
  expect((await flow.bind("i2", "b1", sync)).status).toBe(422);
  expect((await flow.bind("i1", "b2", sync)).body).toEqual({ credentials: { by: "1.0.0" } });
  expect((await flow.fetch("i1", "b1")).status).toBe(200);
  for (const binding of ["b1", "b2"]) expect((await flow.unbind("i1", binding, sync)).status).toBe(200);
  const upgraded = await flow.update("i1", { ...sync, with: { maintenance_info: { version: "2.0.0" } } });
  expect(upgraded.status).toBe(200);
  expect((await flow.bind("i1", "b3", sync)).status).toBe(422);
});

test("an upgrade that changes nothing else is done if the bundle says that it has no action update; what changes more has failed", async () => {
  const { flow, offer } = await start();
  // The program says so, as classic bundles do, and not the description.
  const rest = `${provision("maximum: 100")}    metadata: { hint: "actions: provision deprovision bind unbind" }\n`;
  await offer("1.0.0", rest);
  expect((await flow.provision("i1", { ...sync, parameters: { size: 5 } })).status).toBe(201);
  await offer("2.0.0", rest);
  const upgrade = { ...sync, with: { maintenance_info: { version: "2.0.0" } } };
  for (const asked of [sync, upgrade]) {
    const failed = await flow.update("i1", { ...asked, parameters: { size: 6 } });
    expect([failed.status, failed.body.description]).toEqual([500, expect.stringContaining("no action update")]);
  }
  expect((await flow.update("i1", upgrade)).status).toBe(200);
  expect((await flow.fetch("i1")).body).toMatchObject({
    parameters: { size: 5 },
    maintenance_info: { version: "2.0.0" },
  });
  expect((await flow.bind("i1", "b1", sync)).body).toEqual({ credentials: { by: "2.0.0" } });
});

test("an instance of a bundle without the action update is upgraded, which runs nothing, and nothing else of it changes", async () => {
  const { flow, offer } = await start();
  const rest = `${provision("maximum: 100")}actions: [provision, deprovision, bind, unbind]\n`;
  await offer("1.0.0", rest);
  expect((await flow.provision("i1", { ...sync, parameters: { size: 5 } })).status).toBe(201);
  await offer("2.0.0", rest);
  const upgrade = { ...sync, with: { maintenance_info: { version: "2.0.0" } } };
  for (const asked of [sync, upgrade]) {
    const refused = await flow.update("i1", { ...asked, parameters: { size: 6 } });
    expect([refused.status, refused.body.description]).toEqual([422, expect.stringContaining("no action update")]);
  }
  expect((await flow.update("i1", { ...upgrade, parameters: { size: 5 } })).status).toBe(200);
  expect((await flow.fetch("i1")).body).toMatchObject({
    parameters: { size: 5 },
    maintenance_info: { version: "2.0.0" },
  });
  expect((await flow.bind("i1", "b1", sync)).body).toEqual({ credentials: { by: "2.0.0" } });
});
