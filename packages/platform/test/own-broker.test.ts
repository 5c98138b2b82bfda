import { createBroker, defineService } from "@osbert/broker";
import { serve } from "@osbert/broker/http";
import { memoryStore } from "@osbert/journal/memory";
import { expect, onTestFinished, test } from "vitest";
import { openPlatform } from "../src/queue/open-platform.js";
import { shortPauses } from "./short-pauses.js";

const anna = { by: { actor: { type: "user", subject: "anna" } }, identity: { user: "anna" } } as const;

/** Osbert at both ends of the wire. */
async function bothEnds() {
  const seen: string[] = [];
  const service = defineService({
    id: "notes-id",
    name: "notes",
    description: "Keeps notes",
    planUpdateable: true,
    plans: {
      small: { id: "small-id", description: "small" },
      large: { id: "large-id", description: "large" },
    },
    async provision(operation, { identity }) {
      seen.push(`provision ${JSON.stringify(identity?.value)}`);
      await operation.sleep("it takes a while", 30);
      return { state: { host: "a" } };
    },
    async update(operation, { plan, parameters }) {
      await operation.step("change", () => void seen.push(`update ${plan} ${JSON.stringify(parameters)}`));
    },
    async deprovision(operation) {
      await operation.step("remove", () => void seen.push("deprovision"));
    },
    async bind(_operation, { binding }) {
      return { credentials: { user: binding.id } };
    },
    async unbind(operation) {
      await operation.step("revoke", () => void seen.push("unbind"));
    },
  });
  const broker = createBroker({ services: [service], store: memoryStore(), stderr: "bugs" });
  const credential = { username: "platform", password: "a-long-enough-secret-of-a-test" };
  const served = await serve(broker, { port: 0, credentials: [credential] });
  onTestFinished(() => served.close({ drainMs: 0 }));
  const platform = await openPlatform({ store: memoryStore(), pauses: shortPauses });
  await platform.start();
  onTestFinished(() => platform.stop());
  const authentication = { kind: "basic", ...credential } as const;
  await platform.brokers.register("own", { url: String(served.url), authentication }, anna);
  return { platform, seen };
}

test("an instance of Osbert's own broker is made, changed, bound and deleted through a platform", async () => {
  const { platform, seen } = await bothEnds();
  const { instances, journal } = platform;
  const ref = { space: "dev", name: "notes" };
  const ended = async (admitted: Promise<{ readonly kind: string; readonly operation?: string }>) => {
    const { operation = "" } = await admitted;
    return journal.ended("instance/dev/notes", operation, { withinMs: 20_000 });
  };
  const wanted = { offering: "notes", plan: "small", parameters: '{"pages":1}' };
  expect(await ended(instances.create(ref, wanted, anna))).toMatchObject({ kind: "succeeded" });
  expect(await instances.read(ref)).toMatchObject({ phase: "ready", applied: { plan: { name: "small" } } });
  expect(await ended(instances.bind(ref, { name: "app" }, anna))).toMatchObject({ kind: "succeeded" });
  expect(JSON.parse(await instances.credentials(ref, "app"))).toMatchObject({
    credentials: { user: expect.any(String) },
  });
  const changed = instances.update(ref, { plan: "large", parameters: '{"pages":2}' }, anna);
  expect(await ended(changed)).toMatchObject({ kind: "succeeded" });
  expect(await instances.read(ref)).toMatchObject({ applied: { plan: { name: "large" }, parameters: '{"pages":2}' } });
  expect(await ended(instances.unbind(ref, "app", anna))).toMatchObject({ kind: "succeeded" });
  expect(await ended(instances.delete(ref, {}, anna))).toMatchObject({ kind: "succeeded" });
  expect(seen.slice(-3)).toEqual(['update large {"pages":2}', "unbind", "deprovision"]);
  expect(new Set(seen.filter((line) => line.startsWith("provision")))).toEqual(new Set(['provision {"user":"anna"}']));
  expect((await platform.orphans.list({})).items).toEqual([]);
});
