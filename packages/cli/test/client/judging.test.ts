import type { ServerResponse } from "node:http";
import { describe, expect, test } from "vitest";
import { osbert } from "./osbert-run.js";
import { database, failing, realBroker } from "./real-broker.js";
import { plainCatalog, type Reaction, retrievableCatalog, serverThat, urlWithoutServer } from "./server-that.js";

const html = "<html>go away</html>";
const endless = (status: number) => (response: ServerResponse) =>
  void response.writeHead(status).end(Buffer.alloc(9 * 1024 * 1024, " "));

async function answering(line: string, ...reactions: readonly Reaction[]) {
  return serverThat({
    "GET /v2/catalog": { status: 200, body: retrievableCatalog },
    "GET /v2/service_instances/i": { status: 200, body: { service_id: "s", plan_id: "p" } },
    [line]: reactions,
  });
}

describe("the status counts before the body", () => {
  test.each<[string, Reaction]>([
    ["HTML", { status: 401, body: html }],
    ["nothing", { status: 401, body: "" }],
    ["too much", endless(401)],
    [
      "half an answer",
      (response) => {
        response.writeHead(401, { "content-length": "100" }).write("{");
        setImmediate(() => response.destroy());
      },
    ],
  ])("a 401 with %s is a wrong credential", async (_, reaction) => {
    const { url } = await serverThat({ "GET /v2/catalog": reaction });
    const ran = await osbert(["catalog", "--url", url], { env: { OSBERT_LOGIN: "jo:hunter2" } });
    expect(ran).toMatchObject({ status: 1, stdout: "" });
    expect(ran.stderr).toContain("the broker does not know you");
    expect(ran.stderr).toContain("OSBERT_LOGIN is wrong");
  });

  test.each([400, 403, 409, 413, 422, 429])("a %i in no broker's words is a refusal all the same", async (status) => {
    const { url } = await answering("PUT /v2/service_instances/i", { status, body: html });
    const ran = await osbert(["provision", "i", "--url", url]);
    expect(ran.status).toBe(1);
    expect(ran.stderr).toContain(`status       ${status}`);
    expect(ran.stderr).not.toContain("may exist");
  });

  test("a 404 in no broker's words asks for the URL; a 5xx tells that something may stand in front", async () => {
    const wrong = await serverThat({ "GET /v2/catalog": { status: 404, body: html } });
    const ran = await osbert(["catalog", "--url", wrong.url]);
    expect(ran).toMatchObject({ status: 4, stderr: expect.stringContaining("is the URL that of a broker?") });
    const gateway = await serverThat({ "GET /v2/catalog": endless(502) });
    const second = await osbert(["catalog", "--url", gateway.url]);
    expect(second).toMatchObject({ status: 4, stderr: expect.stringContaining("in front of the broker") });
  });

  test("Retry-After is told, also beside a body that cannot be read", async () => {
    for (const [status, body] of [
      [429, html],
      [503, html],
      [422, { error: "ConcurrencyError", description: "busy" }],
    ] as const) {
      const headers = { "retry-after": "17" };
      const { url } = await answering("PUT /v2/service_instances/i", { status, body, headers });
      const ran = await osbert(["provision", "i", "--url", url, "--json"]);
      expect(ran.stderr).toMatch(/try again in +17 s/);
      expect(JSON.parse(ran.stdout)).toMatchObject({ error: { status, retry_after_seconds: 17 } });
    }
  });
});

describe("after an answer that leaves the outcome open", () => {
  const put = "PUT /v2/service_instances/i";
  const bind = "PUT /v2/service_instances/i/service_bindings/b";
  const open: readonly [string, Reaction, ...string[]][] = [
    ["a 500", { status: 500, body: { description: "out of disks" } }],
    ["a 503 in HTML", { status: 503, body: html }],
    ["a 408", { status: 408, body: {} }],
    ["a 201 in HTML", { status: 201, body: html }],
    ["a 204", { status: 204, body: "" }],
    ["a 202 with an operation that is none", { status: 202, body: { operation: 7 } }],
    ["an endless 201", endless(201)],
    ["a connection that breaks", (response) => void response.destroy()],
    ["silence", () => undefined, "--request-timeout", "0.2"],
  ];

  test.each(open)("%s: the instance may exist, with the command that removes it", async (_, reaction, ...options) => {
    const { url } = await answering(put, reaction);
    const ran = await osbert(["provision", "i", "--url", url, "--json", ...options]);
    expect(ran.status).toBeGreaterThan(0);
    const remove = `osbert deprovision i --service s --plan p --url ${url}`;
    expect(ran.stderr).toContain(`i may exist at the broker all the same. To remove it:\n  ${remove}\n`);
    expect(JSON.parse(ran.stdout)).toMatchObject({ error: { may_exist: true, remove } });
  });

  test.each(open)("%s: so may the binding", async (_, reaction, ...options) => {
    const { url } = await answering(bind, reaction);
    const ran = await osbert(["bind", "i", "b", "--url", url, ...options]);
    expect(ran.stderr).toContain(`b may exist at the broker all the same. To remove it:\n`);
    expect(ran.stderr).toContain(`  osbert unbind i b --service s --plan p --url ${url}\n`);
  });

  test("credentials that cannot be read: the binding is there", async () => {
    const { url } = await answering(bind, { status: 201, body: { credentials: "text" } });
    const ran = await osbert(["bind", "i", "b", "--url", url]);
    expect(ran).toMatchObject({ status: 4, stderr: expect.stringContaining("osbert unbind i b") });
  });

  test("a create that failed: the command that is told removes what it left", async () => {
    const { env } = await realBroker([failing]);
    const ran = await osbert(["provision", "i"], { env });
    expect(ran.status).toBe(1);
    expect(ran.stderr).toContain("there are no disks left");
    const remove = /To remove it:\n {2}osbert (.*)\n$/.exec(ran.stderr)?.[1]?.split(" ") ?? [];
    expect(remove).toEqual(["deprovision", "i", "--service", "failing-id", "--plan", "broken-id"]);
    expect(await osbert(remove, { env })).toMatchObject({ status: 0, stdout: "i is deprovisioned\n" });
  });

  test("a delete: it may still exist", async () => {
    for (const [args, line] of [
      [["deprovision", "i"], "DELETE /v2/service_instances/i"],
      [["unbind", "i", "b"], "DELETE /v2/service_instances/i/service_bindings/b"],
    ] as const) {
      const { url } = await answering(line, { status: 500, body: {} });
      const ran = await osbert([...args, "--url", url]);
      const command = `osbert ${args.join(" ")} --service s --plan p --url ${url}`;
      expect(ran.stderr).toContain(`${args.at(-1)} may still exist at the broker. To remove it:\n  ${command}\n`);
    }
  });

  test("what was refused, redirected or never sent leaves nothing", async () => {
    const { env } = await realBroker([database()]);
    const nobody = await urlWithoutServer();
    const moved = await answering(put, { status: 302, body: {}, headers: { location: "http://127.0.0.1:1/" } });
    for (const ran of [
      await osbert(["provision", "i", "--plan", "small"], { env }),
      await osbert(["provision", "i", "--plan", "none"], { env }),
      await osbert(["provision", "i", "--url", nobody], { env }),
      await osbert(["provision", "i", "--url", moved.url]),
      await osbert(["deprovision", "i", "--service", "database", "--plan", "small", "--url", nobody], { env }),
    ]) {
      expect(ran.status).toBeGreaterThan(0);
      expect(ran.stderr).not.toMatch(/may (still )?exist/);
    }
  });
});

describe("a parameter that was meant as a number", () => {
  test("is hinted at when the broker refuses it; its value is not repeated", async () => {
    const { env } = await realBroker([database()]);
    const run = (...args: string[]) =>
      osbert(["provision", "i", "--plan", "small", "-p", "language=de", ...args], { env });
    const ran = await run("-p", "size=837465");
    expect(ran.status).toBe(1);
    expect(ran.stderr).toMatch(/hint +-p size=… sent a text; for a number, true or a list write size:=…/);
    expect(ran.stderr).not.toContain("837465");
    expect((await run("-p", "size:=0")).stderr).not.toContain("hint");
    expect(await run("-p", "size:=3")).toMatchObject({ status: 0 });
  });

  test("is one that is JSON, and no text", async () => {
    const { url } = await serverThat({
      "GET /v2/catalog": { status: 200, body: plainCatalog },
      "PUT /v2/service_instances/i": { status: 400, body: { description: "no" } },
    });
    for (const [pair, isMeant] of [
      ["a=8", true],
      ["a.b=-1.5e3", true],
      ["a=true", true],
      ["a=null", true],
      ['a=["x"]', true],
      ['a={"x":1}', true],
      ["a=1.2.3", false],
      ["a=2024-01-01", false],
      ["a=trueish", false],
      ["a=[x", false],
      ["a=text", false],
      ["a=", false],
      ["a:=8", false],
    ] as const) {
      const ran = await osbert(["provision", "i", "--url", url, "-p", pair]);
      expect(ran.stderr.includes(":=…"), pair).toBe(isMeant);
    }
  });
});
