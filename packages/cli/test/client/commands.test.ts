import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { osbert } from "./osbert-run.js";
import { database, failing, gate, realBroker, syncOnly } from "./real-broker.js";
import { plainCatalog, retrievableCatalog, serverThat } from "./server-that.js";

describe("a life with names instead of ids", () => {
  test("provision, fetch, update, bind, fetch, unbind, deprovision", async () => {
    const { env } = await realBroker([database(), syncOnly]);
    const run = (...args: string[]) => osbert(args, { env });

    const provisioned = await run(
      "provision",
      "my-db",
      "--service",
      "database",
      "--plan",
      "small",
      "-p",
      "language=de",
      "-p",
      "size:=3",
    );
    expect(provisioned).toMatchObject({ status: 0 });
    expect(provisioned.stdout).toBe(
      "my-db is provisioned: database, small\ndashboard: https://dashboard.example/my-db\n",
    );
    expect((await run("last-operation", "my-db")).stdout).toMatch(/^my-db: succeeded/);

    const fetched = await run("fetch", "my-db");
    expect(fetched.stdout).toMatch(/^service +database$/m);
    expect(fetched.stdout).toMatch(/^plan +small$/m);
    expect(fetched.stdout).toMatch(/^parameters +{"language":"de","size":3}$/m);

    // The broker tells service and plan from here on.
    const bound = await run("bind", "my-db", "my-app", "-p", "role=reader");
    expect(bound).toMatchObject({ status: 0 });
    expect(JSON.parse(bound.stdout)).toEqual({ uri: "db://my-app", given: { role: "reader" }, hosts: ["a", "b"] });
    expect(bound.stderr).toContain("my-app is bound to my-db\n");
    expect((await run("fetch", "my-db", "my-app", "--format", "env")).stdout).toBe(
      "export MY_DB_URI='db://my-app'\nexport MY_DB_GIVEN_ROLE='reader'\nexport MY_DB_HOSTS_0='a'\nexport MY_DB_HOSTS_1='b'\n",
    );
    expect((await run("fetch", "my-db", "my-app", "--format", "env", "--prefix", "X")).stdout).toContain(
      "export XURI=",
    );
    expect(JSON.parse((await run("fetch", "my-db", "my-app", "--json")).stdout)).toMatchObject({
      instance: "my-db",
      binding: "my-app",
      credentials: { uri: "db://my-app" },
    });

    expect(await run("unbind", "my-db", "my-app")).toMatchObject({
      status: 0,
      stdout: "my-app is unbound from my-db\n",
    });
    expect(await run("unbind", "my-db", "my-app")).toMatchObject({ status: 0, stdout: "my-app was gone already\n" });
    expect(await run("update", "my-db", "--plan", "large")).toMatchObject({ status: 0, stdout: "my-db is updated\n" });
    expect((await run("fetch", "my-db")).stdout).toMatch(/^plan +large$/m);
    expect(await run("deprovision", "my-db")).toMatchObject({ status: 0, stdout: "my-db is deprovisioned\n" });
    expect(await run("fetch", "my-db")).toMatchObject({ status: 1, stdout: "" });
  });

  test("a broker that answers when it is done, and lets nothing be fetched", async () => {
    const { env } = await realBroker([syncOnly]);
    const run = (...args: string[]) => osbert(args, { env });
    expect(await run("provision", "c")).toEqual({ status: 0, stdout: "c is provisioned: cache, only\n", stderr: "" });
    const bound = await run("bind", "c", "b", "--format", "env");
    expect(bound.stdout).toBe("export C_PASSWORD='it'\\''s secret'\n");
    expect(await run("fetch", "c", "b")).toMatchObject({ status: 1, stdout: "" });
    expect((await run("unbind", "c", "b")).status).toBe(0);
    expect(await run("deprovision", "c")).toEqual({ status: 0, stdout: "c is deprovisioned\n", stderr: "" });
  });

  test("--json prints one document and nothing else", async () => {
    const { env } = await realBroker([database()]);
    const run = async (...args: string[]) => JSON.parse((await osbert([...args, "--json"], { env })).stdout) as unknown;
    expect(await run("provision", "i", "--plan", "small", "-p", "language=de")).toMatchObject({
      instance: "i",
      state: "succeeded",
      service_id: "database-id",
      plan_id: "small-id",
      dashboard_url: "https://dashboard.example/i",
    });
    expect(await run("bind", "i", "b")).toMatchObject({
      binding: "b",
      state: "succeeded",
      credentials: { uri: "db://b" },
    });
    expect(await run("last-operation", "i", "b")).toMatchObject({ state: "succeeded" });
    expect(await run("fetch", "i")).toMatchObject({ instance: "i", plan_id: "small-id" });
    expect(await run("deprovision", "i")).toMatchObject({ error: { kind: "answer", status: 422 } });
    expect(await run("provision", "j", "--plan", "medium")).toMatchObject({ error: { kind: "usage" } });
  });

  test("parameters come from text, file, standard input and pairs, in their order", async () => {
    const { url, asked } = await serverThat({
      "GET /v2/catalog": { status: 200, body: plainCatalog },
      "PUT /v2/service_instances/i": { status: 201 },
    });
    const folder = await mkdtemp(join(tmpdir(), "osbert-client-"));
    onTestFinished(() => rm(folder, { recursive: true }));
    const file = join(folder, "p.json");
    await writeFile(file, '{"a":{"x":1},"from":"file"}');
    const args = [
      "provision",
      "i",
      "--url",
      url,
      "-P",
      '{"from":"text","t":1}',
      "-P",
      `@${file}`,
      "-p",
      "a.y=2",
      "-P",
      "@-",
    ];
    expect(await osbert(args, { stdin: '{"from":"stdin"}' })).toMatchObject({ status: 0 });
    expect(JSON.parse(asked[1]?.body ?? "")).toEqual({
      service_id: "s",
      plan_id: "p",
      organization_guid: "osbert",
      space_guid: "osbert",
      parameters: { from: "stdin", t: 1, a: { x: 1, y: "2" } },
    });
    const missing = await osbert(["provision", "i", "--url", url, "-P", `@${folder}/none.json`]);
    expect(missing).toMatchObject({ status: 2 });
    expect(missing.stderr).toContain("none.json cannot be read (ENOENT)");
  });

  test("context, organization, space, application and predecessor reach the broker", async () => {
    const { url, asked } = await serverThat({
      "GET /v2/catalog": { status: 200, body: plainCatalog },
      "PUT /v2/service_instances/i": { status: 201 },
      "PUT /v2/service_instances/i/service_bindings/b": { status: 201 },
    });
    const run = (...args: string[]) => osbert([...args, "--url", url]);
    await run("provision", "i", "--organization", "o", "--space", "sp", "--context", '{"platform":"x"}', "--sync");
    await run("bind", "i", "b", "--app", "a");
    await run("bind", "i", "b", "--rotate", "old");
    const puts = asked.filter(({ line }) => line.startsWith("PUT"));
    expect(JSON.parse(puts[0]?.body ?? "")).toMatchObject({
      organization_guid: "o",
      space_guid: "sp",
      context: { platform: "x" },
    });
    expect(puts[0]?.query.get("accepts_incomplete")).toBeNull();
    expect(JSON.parse(puts[1]?.body ?? "")).toMatchObject({ app_guid: "a", bind_resource: { app_guid: "a" } });
    expect(puts[1]?.query.get("accepts_incomplete")).toBe("true");
    expect(JSON.parse(puts[2]?.body ?? "")).toEqual({ predecessor_binding_id: "old" });
  });
});

describe("which service and plan", () => {
  const two = {
    services: [
      {
        id: "s1",
        name: "db",
        description: "",
        bindable: true,
        plans: [
          { id: "p1", name: "small", description: "" },
          { id: "p2", name: "large", description: "" },
        ],
      },
      {
        id: "s2",
        name: "cache",
        description: "",
        bindable: true,
        plans: [
          { id: "p3", name: "small", description: "" },
          { id: "p4", name: "huge", description: "" },
        ],
      },
    ],
  };
  async function chosenBy(...options: string[]) {
    const { url, asked } = await serverThat({
      "GET /v2/catalog": { status: 200, body: two },
      "PUT /v2/service_instances/i": { status: 201 },
    });
    const ran = await osbert(["provision", "i", "--url", url, ...options]);
    const put = asked.find(({ line }) => line.startsWith("PUT"));
    const { service_id, plan_id } = JSON.parse(put?.body ?? "{}") as Record<string, string>;
    return { ...ran, chosen: put === undefined ? undefined : `${service_id}/${plan_id}` };
  }

  test("by name, by id, and by the plan alone where that is enough", async () => {
    expect(await chosenBy("--service", "db", "--plan", "small")).toMatchObject({ chosen: "s1/p1" });
    expect(await chosenBy("--service", "s2", "--plan", "p3")).toMatchObject({ chosen: "s2/p3" });
    expect(await chosenBy("--plan", "huge")).toMatchObject({ chosen: "s2/p4" });
  });

  test("what is ambiguous, missing or unknown is answered with the choice, and nothing is sent", async () => {
    for (const [options, message] of [
      [["--plan", "small"], /could be several plans.*\n {2}db \/ small {2}\(p1\)\n {2}cache \/ small {2}\(p3\)/],
      [["--service", "db"], /say which plan you mean with --plan\n {2}db \/ small/],
      [[], /say which service you mean with --service\n {2}db {2}\(s1\)\n {2}cache/],
      [["--service", "queue"], /no service called queue/],
      [["--service", "db", "--plan", "huge"], /no plan called huge/],
    ] as const) {
      const { status, stderr, chosen } = await chosenBy(...options);
      expect({ status, chosen }).toEqual({ status: 2, chosen: undefined });
      expect(stderr).toMatch(message);
    }
  });

  test("of an instance that the broker does not tell about: the options, the only one, or a question", async () => {
    const { url, asked } = await serverThat({
      "GET /v2/catalog": { status: 200, body: two },
      "DELETE /v2/service_instances/i": { status: 200 },
      "PATCH /v2/service_instances/i": { status: 200 },
    });
    const run = (...args: string[]) => osbert([...args, "--url", url]);
    const asking = await run("deprovision", "i");
    expect(asking.status).toBe(2);
    expect(asking.stderr).toMatch(/does not tell the service and plan of i .*say which service/);
    expect(await run("deprovision", "i", "--service", "db", "--plan", "large")).toMatchObject({ status: 0 });
    expect(Object.fromEntries(asked.at(-1)?.query ?? [])).toMatchObject({ service_id: "s1", plan_id: "p2" });
    // An update can do without the present plan.
    expect(await run("update", "i", "--plan", "huge")).toMatchObject({ status: 0 });
    expect(JSON.parse(asked.at(-1)?.body ?? "")).toEqual({ service_id: "s2", plan_id: "p4" });
    expect(await run("update", "i", "--service", "db", "-p", "a=1")).toMatchObject({ status: 0 });
    expect(JSON.parse(asked.at(-1)?.body ?? "")).toEqual({ service_id: "s1", parameters: { a: "1" } });
    expect(await run("update", "i")).toMatchObject({ status: 2 });
  });

  test("ids of what has left the catalog are sent as they are, and names have to be in it", async () => {
    const { url, asked } = await serverThat({
      "GET /v2/catalog": { status: 200, body: two },
      "DELETE /v2/service_instances/i": { status: 200 },
      "DELETE /v2/service_instances/i/service_bindings/b": { status: 200 },
      "GET /v2/service_instances/i/last_operation": { status: 200, body: { state: "succeeded" } },
    });
    const service_id = "0a6f0c5e-7a5d-5b1c-9d0e-2f4a6c8e0b1d";
    const plan_id = "d41d8cd98f00b204e9800998ecf8427e";
    for (const command of [
      ["deprovision", "i"],
      ["unbind", "i", "b"],
      ["last-operation", "i"],
    ])
      for (const service of [service_id, "db"]) {
        const ran = await osbert([...command, "--service", service, "--plan", plan_id, "--url", url]);
        expect(ran).toMatchObject({ status: 0 });
        const sent = Object.fromEntries(asked.at(-1)?.query ?? []);
        expect(sent).toMatchObject({ service_id: service === "db" ? "s1" : service_id, plan_id });
      }
    expect(await osbert(["last-operation", "i", "--service", service_id, "--url", url])).toMatchObject({ status: 0 });
    const misspelt = await osbert(["deprovision", "i", "--service", "bd", "--plan", plan_id, "--url", url]);
    expect([misspelt.status, misspelt.stderr]).toEqual([2, expect.stringContaining("there is no service called bd")]);
  });

  test("an instance of a catalog that is empty by now can be deprovisioned", async () => {
    const service_id = "0a6f0c5e-7a5d-5b1c-9d0e-2f4a6c8e0b1d";
    const plan_id = `${service_id}-events`;
    const { url, asked } = await serverThat({
      "GET /v2/catalog": { status: 200, body: { services: [] } },
      "GET /v2/service_instances/told": { status: 200, body: { service_id, plan_id } },
      "DELETE /v2/service_instances/told": { status: 200 },
      "DELETE /v2/service_instances/untold": { status: 200 },
    });
    for (const args of [["told"], ["untold", "--service", service_id, "--plan", plan_id]]) {
      expect(await osbert(["deprovision", ...args, "--url", url])).toMatchObject({ status: 0 });
      expect(Object.fromEntries(asked.at(-1)?.query ?? [])).toMatchObject({ service_id, plan_id });
    }
    const untold = await osbert(["deprovision", "untold", "--url", url]);
    expect([untold.status, untold.stderr]).toEqual([2, expect.stringContaining("it answered 404")]);
  });

  test("what the broker tells counts more than the catalog, and an option that contradicts it is refused", async () => {
    const { url, asked } = await serverThat({
      "GET /v2/catalog": { status: 200, body: retrievableCatalog },
      "GET /v2/service_instances/i": { status: 200, body: { service_id: "s", plan_id: "retired" } },
      "DELETE /v2/service_instances/i": { status: 200 },
    });
    expect(await osbert(["deprovision", "i", "--url", url])).toMatchObject({ status: 0 });
    expect(asked.at(-1)?.query.get("plan_id")).toBe("retired");
    const contradicted = await osbert(["deprovision", "i", "--url", url, "--plan", "small"]);
    expect(contradicted.status).toBe(2);
    expect(contradicted.stderr).toContain("i is of service db, plan retired");
  });

  test.each(["", ".", "..", "a\nb", "x".repeat(501)])(
    "%j is no name for an instance: nothing is asked",
    async (name) => {
      const { url, asked } = await serverThat({ "GET /v2/catalog": { status: 200, body: plainCatalog } });
      expect(await osbert(["deprovision", "--url", url, "--", name])).toMatchObject({ status: 2 });
      expect(asked).toEqual([]);
    },
  );

  test("a name with any other characters is the id", async () => {
    const { env } = await realBroker([syncOnly]);
    const name = "Zoë's /db?#1";
    expect(await osbert(["provision", name], { env })).toMatchObject({ status: 0 });
    expect(await osbert(["last-operation", name, "--json"], { env })).toMatchObject({ status: 0 });
  });
});

describe("the catalog", () => {
  test("is a table for people", async () => {
    const { env } = await realBroker([database(), syncOnly]);
    const { stdout } = await osbert(["catalog"], { env });
    expect(stdout.split("\n")).toEqual([
      "SERVICE   PLAN   FREE  BINDABLE  DESCRIPTION",
      "cache     only   yes   yes       The only one",
      "database  small  yes   yes       A small one",
      "database  large  no    no        A large one",
      "",
    ]);
  });

  test("shows one service with the parameters of its plans", async () => {
    const { env } = await realBroker([database(), syncOnly]);
    const { stdout } = await osbert(["catalog", "database"], { env });
    expect(stdout).toMatch(/^tags +sql$/m);
    expect(stdout).toMatch(/^ {2}parameters of provision$/m);
    expect(stdout).toMatch(/^ {4}language +string +yes +of its messages$/m);
    expect(stdout).toMatch(/^ {4}size +integer from 1 +no +\(default 1\)$/m);
    expect(stdout).toMatch(/^ {4}backup\.hour +integer +no/m);
    expect(stdout).not.toContain("cache");
    expect(await osbert(["catalog", "nothing"], { env })).toMatchObject({ status: 2 });
  });

  test("is JSON for machines", async () => {
    const { env } = await realBroker([database()]);
    const all = JSON.parse((await osbert(["catalog", "--json"], { env })).stdout) as { services: unknown[] };
    expect(all.services).toMatchObject([{ id: "database-id", plans: [{ id: "small-id" }, { id: "large-id" }] }]);
    expect(JSON.parse((await osbert(["catalog", "database", "--json"], { env })).stdout)).toMatchObject({
      id: "database-id",
    });
  });
});

describe("what fails", () => {
  test("a provision that is accepted and fails ends with 1 and the broker's words, without its escapes", async () => {
    const { env } = await realBroker([failing]);
    const ran = await osbert(["provision", "i"], { env });
    expect(ran).toMatchObject({ status: 1, stdout: "" });
    expect(ran.stderr).toContain("error: could not provision i: the operation failed\n");
    expect(ran.stderr).toMatch(/description +there are no disks left in red$/m);
    expect(ran.stderr).not.toContain("\u001b");
    expect(await osbert(["last-operation", "i"], { env })).toMatchObject({ status: 1 });
    // The broker tells nothing of it any more, but there is only one plan.
    expect(await osbert(["deprovision", "i"], { env })).toMatchObject({ status: 0 });
  });

  test("a refusal ends with 1, and status, code and description in one block", async () => {
    const { env } = await realBroker([database()]);
    const ran = await osbert(["provision", "i", "--plan", "small", "-p", "size:=0", "-p", "language=de"], { env });
    expect(ran.status).toBe(1);
    expect(ran.stderr).toMatch(
      /^error: could not provision i: the broker refused\n {2}status +400\n {2}error +BadRequest\n {2}description +.*size/,
    );
  });

  test("a busy instance ends with 1, and the order that is under way is not disturbed", async () => {
    const waits = gate();
    const { env } = await realBroker([database(waits)]);
    const args = ["provision", "i", "--plan", "small", "-p", "language=de"];
    expect(await osbert([...args, "--no-wait"], { env })).toMatchObject({ status: 0 });
    expect(
      await osbert(["update", "i", "--service", "database", "--from-plan", "small", "--plan", "large"], { env }),
    ).toMatchObject({ status: 1 });
    expect(await osbert(["last-operation", "i"], { env })).toMatchObject({ status: 3 });
    waits.open();
    expect(await osbert(["last-operation", "i", "--wait"], { env })).toMatchObject({ status: 0 });
  });

  test("a binding that was made but cannot be fetched is said to be made", async () => {
    const { url } = await serverThat({
      "GET /v2/catalog": { status: 200, body: plainCatalog },
      "PUT /v2/service_instances/i/service_bindings/b": { status: 202, body: {} },
      "GET /v2/service_instances/i/service_bindings/b/last_operation": { status: 200, body: { state: "succeeded" } },
    });
    const ran = await osbert(["bind", "i", "b", "--url", url]);
    expect(ran).toMatchObject({ status: 1, stdout: "" });
    expect(ran.stderr).toContain("b is bound to i, but its credentials could not be fetched");
  });
});
