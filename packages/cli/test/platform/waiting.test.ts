import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { platformLab } from "./platform-lab.js";

const db = { space: "team", name: "db" };
const olga = { by: { actor: { type: "operator", subject: "olga" } } } as const;

/** A platform with a ready instance whose journal is longer than any page that a command reads of it. */
async function longJournal() {
  const lab = await platformLab();
  await lab.root("register", "mis", lab.broker.url);
  await lab.anna("create", "db", "misbehaving", "good");
  const { instances } = lab.platform;
  for (let turn = 0; turn < 60; turn++) {
    await instances.lock(db, { reason: "to write a line" }, olga);
    await instances.unlock(db, olga);
  }
  const { length } = await instances.journal(db, { limit: 500 });
  expect(length).toBeGreaterThan(110);
  return lab;
}

/** The operation that somebody else's command has just queued. */
async function queued(lab: Awaited<ReturnType<typeof platformLab>>, count: number): Promise<string> {
  const queue = async () => (await lab.platform.instances.read(db))?.queue ?? [];
  await expect.poll(async () => (await queue()).length, { timeout: 20_000, interval: 5 }).toBe(count);
  return (await queue()).at(-1)?.operation ?? "";
}

test("E10-31: a change that somebody cancels is told as cancelled, however long the journal is", async () => {
  const lab = await longJournal();
  lab.broker.setRules([{ call: "update", do: "async-endless" }]);
  await lab.anna("update", "db", "-p", "a:=1", "--no-wait");
  const waiting = lab.anna("update", "db", "-p", "b:=2");
  await lab.platform.instances.cancel(db, await queued(lab, 2), olga);
  expect(await waiting).toMatchObject({
    status: 1,
    stdout: "",
    stderr: expect.stringContaining("updating db was cancelled: cancelled by olga"),
  });
});

test("a change that fails and is put right by somebody else meanwhile has failed for whoever asked for it", async () => {
  const lab = await longJournal();
  lab.broker.setRules([{ call: "update", do: ["async", "403"] }]);
  await lab.anna("update", "db", "-p", "a:=1", "--no-wait");
  const waiting = lab.anna("update", "db", "-p", "b:=2", "--json");
  const operation = await queued(lab, 2);
  // Takes the place of what failed, so that the instance does not remember it any more.
  await lab.platform.instances.update(db, { parameters: '{"b":3}' }, olga);
  await expect
    .poll(async () => (await lab.platform.instances.read(db))?.applied?.parameters, { timeout: 20_000, interval: 5 })
    .toContain('"b":3');
  const ended = await waiting;
  expect(ended).toMatchObject({ status: 1 });
  expect(JSON.parse(ended.stdout)).toMatchObject({ instance: "db", operation, kind: "failed" });
});

test("a create whose instance somebody deletes, and nobody remembers, has not succeeded", async () => {
  const retention = { succeededMs: 0, failedMs: 0, cancelledMs: 0, notesMs: 0 };
  const lab = await platformLab({}, { retention });
  await lab.root("register", "mis", lab.broker.url);
  lab.broker.setRules([{ call: "provision", do: "async-endless" }]);
  const waiting = lab.anna("create", "db", "misbehaving", "good");
  await queued(lab, 1);
  await lab.platform.instances.delete(db, {}, olga);
  const ended = await waiting;
  expect(ended).toMatchObject({ status: 1, stdout: "" });
  expect(ended.stderr).toMatch(/creating db was cancelled|nobody remembers/);
});

test("a change whose answer gets lost is asked for once more, and done once", async () => {
  const lab = await platformLab();
  await lab.root("register", "mis", lab.broker.url);
  await lab.anna("create", "db", "misbehaving", "good");
  let lost = 0;
  const between = createServer((socket) => {
    const to = connect(Number(new URL(lab.url).port), "127.0.0.1").on("error", () => socket.destroy());
    socket.on("error", () => to.destroy()).pipe(to);
    to.on("data", (answer) => {
      if (lost++ === 0) socket.destroy();
      else socket.write(answer);
    });
  });
  await once(between.listen(0, "127.0.0.1"), "listening");
  onTestFinished(() => void between.close());
  const updated = await lab.run(["update", "db", "-p", "a:=1"], {
    OSBERT_PLATFORM_URL: `http://127.0.0.1:${(between.address() as AddressInfo).port}`,
    OSBERT_PLATFORM_LOGIN: "anna:secret-of-anna",
    OSBERT_PLATFORM_SPACE: "team",
  });
  expect(updated).toMatchObject({ status: 0, stdout: "db is updated\n" });
  expect(lost).toBeGreaterThan(1);
  const lines = await lab.platform.instances.journal(db);
  expect(lines.filter(({ family, kind }) => family === "intent" && kind === "update")).toHaveLength(1);
});

test("E10-25: a change that is held behind somebody's delete, which is called off, is waited for, and done", async () => {
  const lab = await platformLab();
  await lab.root("register", "mis", lab.broker.url);
  await lab.anna("create", "db", "misbehaving", "good");
  lab.broker.setRules([{ call: "update", do: [{ slow: { ms: 2_000 } }] }]);
  await lab.anna("update", "db", "-p", "a:=1", "--no-wait");
  const waiting = lab.anna("update", "db", "-p", "b:=2");
  await queued(lab, 2);
  await lab.platform.instances.delete(db, {}, olga);
  const held = async () => (await lab.platform.instances.read(db))?.queue.some(({ state }) => state === "held");
  await expect.poll(held, { timeout: 20_000, interval: 5 }).toBe(true);
  let looks = 0;
  const { instances } = lab.platform;
  const operation = instances.operation.bind(instances);
  instances.operation = (...asked) => {
    looks++;
    return operation(...asked);
  };
  await expect.poll(() => looks, { timeout: 20_000, interval: 5 }).toBeGreaterThan(1);
  await instances.restore(db, olga);
  expect(await waiting).toMatchObject({ status: 0, stdout: "db is updated\n" });
});

test("a platform that is away for a moment is waited for", async () => {
  const lab = await platformLab();
  await lab.root("register", "mis", lab.broker.url);
  await lab.anna("create", "db", "misbehaving", "good");
  let [isAway, refused, asked] = [false, 0, 0];
  const sockets = new Set<Socket>();
  const between = createServer((socket) => {
    socket.on("error", () => undefined);
    if (isAway) {
      refused++;
      socket.destroy();
      return;
    }
    const to = connect(Number(new URL(lab.url).port), "127.0.0.1").on("error", () => socket.destroy());
    socket.on("data", () => asked++);
    socket.pipe(to).pipe(socket);
    sockets.add(socket);
  });
  await once(between.listen(0, "127.0.0.1"), "listening");
  onTestFinished(() => void between.close());
  lab.broker.setRules([{ call: "update", do: "async-endless" }]);
  const waiting = lab.run(["update", "db", "-p", "a:=1", "--timeout", "20s"], {
    OSBERT_PLATFORM_URL: `http://127.0.0.1:${(between.address() as AddressInfo).port}`,
    OSBERT_PLATFORM_LOGIN: "anna:secret-of-anna",
    OSBERT_PLATFORM_SPACE: "team",
  });
  // The change, and then at least one look at it.
  await expect.poll(() => asked, { timeout: 20_000, interval: 5 }).toBeGreaterThan(2);
  isAway = true;
  for (const socket of sockets) socket.destroy();
  await expect.poll(() => refused, { timeout: 20_000, interval: 5 }).toBeGreaterThan(0);
  await lab.platform.instances.delete(db, { now: true }, olga);
  isAway = false;
  expect(await waiting).toMatchObject({ status: 1, stderr: expect.stringContaining("the instance is being deleted") });
});
