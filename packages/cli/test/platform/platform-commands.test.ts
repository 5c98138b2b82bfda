import { readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Command } from "commander";
import { expect, test } from "vitest";
import { registerPlatformCommands } from "../../src/platform/register-platform-commands.js";
import { platformLab } from "./platform-lab.js";

const ok = { status: 0, stderr: expect.any(String) as string };

test("from a broker to a bound instance and back, with names alone", async () => {
  const { broker, root, anna } = await platformLab();
  expect(await root("register", "mis", broker.url)).toMatchObject({
    status: 0,
    stdout: expect.stringMatching(/mis +ok/),
  });
  expect((await root("brokers")).stdout).toMatch(/mis +ok +4 /);
  expect((await anna("marketplace")).stdout).toMatch(/misbehaving +mis .* 400, 401, .* and \d+ more/);
  expect((await anna("marketplace", "misbehaving")).stdout).toMatch(/good +free/);

  expect(await anna("create", "db", "misbehaving", "async", "-p", "size:=3")).toMatchObject({
    ...ok,
    stdout: "db is created\n",
  });
  expect((await anna("list")).stdout).toMatch(/db +misbehaving +async +ready +0 +0 +mis/);
  expect(await anna("update", "db", "-p", "size:=4", "--plan", "good")).toMatchObject({ status: 0 });
  expect((await anna("update", "db", "-p", "size:=4")).stderr).toContain("so already");
  const shown = (await anna("show", "db")).stdout;
  expect(shown).toMatch(/^is +plan good, parameters \{"size":4\}$/m);
  expect(shown).toContain("nothing is under way");

  const bound = await anna("bind", "db", "app", "--format", "env");
  expect(bound.stdout).toMatch(/^export DB_USER='user-of-/m);
  expect((await anna("show", "db")).stdout).toMatch(/app +bound +anna/);
  expect(await anna("delete", "db", "--yes")).toMatchObject({
    status: 1,
    stderr: expect.stringContaining("--cascade"),
  });
  expect(await anna("unbind", "db", "app")).toMatchObject({ status: 0, stdout: "app is unbound from db\n" });
  expect(await anna("delete", "db")).toMatchObject({ status: 2, stderr: expect.stringContaining("--yes") });
  expect(await anna("delete", "db", "--yes")).toMatchObject({ status: 0, stdout: "db is deleted\n" });
  expect(broker.state()).toMatchObject({ instances: [], created: 2, deleted: 2 });
});

test("what is refused, held and tried again is told with its reason", async () => {
  const { broker, root, anna } = await platformLab();
  await root("register", "mis", broker.url);
  await anna("create", "db", "misbehaving", "good");
  broker.setRules([{ call: "update", do: ["403"] }]);
  const failed = await anna("update", "db", "-p", "size:=4");
  expect(failed).toMatchObject({ status: 1, stderr: expect.stringContaining("updating db failed") });
  const { failures } = JSON.parse((await anna("show", "db", "--json")).stdout) as {
    failures: readonly { operation: string }[];
  };
  const [{ operation } = { operation: "" }] = failures;
  expect(await anna("retry", "db", operation)).toMatchObject({ status: 0 });
  expect(broker.state().instances).toMatchObject([{ parameters: { size: 4 } }]);

  broker.setRules([{ call: "deprovision", do: ["400"] }]);
  expect(await anna("delete", "db", "--yes")).toMatchObject({
    status: 1,
    stderr: expect.stringContaining("the broker refuses"),
  });
  expect((await anna("show", "db")).stdout).toMatch(/^last delete +wanted by anna, refused/m);
  expect(await anna("restore", "db")).toMatchObject({ status: 0, stdout: "db is ready again\n" });

  expect(await anna("create", "other", "misbehaving", "no-such-plan")).toMatchObject({ status: 1 });
  expect(await anna("create", "other", "misbehaving", "good", "--dry-run")).toMatchObject({
    status: 0,
    stdout: expect.stringContaining("it would be accepted"),
  });
  expect(await anna("update", "db", "--plan", "async", "--if-revision", "1")).toMatchObject({
    status: 1,
    stderr: expect.stringContaining("revision"),
  });
  expect(await anna("brokers")).toMatchObject({ status: 1, stderr: expect.stringContaining("operate") });
});

test("what is told of an instance that is not there yet, could not be made, or is gone is true", async () => {
  const { broker, root, anna } = await platformLab();
  await root("register", "mis", broker.url);
  await anna("create", "slow", "misbehaving", "async-endless", "--no-wait");
  expect((await anna("show", "slow")).stdout).toMatch(/^phase +creating$/m);
  expect(await anna("restore", "slow")).toMatchObject({
    status: 0,
    stdout: "there is no delete of slow to undo; it is creating\n",
  });
  await anna("create", "bad", "misbehaving", "400");
  expect((await anna("show", "bad")).stdout).toMatch(/^phase +failed$/m);
  expect((await anna("list")).stdout).toMatch(/^bad +misbehaving +- +failed +0/m);
  await anna("create", "db", "misbehaving", "good");
  await anna("bind", "db", "app");
  const refused = (await anna("delete", "db", "--yes")).stderr;
  expect(refused.match(/app/g), "once is enough").toHaveLength(1);
  await anna("delete", "db", "--cascade", "--yes");
  expect((await anna("show", "db")).stdout).toMatch(/^phase +gone$[\s\S]*^is +gone$/m);
});

test("a change that takes long can be left alone, and its queue looked at and cancelled", async () => {
  const { broker, root, anna } = await platformLab();
  await root("register", "mis", broker.url);
  await anna("create", "db", "misbehaving", "good");
  broker.setRules([{ call: "update", do: "async-endless" }]);
  expect(await anna("update", "db", "-p", "a:=1", "--no-wait")).toMatchObject({ status: 0 });
  expect(await anna("update", "db", "-p", "b:=2", "--timeout", "1s")).toMatchObject({
    status: 3,
    stderr: expect.stringContaining("the time is up"),
  });
  const queue = JSON.parse((await anna("queue", "db", "--json")).stdout) as {
    items: readonly { operation: string; op: string }[];
  };
  expect(queue.items).toMatchObject([{ op: "update" }, { op: "update" }]);
  expect((await anna("queue", "db")).stdout).toMatch(/update +queued +anna/);
  expect((await anna("show", "db")).stdout).toMatch(/^will be +plan good, parameters \{"a":1,"b":2\}$/m);
  const second = queue.items[1]?.operation ?? "";
  expect(await anna("hold", "db", second, "--reason", "not today")).toMatchObject({ status: 0 });
  expect(await anna("release", "db", second)).toMatchObject({ status: 0 });
  expect((await anna("cancel", "db", second)).stdout).not.toContain(second);
});

test("E10-42: numbers beyond 2^53 go through the commands as they were written", async () => {
  const { broker, root, anna, folder } = await platformLab();
  await root("register", "mis", broker.url);
  const parameters = '{"account": 12345678901234567890}';
  await writeFile(join(folder, "parameters.json"), parameters);
  await anna("create", "db", "misbehaving", "good", "-P", `@${join(folder, "parameters.json")}`);
  expect(broker.requests().find(({ call }) => call === "provision")?.body).toContain("12345678901234567890");
  expect((await anna("show", "db")).stdout).toContain("12345678901234567890");
  expect((await anna("show", "db", "--json")).stdout).toContain("12345678901234567890");
  broker.setRules([{ call: "bind", do: "large-numbers" }]);
  const file = join(folder, "credentials.json");
  expect(await anna("bind", "db", "app", "--output", file)).toMatchObject({ status: 0, stdout: "" });
  expect(await readFile(file, "utf8")).toContain("12345678901234567890");
  expect((await stat(file)).mode & 0o777).toBe(0o600);
  expect((await anna("credentials", "db", "app", "--format", "secret")).stdout).toContain(
    Buffer.from("12345678901234567890").toString("base64"),
  );
});

test("the journal tells the whole story, and never a secret", async () => {
  const { broker, root, anna } = await platformLab();
  await root("register", "mis", broker.url);
  await anna("create", "db", "misbehaving", "good");
  await anna("bind", "db", "app");
  const { stdout } = await anna("journal", "db");
  expect(stdout).toMatch(/anna +intent create/);
  expect(stdout).toMatch(/outcome succeeded/);
  const last = (await anna("journal", "db", "--last", "2")).stdout.trimEnd().split("\n");
  expect(last).toHaveLength(3);
  expect(last.at(-1), "the newest line is the last").toMatch(/outcome succeeded/);
  expect(stdout).toContain(last.at(-1));
  const everything = stdout + (await anna("journal", "db", "--json")).stdout + (await root("brokers", "--json")).stdout;
  for (const secret of ["password-of-", "secret-of-"]) expect(everything).not.toContain(secret);
});

test("a journal is followed as it grows, until Ctrl-C", async () => {
  const { broker, root, anna, url } = await platformLab();
  await root("register", "mis", broker.url);
  await anna("create", "db", "misbehaving", "good");
  let [stdout, status] = ["", -1];
  let interrupt = (): void => undefined;
  const program = new Command("osbert");
  registerPlatformCommands(program, {
    env: { OSBERT_PLATFORM_URL: url, OSBERT_PLATFORM_LOGIN: "anna:secret-of-anna", OSBERT_PLATFORM_SPACE: "team" },
    stdin: (async function* () {})(),
    stdout: {
      write: (text) => {
        stdout += text;
      },
    },
    stderr: { write: () => undefined },
    now: Date.now,
    onInterrupt(listener) {
      interrupt = listener;
      return () => undefined;
    },
    endWith(end) {
      status = end;
    },
  });
  const following = program.parseAsync(["platform", "journal", "db", "--follow"], { from: "user" });
  await expect.poll(() => stdout, { timeout: 30_000 }).toMatch(/intent create/);
  await anna("update", "db", "-p", "size:=1");
  await expect.poll(() => stdout, { timeout: 30_000 }).toMatch(/intent update[\s\S]*outcome succeeded/);
  interrupt();
  await following;
  expect(status).toBe(0);
});

test("a saved target leads to its platform, and its login to nowhere else", async () => {
  const { url, folder, run } = await platformLab();
  await writeFile(join(folder, "login"), "anna:secret-of-anna\n");
  const args = [
    "target",
    "add",
    "work",
    `${url}/api/v1`,
    "--space",
    "team",
    "--credentials-file",
    join(folder, "login"),
  ];
  expect(await run(args, {})).toMatchObject({ status: 0 });
  expect(await run(["list"], {})).toMatchObject({ status: 0, stdout: "there are none in space team\n" });
  expect((await run(["target", "list"], {})).stdout).toMatch(new RegExp(`\\* +work +${url} +team`));
  // Another address gets no login that was saved for this one.
  expect(await run(["list", "--url", url], {})).toMatchObject({
    status: 2,
    stderr: expect.stringContaining("OSBERT_PLATFORM_LOGIN"),
  });
  expect(await run(["list", "--target", "none"], {})).toMatchObject({ status: 2 });
  expect(await run(["list", "--space", "other"], {})).toMatchObject({ status: 1 });
  expect(await run(["target", "remove", "work"], {})).toMatchObject({ status: 0 });
  expect(await run(["list"], {})).toMatchObject({ status: 2, stderr: expect.stringContaining("which platform?") });
});

test("what answers there and is no platform is told as that, and nobody at all, too", async () => {
  const { broker, run } = await platformLab();
  const env = { OSBERT_PLATFORM_LOGIN: "a:b" };
  const other = await run(["list", "--url", broker.url, "--json"], {
    OSBERT_PLATFORM_LOGIN: "platform:secret-of-the-broker",
  });
  expect(other).toMatchObject({ status: 4 });
  expect(JSON.parse(other.stdout)).toMatchObject({ error: { kind: "unreachable" } });
  expect(await run(["list", "--url", "http://127.0.0.1:1"], env)).toMatchObject({ status: 4 });
  expect(await run(["list", "--url", "nonsense"], env)).toMatchObject({ status: 2 });
});
