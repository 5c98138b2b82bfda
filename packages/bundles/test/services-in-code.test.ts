import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Service } from "@osbert/broker";
import { testBroker } from "@osbert/broker/testing";
import { memoryStore } from "@osbert/journal/memory";
import { expect, onTestFinished, test } from "vitest";
import { bundleFolder, folderServices } from "./folder-services.js";

const by = { actor: { type: "operator", subject: "ann" } } as const;

const inCode: Service = {
  id: "code-service",
  name: "database",
  description: "In code",
  bindable: false,
  plans: { only: { id: "code-plan", description: "The only one", free: true } },
  provision: async () => ({}),
  deprovision: async () => undefined,
};

async function write(bundles: string, name: string, ids: { service?: string; plan?: string } = {}, folder = name) {
  const service = ["osbert: 1", `name: ${name}`, ...(ids.service === undefined ? [] : [`id: ${ids.service}`])];
  const about = ["version: 1.0.0", "description: A test", "command: [sh, ./run.sh]"];
  const plan = ["plans:", "  small:", "    description: A small one"];
  const lines = [...service, ...about, ...plan, ...(ids.plan === undefined ? [] : [`    id: ${ids.plan}`]), ""];
  await mkdir(join(bundles, folder), { recursive: true });
  await writeFile(join(bundles, folder, "osbert.yaml"), lines.join("\n"));
  await writeFile(join(bundles, folder, "run.sh"), "exit 0\n");
}

test("F5-60: a bundle never takes the name or an id of a service in code, nor keeps the catalog from changing", async () => {
  const store = memoryStore();
  const bundles = await bundleFolder();
  const start = async () => {
    const services = await folderServices(bundles, { services: [inCode] });
    const flow = await testBroker({ services, store });
    onTestFinished(() => flow.stop());
    const names = async () => {
      const { body } = await flow.request("GET", "/v2/catalog");
      return body.services?.map(({ name }: { name: string }) => name).sort();
    };
    return { services, flow, names };
  };
  const { services, flow, names } = await start();
  await write(bundles, "good");
  await services.refresh("folder", by);
  await expect.poll(names).toEqual(["database", "good"]);
  await write(bundles, "database");
  await write(bundles, "same-id", { service: "code-service" });
  await write(bundles, "same-plan-id", { plan: "code-plan" });
  await write(bundles, "id-of-its-plan", { service: "code-plan" });
  await write(bundles, "other");
  const offered = ["database", "database-folder", "good", "other"];
  await services.refresh("folder", by);
  await expect.poll(names).toEqual(offered);
  await flow.stop();
  const again = await start();
  expect(await again.names()).toEqual(offered);
  expect((await again.flow.provision("i1", { service: "database", acceptsIncomplete: false })).status).toBe(201);
});
