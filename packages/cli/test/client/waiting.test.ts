import { createServer, type Server } from "node:http";
import { expect, onTestFinished, test } from "vitest";
import { osbert } from "./osbert-run.js";
import { database, gate, realBroker } from "./real-broker.js";
import { plainCatalog, type Reaction, serverThat, urlWithoutServer } from "./server-that.js";

const provision = ["provision", "my-db", "--plan", "small", "-p", "language=de"];

const state = (text: string, description?: string, retryAfter = "0"): Reaction => ({
  status: 200,
  body: { state: text, description },
  headers: { "retry-after": retryAfter },
});

async function brokerThatPolls(...polls: readonly Reaction[]) {
  return serverThat({
    "GET /v2/catalog": { status: 200, body: plainCatalog },
    "PUT /v2/service_instances/i": { status: 202, body: { operation: "op $(x)" } },
    "GET /v2/service_instances/i/last_operation": polls,
  });
}

test("without a terminal there is a line for every news, and no repeats", async () => {
  const { url, asked } = await brokerThatPolls(
    state("in progress", "one"),
    state("in progress", "one"),
    { status: 500, body: "down", headers: { "retry-after": "0" } },
    state("in progress", "two\u001b[2J"),
    state("succeeded", "done"),
  );
  const ran = await osbert(["provision", "i", "--url", url]);
  expect(ran).toMatchObject({ status: 0, stdout: "i is provisioned: db, small\n" });
  expect(ran.stderr.split("\n")).toEqual([
    "provisioning i",
    "provisioning i: one",
    "provisioning i: the broker does not answer; asking again",
    "provisioning i: two",
    "provisioning i: done",
    "",
  ]);
  expect(Object.fromEntries(asked.at(-1)?.query ?? [])).toEqual({
    operation: "op $(x)",
    service_id: "s",
    plan_id: "p",
  });
});

test("on a terminal one line lives, fits its width and is gone in the end", async () => {
  const waits = gate();
  const { env } = await realBroker([database(waits)]);
  const ran = await osbert(provision, {
    env: { ...env, LANG: "C.UTF-8" },
    terminal: 40,
    watch: (stderr) => {
      if (stderr.includes("copying")) waits.open();
    },
  });
  expect(ran).toMatchObject({ status: 0 });
  expect(ran.stderr).not.toContain("\n");
  const frames = ran.stderr.split("\r\u001b[2K");
  expect(frames.at(-1)).toBe("");
  expect(frames.some((frame) => /^[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏] provisioning my-db \([0-9]+ s\): copying/.test(frame))).toBe(true);
  for (const frame of frames) expect(frame.length).toBeLessThan(40);
});

test("Ctrl-C ends the waiting, not the operation, and says how to look at it", async () => {
  const waits = gate();
  const { env, url } = await realBroker([database(waits)]);
  const { OSBERT_LOGIN = "" } = env;
  const ran = await osbert([...provision, "--url", url], {
    env: { OSBERT_LOGIN },
    watch: (stderr, interrupt) => {
      if (stderr.endsWith("copying the data\n")) interrupt();
    },
  });
  expect(ran).toMatchObject({ status: 3, stdout: "" });
  expect(ran.stderr).toContain("my-db: no longer waiting; the operation goes on at the broker.");
  expect(ran.stderr).not.toContain(OSBERT_LOGIN.split(":")[1]);
  const hint = /\n {2}osbert (last-operation .*)\n$/.exec(ran.stderr)?.[1]?.split(" ") ?? [];
  expect(await osbert(hint, { env })).toMatchObject({ status: 3, stdout: "my-db: in progress: copying the data\n" });
  waits.open();
  expect(await osbert([...hint, "--wait"], { env })).toMatchObject({ status: 0 });
});

test("what the broker calls the operation is quoted in the command to copy", async () => {
  const { url } = await brokerThatPolls(state("in progress"));
  const ran = await osbert(["provision", "i", "--url", url, "--no-wait"]);
  expect(ran).toMatchObject({ status: 0, stdout: "" });
  expect(ran.stderr).toContain(`osbert last-operation i --operation 'op $(x)' --service s --plan p --url ${url}\n`);
});

test("--timeout ends with 3; also in JSON", async () => {
  const { url } = await brokerThatPolls(state("in progress", "slow", "3600"));
  const ran = await osbert(["provision", "i", "--url", url, "--timeout", "0.2s", "--json"]);
  expect(ran.status).toBe(3);
  expect(ran.stderr).toContain("the time is up; the operation goes on");
  expect(JSON.parse(ran.stdout)).toMatchObject({ instance: "i", state: "in progress", operation: "op $(x)" });
});

test("a plan's maximum_polling_duration ends the waiting too, and nonsense there does not", async () => {
  const catalogWith = (duration: unknown) => {
    const [service] = plainCatalog.services;
    return { services: [{ ...service, plans: [{ ...service?.plans[0], maximum_polling_duration: duration }] }] };
  };
  for (const [duration, status, options] of [
    [0.2, 3, []],
    [3_600, 3, ["--timeout", "0.2s"]],
    [0.2, 3, ["--timeout", "1h"]],
    ["soon", 0, []],
    [-1, 0, []],
  ] as const) {
    const { url } = await serverThat({
      "GET /v2/catalog": { status: 200, body: catalogWith(duration) },
      "PUT /v2/service_instances/i": { status: 202, body: {} },
      "GET /v2/service_instances/i/last_operation": [
        state("in progress", "", status === 3 ? "3600" : "0"),
        state(status === 3 ? "in progress" : "succeeded"),
      ],
    });
    expect(await osbert(["provision", "i", "--url", url, ...options])).toMatchObject({ status });
  }
});

test.each(["soon", "0", "-1s", "31d", "1e3"])("--timeout %s is refused before anything is sent", async (timeout) => {
  const { url, asked } = await brokerThatPolls(state("succeeded"));
  const ran = await osbert(["provision", "i", "--url", url, `--timeout=${timeout}`]);
  expect(ran.status).toBe(2);
  expect(ran.stderr).toContain("90s, 5m or 2h");
  expect(asked).toEqual([]);
});

test("a deleted resource that answers 410 while it is waited for is gone", async () => {
  const { url } = await serverThat({
    "GET /v2/catalog": { status: 200, body: plainCatalog },
    "DELETE /v2/service_instances/i": { status: 202, body: {} },
    "GET /v2/service_instances/i/last_operation": [state("in progress"), { status: 410, body: {} }],
  });
  expect(await osbert(["deprovision", "i", "--url", url])).toMatchObject({ status: 0, stdout: "i is deprovisioned\n" });
  expect(await osbert(["last-operation", "i", "--url", url])).toMatchObject({ status: 0, stdout: "i: gone\n" });
});

/** What a broker that comes up late answers to everything. */
async function comeUp(url: string, body: object): Promise<void> {
  const server: Server = createServer((_, response) => void response.end(JSON.stringify(body)));
  await new Promise<void>((resolve) => server.listen(Number(new URL(url).port), "127.0.0.1", resolve));
  onTestFinished(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
}

const absent = "the broker does not answer; asking again for 30 s\n";

test("last-operation --wait waits for a broker that is being started; without --wait it does not", async () => {
  const url = await urlWithoutServer();
  expect(await osbert(["last-operation", "i", "--url", url])).toMatchObject({ status: 4 });
  let isUp: Promise<void> | undefined;
  const ran = await osbert(["last-operation", "i", "--wait", "--url", url], {
    watch: () => {
      isUp ??= comeUp(url, { state: "succeeded", description: "done" });
    },
  });
  await isUp;
  expect(ran).toEqual({ status: 0, stdout: "i: succeeded: done\n", stderr: absent });
});

test("so it does for the catalog, where it has to look up names, and for a gateway that says that nobody is there", async () => {
  const { url, asked } = await serverThat({
    "GET /v2/catalog": [
      (response) => void response.destroy(),
      { status: 503, body: "<html>", headers: { "retry-after": "0" } },
      { status: 200, body: plainCatalog },
    ],
    "GET /v2/service_instances/i/last_operation": [{ status: 502, body: "<html>" }, state("succeeded", "done")],
  });
  const ran = await osbert(["last-operation", "i", "--wait", "--service", "db", "--url", url]);
  expect(ran).toEqual({ status: 0, stdout: "i: succeeded: done\n", stderr: absent + absent });
  expect(asked).toHaveLength(5);
});

test("after thirty seconds it gives up", async () => {
  const url = await urlWithoutServer();
  let now = 0;
  const ran = await osbert(["last-operation", "i", "--wait", "--url", url], {
    now: () => now,
    watch: () => {
      now += 30_000;
    },
  });
  expect(ran.status).toBe(4);
  expect(ran.stderr).toContain("nothing listens there");
});

test("a refusal is not waited out", async () => {
  const { url, asked } = await serverThat({});
  expect(await osbert(["last-operation", "i", "--wait", "--url", url])).toMatchObject({ status: 1 });
  expect(asked).toHaveLength(1);
});

test("bind bears a broker that is away when the credentials are to be fetched", async () => {
  const { url } = await serverThat({
    "GET /v2/catalog": { status: 200, body: plainCatalog },
    "PUT /v2/service_instances/i/service_bindings/b": { status: 202, body: {} },
    "GET /v2/service_instances/i/service_bindings/b/last_operation": [
      (response) => void response.destroy(),
      state("succeeded"),
    ],
    "GET /v2/service_instances/i/service_bindings/b": [
      (response) => void response.destroy(),
      { status: 200, body: { credentials: { uri: "db://b" } } },
    ],
  });
  const ran = await osbert(["bind", "i", "b", "--url", url]);
  expect(ran.status).toBe(0);
  expect(JSON.parse(ran.stdout)).toEqual({ uri: "db://b" });
});
