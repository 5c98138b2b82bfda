import { expect, test } from "vitest";
import { platformLab } from "./platform-lab.js";

const db = { space: "team", name: "db" };

/** A platform with a broker whose plan has this maintenance version. */
async function maintainedLab(version: string) {
  const lab = await platformLab({ catalog: catalogOf(version) });
  await lab.root("register", "mis", lab.broker.url);
  return lab;
}

function catalogOf(version: string) {
  const plan = { id: "plan-small", name: "small", description: "a plan", maintenance_info: { version } };
  const service = { id: "service-db", name: "database", description: "a service", bindable: true, plans: [plan] };
  return { value: { services: [{ ...service, plan_updateable: true }] } };
}

test("a lock holds back, and whoever is held back is told by whom and why, until it is unlocked", async () => {
  const { broker, root, anna } = await platformLab();
  await root("register", "mis", broker.url);
  await anna("create", "db", "misbehaving", "good");
  expect(await root("lock", "db", "--reason", "audit", "--until", "2h")).toMatchObject({
    status: 0,
    stdout: expect.stringMatching(/^db is locked until \d{4}-/),
  });
  expect((await anna("show", "db")).stdout).toMatch(/^locked +by root: audit$/m);
  expect(await anna("update", "db", "-p", "a:=1")).toMatchObject({
    status: 3,
    stderr: expect.stringContaining("it is held: it is locked by root: audit"),
  });
  expect(await anna("unlock", "db")).toMatchObject({ status: 1, stderr: expect.stringContaining("locked by root") });
  const { items } = JSON.parse((await anna("queue", "db", "--json")).stdout) as { items: { operation: string }[] };
  const operation = items[0]?.operation ?? "";
  expect((await anna("queue", "db", operation)).stdout).toMatch(/^will be +plan good, parameters \{"a":1\}$/m);
  const waiting = anna("wait", "db", operation, "--timeout", "1s");
  expect(await waiting).toMatchObject({ status: 3 });
  expect(await root("unlock", "db")).toMatchObject({ status: 0, stdout: "db is not locked\n" });
  expect(await anna("wait", "db", operation)).toMatchObject({ status: 0, stdout: `${operation} has succeeded\n` });
  expect(await anna("wait", "db", "99-none")).toMatchObject({ status: 1 });
  expect(await anna("lock", "db", "--reason", "x", "--until", "yesterday")).toMatchObject({ status: 2 });
});

test("policies are shown, and those that are named are changed", async () => {
  const { broker, root, anna } = await platformLab();
  await root("register", "mis", broker.url);
  await anna("create", "db", "misbehaving", "good", "--orphans", "hold");
  expect((await anna("policy", "db")).stdout).toBe("on failure   auto\nconcurrency  queue\norphans      hold\n");
  expect((await anna("policy", "db", "--concurrency", "reject")).stdout).toContain("concurrency  reject\n");
  expect((await anna("policy", "db")).stdout).toContain("orphans      hold\n");
});

test("a freeze by names holds back what it names, is listed, and is thawed by the beginning of its id", async () => {
  const { broker, root, anna } = await platformLab();
  await root("register", "mis", broker.url);
  await anna("create", "db", "misbehaving", "good");
  expect(await root("freeze", "--reason", "x")).toMatchObject({ status: 2 });
  expect(await root("freeze", "--service", "misbehaving", "--plan", "none", "--reason", "x")).toMatchObject({
    status: 2,
    stderr: expect.stringContaining("misbehaving has no plan none"),
  });
  const frozen = await root("freeze", "--service", "misbehaving", "--plan", "good", "--reason", "moves", "--json");
  expect(frozen).toMatchObject({ status: 0 });
  const { id } = JSON.parse(frozen.stdout) as { id: string };
  expect((await root("freezes")).stdout).toMatch(/plan good +changes wait +root +- +moves/);
  const frozenUpdate = await anna("update", "db", "-p", "a:=1", "--timeout", "1s");
  expect(frozenUpdate).toMatchObject({ status: 3, stderr: expect.stringContaining("moves") });
  expect(await root("thaw", "nothing")).toMatchObject({ status: 2 });
  expect(await root("thaw", id.slice(0, 8))).toMatchObject({ status: 0, stdout: `${id} is thawed\n` });
  expect((await root("freezes")).stdout).toBe("nothing is frozen\n");
  expect(await anna("freezes")).toMatchObject({ status: 1 });
});

test("what was abandoned is an orphan with its reason, and can be adopted again", async () => {
  const { broker, root, anna, platform } = await platformLab();
  await root("register", "mis", broker.url);
  await anna("create", "db", "misbehaving", "good", "-p", "size:=3");
  const id = (await platform.instances.read(db))?.osbId ?? "";
  expect(await anna("abandon", "db", "--reason", "no", "--yes")).toMatchObject({ status: 1 });
  expect(await root("abandon", "db", "--reason", "its broker hangs", "--yes")).toMatchObject({
    status: 0,
    stdout: "db is abandoned\n",
  });
  expect(broker.state().instances).toHaveLength(1);
  const { stdout } = await root("orphans", "list", "--of-space", "team", "--json");
  const { items } = JSON.parse(stdout) as { items: { key: string; state: string }[] };
  expect(items).toMatchObject([{ state: "abandoned" }]);
  expect(await root("adopt", "db", "misbehaving", "good", id)).toMatchObject({ status: 0, stdout: "db is adopted\n" });
  expect((await anna("show", "db")).stdout).toMatch(/^phase +ready$/m);
  expect(await anna("refresh", "db")).toMatchObject({ status: 0, stdout: "db is refreshed\n" });
  expect((await root("list", "--all-spaces")).stdout).toMatch(/^team +db +misbehaving/m);
  expect((await anna("bindings", "db")).stdout).toBe("db has none\n");
});

test("who asks is told who they are, and a broker's registration keeps what is not said", async () => {
  const { broker, root, anna, run, url } = await platformLab();
  expect((await anna("whoami")).stdout).toMatch(/^you +anna\nmay +change.*\nin +team$/m);
  expect((await root("whoami")).stdout).toMatch(/^in +all spaces$/m);
  await root("register", "mis", broker.url, "--in-flight", "3", "--call-timeout", "20s", "--relist-every", "1h");
  // Without a login for the broker in the environment.
  const env = { OSBERT_PLATFORM_URL: url, OSBERT_PLATFORM_LOGIN: "root:secret-of-root" };
  expect(await run(["register", "mis", broker.url], env)).toMatchObject({ status: 0 });
  const { stdout } = await root("brokers", "mis");
  expect(stdout).toMatch(/^authentication +basic$/m);
  expect(stdout).toMatch(/^bounds +3 calls at a time, 20s each$/m);
  expect(stdout).toMatch(/^catalog +4 services, read .*, every 1h$/m);
  expect(await run(["register", "mis", broker.url, "--anonymous"], env)).toMatchObject({ status: 1 });
});

test("E10-53: a campaign shows its progress, stops, tells what failed, is retried and cancelled", async () => {
  const { broker, root, anna, platform } = await maintainedLab("1.0.0");
  for (const name of ["a", "b", "c", "d"]) await anna("create", name, "database", "small", "--no-wait");
  await expect
    .poll(async () => (await platform.instances.list({ space: "team", phase: "ready" })).items.length, {
      timeout: 20_000,
    })
    .toBe(4);
  broker.setCatalog(catalogOf("2.0.0"));
  await root("relist", "mis");
  broker.setRules([{ call: "update", do: ["403", "403", "403"] }]);
  const start = ["campaigns", "start", "mis", "--service", "database", "--plan", "small"] as const;
  const stopped = await root(...start, "--at-once", "1", "--stop-at", "0");
  expect(stopped).toMatchObject({ status: 1, stdout: expect.stringMatching(/is stopped: 0 of 4 upgraded/) });
  expect(stopped.stderr).toMatch(/\d of \d upgrades failed; osbert platform campaigns targets /);
  const { items } = JSON.parse((await root("campaigns", "list", "--json")).stdout) as { items: { id: string }[] };
  const id = items[0]?.id ?? "";
  expect((await root("campaigns", "list")).stdout).toMatch(/broker mis, service database, plan small +stopped +root/);
  expect((await root("campaigns", "targets", id.slice(0, 8))).stdout).toMatch(/^team +a +failed +1 /m);
  expect(await root("campaigns", "retry", id.slice(0, 8))).toMatchObject({
    status: 0,
    stdout: `campaign ${id} is finished: 4 of 4 upgraded\n`,
  });
  expect((await root("campaigns", "show", id)).stdout).toMatch(/^bounds +1 at a time, stops when more than 0 % fail$/m);
  expect((await anna("show", "a")).stdout).toContain("maintenance 2.0.0");
  broker.setCatalog(catalogOf("3.0.0"));
  await root("relist", "mis");
  // Over midnight, and closed at any time that this test runs: from a minute ago on for a day but one.
  const minute = Math.floor(Date.now() / 60_000) % (24 * 60);
  const clock = (at: number) =>
    [Math.floor(at / 60) % 24, at % 60].map((part) => String(part).padStart(2, "0")).join(":");
  const window = `${clock((minute + 120) % 1_440)}-${clock((minute + 180) % 1_440)}`;
  const begun = await root(...start, "--window", window, "--no-wait");
  expect(begun).toMatchObject({ status: 0, stdout: expect.stringMatching(/^[0-9a-f-]{36}\n$/) });
  expect(await root("campaigns", "cancel", begun.stdout.trim())).toMatchObject({ status: 0 });
  expect(await root("campaigns", "start", "mis", "--plan", "small")).toMatchObject({ status: 2 });
  expect(await anna("campaigns", "list")).toMatchObject({ status: 1 });
});

test("E10-47: bindings that are being renewed are listed, and one that is rotated by hand is among them", async () => {
  const { broker, root, anna } = await platformLab();
  await root("register", "mis", broker.url);
  await anna("create", "db", "rotatable", "rotatable-good");
  await anna("bind", "db", "app");
  expect((await anna("rotations")).stdout).toBe("none is due\n");
  expect(await anna("rotate", "db", "app")).toMatchObject({ status: 0, stdout: expect.stringContaining("app.2") });
  await expect
    .poll(async () => (await anna("rotations")).stdout, { timeout: 20_000 })
    .toMatch(/^team +db +app +overlapping .* app\.2/m);
  expect((await root("rotations", "--all-spaces")).stdout).toMatch(/^team +db +app +overlapping/m);
});

test("a quota is set by names, tells what is used, refuses what is too much, and is removed", async () => {
  const { broker, root, anna } = await platformLab();
  await root("register", "mis", broker.url);
  expect(await anna("quotas", "list")).toMatchObject({ status: 0, stdout: "none holds here\n" });
  expect(await root("quotas", "set", "few", "--limit", "many")).toMatchObject({ status: 2 });
  const set = ["quotas", "set", "few", "--limit", "1", "--service", "misbehaving", "--plan", "good"];
  expect(await anna(...set)).toMatchObject({ status: 1 });
  expect(await root(...set)).toMatchObject({ status: 0, stdout: "few allows 1 in each space\n" });
  expect((await anna("create", "db", "misbehaving", "good")).status).toBe(0);
  expect((await anna("quotas", "list")).stdout).toMatch(/^few +broker mis, service misbehaving, plan good +1 +1$/m);
  expect((await root("quotas", "list", "--all-spaces")).stdout).toMatch(/^few +each +broker mis, .* 1 +root/m);
  expect(await anna("create", "other", "misbehaving", "good")).toMatchObject({
    status: 1,
    stderr: expect.stringContaining("few"),
  });
  expect(await root("quotas", "set", "keys", "--limit", "0", "--bindings")).toMatchObject({
    status: 0,
    stdout: "keys allows 0 bindings in each space\n",
  });
  expect((await anna("quotas", "list")).stdout).toMatch(/^keys +all bindings +0 +0$/m);
  expect(await anna("bind", "db", "app")).toMatchObject({ status: 1, stderr: expect.stringContaining("0 bindings") });
  expect(await root("quotas", "remove", "few")).toMatchObject({ status: 0, stdout: "few is removed\n" });
  expect((await anna("create", "other", "misbehaving", "good")).status).toBe(0);
});

test("a plan is offered in the spaces that a visibility names, until it is removed", async () => {
  const { broker, root, anna } = await platformLab();
  await root("register", "mis", broker.url);
  const set = ["visibilities", "set", "secret", "--service", "misbehaving", "--plan", "good"];
  expect(await root(...set)).toMatchObject({ status: 2, stderr: expect.stringContaining("offered where?") });
  expect(await root(...set, "--in", "elsewhere", "--nowhere")).toMatchObject({ status: 2 });
  expect(await root(...set, "--in", "elsewhere", "there")).toMatchObject({
    status: 0,
    stdout: "secret is set: offered in elsewhere, there\n",
  });
  expect((await root("visibilities", "list")).stdout).toMatch(
    /^secret +mis +misbehaving +good +elsewhere, there +root$/m,
  );
  expect(await anna("create", "db", "misbehaving", "good")).toMatchObject({ status: 1 });
  expect(await root("visibilities", "remove", "secret")).toMatchObject({ status: 0, stdout: "secret is removed\n" });
  expect((await root("visibilities", "list")).stdout).toBe("everything is offered everywhere\n");
  expect((await anna("create", "db", "misbehaving", "good")).status).toBe(0);
});
