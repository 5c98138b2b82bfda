import { expect, test } from "vitest";
import { urlWithoutServer } from "../client/server-that.js";
import { adminCommand, program, type Ran } from "./admin-run.js";
import { type OperatedBroker, operatedBroker } from "./operated-broker.js";

const because = ["--reason", "the disks were changed"];

/** Asks until the answer shows it. */
async function until(ask: () => Promise<Ran>, isSo: (stdout: string) => boolean): Promise<Ran> {
  for (;;) {
    const ran = await ask();
    if (isSo(ran.stdout)) return ran;
  }
}

const shows = ({ env }: OperatedBroker, instance: string, operation: string, state: string) =>
  until(
    () => adminCommand(["operation", instance, operation, "--json"], env),
    (stdout) => JSON.parse(stdout).state === state,
  );

test("the program lists, shows, retries, cancels and tells the journal, with nothing secret in it", async () => {
  const broker = await operatedBroker();
  broker.trouble = "waits";
  const operation = await broker.provision("my-db");
  await shows(broker, "my-db", operation, "waiting");
  const looked = await Promise.all([
    program(["admin", "instances", "--service", "database"], broker.env),
    program(["admin", "operations"], broker.env),
    program(["admin", "instance", "my-db"], broker.env),
    program(["admin", "operation", "my-db", operation], broker.env),
  ]);
  for (const { status, stderr } of looked) expect([status, stderr]).toEqual([0, ""]);
  const [instances, operations, instance, details] = looked.map(({ stdout }) => stdout);
  expect(instances).toMatch(/^INSTANCE +PLATFORM +SERVICE +PLAN +PHASE/);
  expect(instances).toMatch(/my-db +- +database +small +creating +0 +1/);
  expect(operations).toMatch(new RegExp(`my-db +${operation} +provision +- +waiting`));
  expect(instance).toMatch(/phase +creating\n/);
  expect(instance).toMatch(/parameters +color\n/);
  expect(details).toContain("reserve a host");

  broker.trouble = "fails";
  const retried = await program(["admin", "retry", "my-db", operation, ...because], broker.env);
  expect(retried).toMatchObject({ status: 0, stdout: `operation ${operation} goes on\n` });
  expect(retried.stderr).toContain(`osbert admin operation my-db ${operation}`);
  await shows(broker, "my-db", operation, "failed");
  broker.trouble = "hangs";
  const again = await adminCommand(["retry", "my-db", operation, "--json", ...because], broker.env);
  const { operation: second } = JSON.parse(again.stdout);
  expect(second).not.toBe(operation);
  await shows(broker, "my-db", second, "running");
  expect(await program(["admin", "cancel", "my-db", second, ...because], broker.env)).toMatchObject({ status: 0 });
  await shows(broker, "my-db", second, "cancelled");
  const journal = await program(["admin", "journal", "my-db"], broker.env);
  expect(journal.stdout).toMatch(/operator ops +operator +- +the disks were changed +action=cancel/);
  const json = await adminCommand(["journal", "my-db", "--json", "--limit", "500"], broker.env);
  expect(JSON.stringify([looked, journal, json])).not.toContain("SECRET");
});

test("a purge needs --yes where nobody can be asked, and the name where someone can", async () => {
  const broker = await operatedBroker();
  for (const id of ["one", "two", "three"])
    await broker.client.waitForInstance(id, { operation: await broker.provision(id) });
  await broker.client.bind(
    "one",
    "app",
    { service_id: "database-id", plan_id: "small-id" },
    { acceptsIncomplete: false },
  );
  const listed = await adminCommand(["bindings", "one"], broker.env);
  expect(listed.stdout).toMatch(/^BINDING +PHASE.*\napp +ready/);
  expect((await adminCommand(["purge", "one", "app", "--yes", ...because], broker.env)).status).toBe(0);
  expect((await adminCommand(["bindings", "one"], broker.env)).stdout).toBe("it has none\n");

  const unasked = await program(["admin", "purge", "one", ...because], broker.env);
  expect(unasked).toMatchObject({ status: 2, stdout: "" });
  expect(unasked.stderr).toContain("--yes");
  const wrong = await adminCommand(["purge", "two", ...because], broker.env, "to\n");
  expect(wrong).toMatchObject({ status: 2 });
  expect(wrong.stderr).toContain("Type two to go on");
  expect((await adminCommand(["instances", "--phase", "gone"], broker.env)).stdout).toBe("there are none\n");
  const typed = await adminCommand(["purge", "two", ...because], broker.env, "two\n");
  expect(typed).toMatchObject({ status: 0, stdout: "instance two is forgotten\n" });
  const said = await program(["admin", "purge", "one", "--yes", ...because], broker.env);
  expect(said).toMatchObject({ status: 0, stdout: "instance one is forgotten\n" });
  await expect(broker.client.fetchInstance("one")).rejects.toMatchObject({ status: 404 });
});

test("a forced deletion is waited for, and says what it passed over", async () => {
  const broker = await operatedBroker();
  await broker.client.waitForInstance("my-db", { operation: await broker.provision("my-db") });
  broker.trouble = "fails";
  const ran = await program(["admin", "force-delete", "my-db", "--yes", ...because], broker.env);
  expect(ran.status, ran.stderr).toBe(0);
  expect(ran.stdout).toMatch(/^instance my-db is deleted by force; look for what was left behind\n/);
  expect(ran.stdout).toMatch(/deprovision +there are no disks left/);
  const gone = await adminCommand(["force-delete", "my-db", "--yes", ...because], broker.env);
  expect(gone).toMatchObject({ status: 1, stdout: "" });
  expect(gone.stderr).toContain("there is no such instance");
});

test("a service is paused and goes on; what was set aside is listed and restored", async () => {
  const broker = await operatedBroker();
  expect(await program(["admin", "pause", "database", ...because], broker.env)).toMatchObject({
    status: 0,
    stdout: "database is paused\n",
  });
  const again = await adminCommand(["pause", "database", "--reason", "once more"], broker.env);
  expect(again.stdout).toMatch(/^database was paused already, by ops at \S+Z: the disks.*That stays; resume it/);
  expect((await adminCommand(["services"], broker.env)).stdout).toMatch(/database +database-id +\S+Z +ops +the disks/);
  const operation = await broker.provision("my-db");
  expect((await adminCommand(["operations"], broker.env)).stdout).toMatch(/paused/);
  expect((await adminCommand(["resume", "database", ...because], broker.env)).status).toBe(0);
  await shows(broker, "my-db", operation, "succeeded");
  expect((await adminCommand(["resume", "database", ...because], broker.env)).status).toBe(1);
  expect((await adminCommand(["set-aside"], broker.env)).stdout).toBe("nothing was set aside\n");
  await broker.store.setAside("/my-db");
  expect((await adminCommand(["set-aside"], broker.env)).stdout).toMatch(/my-db +-/);
  expect((await adminCommand(["restore", "my-db", ...because], broker.env)).status).toBe(0);
  expect((await adminCommand(["set-aside"], broker.env)).stdout).toBe("nothing was set aside\n");
});

test("many operations are retried and cancelled by one command, which shows first which", async () => {
  const broker = await operatedBroker();
  broker.trouble = "waits";
  const operations = [];
  for (const id of ["one", "two", "three"]) operations.push(await broker.provision(id));
  for (const [index, id] of ["one", "two", "three"].entries())
    await shows(broker, id, operations[index] ?? "", "waiting");
  const which = ["--service", "database", ...because];
  const dry = await adminCommand(["retry-all", ...which, "--dry-run"], broker.env);
  expect(dry).toMatchObject({ status: 0, stderr: "3 would be retried; nothing was changed\n" });
  expect(dry.stdout).toMatch(/^INSTANCE +OPERATION +VERB.*\n(\w+ +\S+ +provision +- +waiting +would be retried\n){3}$/);
  const some = await adminCommand(["retry-all", ...which, "--limit", "2", "--dry-run"], broker.env);
  expect(some.stderr).toMatch(/2 would be retried; nothing was changed\nthere are more; go on with --after/);

  expect((await program(["admin", "cancel-all", ...which], broker.env)).stderr).toContain("--yes");
  for (const command of [["retry-all"], ["cancel-all", "--yes"]]) {
    const aimless = await adminCommand([...command, ...because], broker.env);
    expect(aimless.stderr).toBe(
      "error: say which: --service, --plan, --platform, --state, --older-than or --failing\n",
    );
    expect(aimless.status).toBe(2);
    for (const [option, name, there] of [
      ["--service", "databse", 'there is no service "databse"; there are database'],
      ["--plan", "samll", 'there is no plan "samll"; there are '],
    ] as const) {
      const misspelled = await adminCommand([...command, option, name, ...because], broker.env);
      expect(misspelled).toMatchObject({ status: 1, stdout: "", stderr: expect.stringContaining(there) });
    }
  }
  const cancelled = await program(["admin", "cancel-all", ...which, "--state", "waiting", "--yes"], broker.env);
  expect(cancelled).toMatchObject({ status: 0, stderr: "3 done, 0 refused\n" });
  for (const [index, id] of ["one", "two", "three"].entries())
    await shows(broker, id, operations[index] ?? "", "cancelled");

  broker.trouble = "none";
  const anew = await adminCommand(["retry-all", ...which, "--state", "failed", "--json"], broker.env);
  expect(anew.status, anew.stderr).toBe(0);
  const { items, next } = JSON.parse(anew.stdout) as { items: { instance: string; goes_on: string }[]; next: null };
  expect([items.length, next]).toEqual([3, null]);
  for (const { instance, goes_on } of items) await shows(broker, instance, goes_on, "succeeded");
  expect((await adminCommand(["retry-all", ...which], broker.env)).stdout).toBe("there are none\n");
});

test("long lists go on where they ended", async () => {
  const broker = await operatedBroker();
  for (const id of ["a", "b", "c"]) await broker.client.waitForInstance(id, { operation: await broker.provision(id) });
  const first = await adminCommand(["instances", "--limit", "2"], broker.env);
  expect(first.stdout.split("\n")).toHaveLength(4);
  const after = /--after (\S+)/.exec(first.stderr)?.[1] ?? "";
  const second = await adminCommand(["instances", "--limit", "2", "--after", after], broker.env);
  expect(second).toMatchObject({ status: 0, stderr: "" });
  expect(second.stdout).toMatch(/\nc /);
});

test("who has no credential, a wrong one or a platform's is told which is needed; no password is repeated", async () => {
  const { env } = await operatedBroker();
  const { OSBERT_ADMIN_LOGIN: _, ...without } = env;
  const none = await program(["admin", "instances"], without);
  expect(none.status).toBe(2);
  expect(none.stderr).toContain("OSBERT_ADMIN_LOGIN=name:password");
  for (const wrong of ["ops:WRONG-secret", "platform:platform-password"]) {
    const ran = await adminCommand(["instances"], { ...env, OSBERT_ADMIN_LOGIN: wrong });
    expect(ran.status).toBe(1);
    expect(ran.stderr).toContain("OSBERT_ADMIN_LOGIN");
    expect(ran.stderr).not.toMatch(/WRONG-secret|platform-password/);
  }
  expect((await adminCommand(["instances"], { ...env, OSBERT_ADMIN_LOGIN: "WRONG-secret" })).stderr).not.toContain(
    "WRONG",
  );
  expect((await adminCommand(["instances", "--url", "http://ops:pw@127.0.0.1:1"], env)).status).toBe(2);
  const nobody = await adminCommand(["instances", "--url", await urlWithoutServer()], env);
  expect(nobody.status).toBe(4);
  expect(nobody.stderr).toContain("OSBERT_ADMIN_URL");
});

test("an action without a reason, or with a wrong command line, is not sent", async () => {
  const { env } = await operatedBroker();
  for (const args of [
    ["retry", "my-db", "1-x"],
    ["purge", "my-db", "--yes"],
    ["pause", "database"],
    ["instances", "--limit", "0"],
    ["instances", "--phase", "asleep"],
    ["instance", ".."],
    ["nothing"],
  ])
    expect((await adminCommand(args, env)).status, args.join(" ")).toBe(2);
});
