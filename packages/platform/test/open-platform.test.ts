import { setTimeout as pause } from "node:timers/promises";
import { memoryStore } from "@osbert/journal/memory";
import { expect, onTestFinished, test } from "vitest";
import { type Asking, openPlatform } from "../src/index.js";
import { startMisbehaving } from "../src/testing/index.js";

const credentials = { username: "platform", password: "secret" };
const anna: Asking = { by: { actor: { type: "user", subject: "anna" } } };
const ref = { space: "s", name: "i" };

test("a library without HTTP: registered, created, updated, bound, unbound and deleted, over a real socket", async () => {
  const broker = await startMisbehaving({ credentials });
  onTestFinished(() => broker.stop());
  const platform = await openPlatform({ store: memoryStore() });
  await platform.start();
  onTestFinished(() => platform.stop());
  await platform.brokers.register(
    "b",
    { url: broker.url, authentication: { kind: "basic", ...credentials } },
    { by: { actor: { type: "operator", subject: "otto" } } },
  );
  const idle = async () => {
    for (let tries = 0; tries < 3_000; tries++) {
      const view = await platform.instances.read(ref);
      if (view?.queue.length === 0) return view;
      await pause(10);
    }
    throw new Error("its queue never emptied");
  };
  const big = '{"big":9007199254740993}';
  const created = await platform.instances.create(
    ref,
    { offering: "misbehaving", plan: "good", parameters: big },
    anna,
  );
  expect(created.kind).toBe("accepted");
  expect(await idle()).toMatchObject({ phase: "ready", applied: { parameters: big } });
  await platform.instances.update(ref, { parameters: '{"b":2}' }, anna);
  await idle();
  await platform.instances.bind(ref, { name: "app" }, anna);
  expect((await idle()).bindings).toMatchObject([{ name: "app", phase: "bound" }]);
  expect(JSON.parse(await platform.instances.credentials(ref, "app"))).toHaveProperty("credentials");
  expect(broker.state().instances).toHaveLength(1);
  await expect(platform.instances.delete(ref, {}, anna)).rejects.toMatchObject({ code: "has-bindings" });
  await platform.instances.delete(ref, { cascade: true }, anna);
  expect(await idle()).toMatchObject({ phase: "gone", bindings: [] });
  expect(broker.state().instances).toEqual([]);
  const bodies = broker.requests().map(({ method, body }) => `${method} ${body}`);
  expect(bodies.some((body) => body.startsWith("PUT") && body.includes("9007199254740993"))).toBe(true);
  const lines = await platform.instances.journal(ref, { limit: 500 });
  expect(lines.filter(({ family }) => family === "outcome").map(({ kind }) => kind)).toEqual(
    Array(5).fill("succeeded"),
  );
  expect(lines.every(({ summary }) => summary !== "")).toBe(true);
  const [sent] = lines.filter(({ kind }) => kind === "attempt-started");
  expect(sent).toMatchObject({ summary: "provision is sent, attempt 1", payload: { bodyHash: expect.any(String) } });
});
