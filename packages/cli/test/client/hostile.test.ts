import { describe, expect, test } from "vitest";
import { osbert } from "./osbert-run.js";
import { plainCatalog, type Reaction, retrievableCatalog, serverThat, urlWithoutServer } from "./server-that.js";

const escapes = "\u001b]0;title\u0007\u001b[2J\u009b2Jtext\r\nnew line\u202e";

async function answering(line: string, reaction: Reaction, catalog: unknown = plainCatalog) {
  return serverThat({ "GET /v2/catalog": { status: 200, body: catalog }, [line]: reaction });
}

/** Nothing that a terminal would obey. */
function expectPlain(text: string): void {
  expect(text).not.toMatch(/(?!\n)\p{Cc}|\u202e/u);
  expect(text).not.toMatch(/^ +at .*\.[jt]s:/m);
}

describe("what answers is no broker", () => {
  test.each<[string, Reaction]>([
    ["HTML", { status: 200, body: "<html>hello</html>", headers: { "content-type": "text/html" } }],
    ["an HTML error", { status: 502, body: "<html>bad gateway</html>" }],
    ["a JSON list", { status: 200, body: "[]" }],
    ["a list of nothing", { status: 200, body: {} }],
    ["services that are no list", { status: 200, body: { services: { a: 1 } } }],
    ["a redirect", { status: 302, body: {}, headers: { location: "http://127.0.0.1:1/" } }],
    ["an endless body", (response) => void response.writeHead(200).end(Buffer.alloc(9 * 1024 * 1024, " "))],
    ["a closed connection", (response) => void response.destroy()],
  ])("%s ends with 4 and a readable block", async (_, reaction) => {
    const { url } = await serverThat({ "GET /v2/catalog": reaction });
    const ran = await osbert(["catalog", "--url", url]);
    expect(ran).toMatchObject({ status: 4, stdout: "" });
    expect(ran.stderr).toMatch(/^error: /);
    expect(ran.stderr.length).toBeLessThan(1_000);
    expectPlain(ran.stderr);
  });

  test("silence ends with 4 after the time of a request", async () => {
    const { url } = await serverThat({ "GET /v2/catalog": () => undefined });
    const ran = await osbert(["catalog", "--url", url, "--request-timeout", "0.2"]);
    expect(ran.status).toBe(4);
    expect(ran.stderr).toContain("no answer within 200 ms");
  });

  test("a port where nothing listens ends with 4 and the thing to check", async () => {
    const url = await urlWithoutServer();
    const ran = await osbert(["catalog", "--url", url, "--json"]);
    expect(ran.status).toBe(4);
    expect(JSON.parse(ran.stdout)).toMatchObject({ error: { kind: "no connection", code: "ECONNREFUSED" } });
    expect(ran.stderr).toContain("nothing listens there; is the broker running?");
  });
});

describe("texts of a broker", () => {
  test("in an error", async () => {
    const { url } = await answering("PUT /v2/service_instances/i", {
      status: 400,
      body: { error: escapes, description: escapes.repeat(100_000) },
    });
    const ran = await osbert(["provision", "i", "--url", url]);
    expect(ran.status).toBe(1);
    expect(ran.stderr).toContain("text new line");
    expect(ran.stderr.length).toBeLessThan(10_000);
    expectPlain(ran.stderr);
  });

  test("in an error, of the wrong type", async () => {
    const { url } = await answering("PUT /v2/service_instances/i", {
      status: 422,
      body: { error: {}, description: [1] },
    });
    const ran = await osbert(["provision", "i", "--url", url]);
    expect(ran.status).toBe(1);
    expect(ran.stderr).toContain("the broker does not say why");
  });

  test("in the catalog, as a table, in details, in JSON and in a listing of choices", async () => {
    const plan = {
      id: escapes,
      name: escapes,
      description: escapes,
      schemas: {
        service_instance: {
          create: { parameters: { properties: { [escapes]: { enum: [escapes], default: escapes } } } },
        },
      },
    };
    const service = {
      id: "s",
      name: "db",
      description: escapes,
      tags: [escapes, 1],
      bindable: true,
      plans: [plan, { ...plan, id: "2" }, 7, null],
    };
    const { url } = await serverThat({
      "GET /v2/catalog": { status: 200, body: { services: [service, null, { name: 1 }] } },
    });
    for (const args of [["catalog"], ["catalog", "db"], ["catalog", "--json"], ["provision", "i"]]) {
      const { stdout, stderr } = await osbert([...args, "--url", url]);
      expect(stdout + stderr).toContain("db");
      expectPlain(stdout + stderr);
    }
  });

  test("in progress, dashboard, instance, binding and last operation", async () => {
    const { url } = await serverThat({
      "GET /v2/catalog": { status: 200, body: retrievableCatalog },
      "PUT /v2/service_instances/i": { status: 202, body: { dashboard_url: escapes, operation: escapes } },
      "GET /v2/service_instances/i/last_operation": { status: 200, body: { state: "succeeded", description: escapes } },
      "GET /v2/service_instances/i": {
        status: 200,
        body: { service_id: escapes, plan_id: escapes, dashboard_url: escapes, parameters: { [escapes]: escapes } },
      },
      "GET /v2/service_instances/i/service_bindings/b": {
        status: 200,
        body: {
          credentials: { a: escapes, [escapes]: "v" },
          syslog_drain_url: escapes,
          metadata: { expires_at: escapes },
        },
      },
    });
    for (const args of [
      ["provision", "i"],
      ["provision", "i", "--no-wait"],
      ["provision", "i", "--json"],
      ["last-operation", "i"],
      ["fetch", "i"],
      ["fetch", "i", "b"],
      ["fetch", "i", "b", "--json"],
      ["fetch", "i", "b", "--format", "env"],
    ]) {
      const { status, stdout, stderr } = await osbert([...args, "--url", url]);
      expect(status, args.join(" ")).toBe(0);
      expectPlain(stdout + stderr);
    }
  });
});

describe("values of the wrong shape", () => {
  test.each<[readonly string[], string, Reaction, number]>([
    [
      ["fetch", "i", "b"],
      "GET /v2/service_instances/i/service_bindings/b",
      { status: 200, body: { credentials: "text" } },
      4,
    ],
    [
      ["last-operation", "i"],
      "GET /v2/service_instances/i/last_operation",
      { status: 200, body: { state: "done" } },
      4,
    ],
    [["last-operation", "i"], "GET /v2/service_instances/i/last_operation", { status: 200, body: {} }, 4],
    [["provision", "i"], "PUT /v2/service_instances/i", { status: 202, body: { operation: 7 } }, 4],
    [["provision", "i"], "PUT /v2/service_instances/i", { status: 201, body: { dashboard_url: 7 } }, 0],
  ])("%j: %s", async (args, line, reaction, status) => {
    const { url } = await answering(line, reaction, retrievableCatalog);
    const ran = await osbert([...args, "--url", url]);
    expect(ran.status).toBe(status);
    expectPlain(ran.stderr);
  });

  test("ids that are no texts are not sent back: the only plan of the catalog counts", async () => {
    const instance = { status: 200, body: { service_id: 1, plan_id: {} } };
    const { url, asked } = await answering("GET /v2/service_instances/i", instance, retrievableCatalog);
    await osbert(["deprovision", "i", "--url", url]);
    expect(asked.at(-1)?.line).toBe("DELETE /v2/service_instances/i");
    expect(Object.fromEntries(asked.at(-1)?.query ?? [])).toMatchObject({ service_id: "s", plan_id: "p" });
  });

  test("credentials nested without end are refused, not a stack trace", async () => {
    const deep = `{"credentials":${'{"a":'.repeat(200_000)}1${"}".repeat(200_000)}}`;
    const { url } = await answering("GET /v2/service_instances/i/service_bindings/b", { status: 200, body: deep });
    for (const format of ["json", "env"]) {
      const ran = await osbert(["fetch", "i", "b", "--url", url, "--format", format]);
      expect(ran.stdout).toBe("");
      expect(ran.status).toBeGreaterThan(0);
      expect(ran.stderr).toMatch(/too deep/);
      expectPlain(ran.stderr);
    }
  });
});
