import { mkdtemp, rm } from "node:fs/promises";
import { request as httpRequest } from "node:http";
import { type AddressInfo, connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { memoryStore } from "@osbert/journal/memory";
import { sqliteStore } from "@osbert/journal/sqlite";
import { interposedStore } from "@osbert/journal/testing";
import { fastify } from "fastify";
import { describe, expect, onTestFinished, test } from "vitest";
import { brokerPlugin, routes, serve } from "../src/http/index.js";
import { createBroker } from "../src/index.js";
import type { TestAnswer } from "../src/testing/index.js";
import {
  bindBody,
  bindingPath,
  bound,
  everything,
  expectRefusal,
  flowOn,
  gate,
  ids,
  instancePath,
  lab,
  provisionBody,
  ready,
  unchanged,
  wires,
} from "./lab.js";

const sync = { acceptsIncomplete: false };
const at = `?service_id=${ids.service}&plan_id=${ids.small}`;

/** Values of every kind that JSON has, where another one belongs. */
const strange = [
  null,
  true,
  false,
  0,
  -1,
  1e308,
  "",
  "x",
  [],
  [[]],
  {},
  { a: {} },
  "\u0000",
  "\ud800",
  "😀".repeat(100),
];

function nested(levels: number): string {
  return `${"[".repeat(levels)}${"]".repeat(levels)}`;
}

describe.each(wires)("%s: bad input", (wire) => {
  test("ROB-01, ROB-02, B13: every field of every body, with every kind of value: no 5xx, and every error has a description", async () => {
    const flow = await flowOn(wire, lab());
    await ready(flow, "i1");
    await bound(flow, "i1", "b1");
    const bodies = [
      [
        "PUT",
        instancePath("new"),
        { ...provisionBody, context: {}, parameters: {}, maintenance_info: { version: "1.2.3" } },
      ],
      [
        "PATCH",
        instancePath("i1"),
        {
          service_id: ids.service,
          plan_id: ids.small,
          context: {},
          parameters: {},
          previous_values: {},
          maintenance_info: { version: "1.2.3" },
        },
      ],
      [
        "PUT",
        bindingPath("i1", "new"),
        {
          ...bindBody,
          context: {},
          parameters: {},
          app_guid: "a",
          bind_resource: { app_guid: "a", route: "r" },
          predecessor_binding_id: "b1",
        },
      ],
    ] as const;
    for (const [method, path, body] of bodies) {
      for (const field of Object.keys(body)) {
        for (const value of strange) {
          const answer = await flow.request(method, path, { body: { ...body, [field]: value } });
          expect(answer.status, `${method} ${field}=${JSON.stringify(value)}`).toBeLessThan(500);
          if (answer.status >= 400) expect(answer.body.description).toMatch(/\S/);
          await flow.advance();
          if (path === instancePath("new")) await flow.deprovision("new", sync);
          if (path === bindingPath("i1", "new")) await flow.unbind("i1", "new", sync);
        }
      }
    }
  });

  test("ROB-05, PROV-08: bodies that are malformed, deep, huge or no text change nothing", async () => {
    const flow = await flowOn(wire, lab());
    await ready(flow, "i1");
    const whole = JSON.stringify(provisionBody);
    const hostile: [string, unknown, number][] = [
      ["malformed", whole.slice(0, -1), 400],
      ["twice", whole + whole, 400],
      ["2,000 deep", whole.replace("}", `,"parameters":{"a":${nested(2_000)}}}`), 400],
      ["10,000 deep", whole.replace("}", `,"x":${nested(10_000)}}`), 400],
      ["10,000 deep and open", `{"a":${"[".repeat(10_000)}`, 400],
      ["deep in objects", whole.replace("}", `,"context":${'{"a":'.repeat(2_000)}1${"}".repeat(2_000)}}`), 400],
      ["several megabytes", whole.replace("}", `,"x":"${"y".repeat(5_000_000)}"}`), 413],
      [
        "invalid UTF-8",
        Buffer.concat([Buffer.from(whole.slice(0, -2)), Buffer.from([0xc3, 0x28]), Buffer.from('"}')]),
        400,
      ],
      ["UTF-16", Buffer.from(whole, "utf16le"), 400],
      ["NUL", `${whole}\u0000`, 400],
      ["only NUL", new Uint8Array(100), 400],
    ];
    for (const [name, body, status] of hostile) {
      for (const [method, path] of [
        ["PUT", instancePath("i2")],
        ["PATCH", instancePath("i1")],
        ["PUT", bindingPath("i1", "b1")],
      ] as const) {
        const answer = await unchanged(flow, () => flow.request(method, path, { body }));
        expect(answer.status, `${name} ${method} ${path}`).toBe(status);
        expect(expectRefusal(answer, status)).toContain("body");
      }
    }
  });

  test("ROB-05: brackets in texts are not depth, and a hundred levels are allowed", async () => {
    const flow = await flowOn(wire, lab());
    const parameters = { text: `${"[{".repeat(5_000)}\\"`, list: JSON.parse(nested(90)) };
    expect((await flow.provision("i1", { ...sync, plan: "large", parameters })).status).toBe(201);
    expect((await flow.fetch("i1")).body.parameters).toEqual(parameters);
  });

  test("ROB-05: __proto__ and its like are data wherever they stand", async () => {
    const flow = await flowOn(wire, lab());
    const evil = '"__proto__":{"service_id":"x","admin":true},"constructor":{"prototype":{"admin":true}}';
    const body = JSON.stringify({ ...provisionBody, plan_id: ids.large }).replace(
      "}",
      `,${evil},"context":{${evil}},"parameters":{${evil}}}`,
    );
    expect((await flow.request("PUT", instancePath("i1"), { body })).status).toBe(201);
    const missing = `{"__proto__":${JSON.stringify(provisionBody)}}`;
    expect(expectRefusal(await flow.request("PUT", instancePath("i2"), { body: missing }), 400)).toContain(
      "service_id",
    );
    for (const id of ["__proto__", "constructor", "toString", "hasOwnProperty"]) {
      expect((await flow.provision(id, sync)).status).toBe(201);
      expect((await flow.bind(id, id, sync)).status).toBe(201);
      expect((await flow.fetch(id, id)).status).toBe(200);
    }
    expect(({} as { admin?: boolean }).admin).toBeUndefined();
  });

  test("ROB-10: of repeated query parameters the first one counts", async () => {
    const flow = await flowOn(wire, lab());
    await ready(flow, "i1");
    const twice = `?service_id=${ids.service}&service_id=x&plan_id=${ids.small}&plan_id=&accepts_incomplete=false&accepts_incomplete=true`;
    const wrong = `?service_id=x&service_id=${ids.service}&plan_id=${ids.small}`;
    expectRefusal(await unchanged(flow, () => flow.request("DELETE", `${instancePath("i1")}${wrong}`)), 400);
    expect(
      (await flow.request("GET", `${instancePath("i1")}/last_operation${twice}&operation=x&operation=`)).status,
    ).toBe(400);
    expect((await flow.request("DELETE", `${instancePath("i1")}${twice}`)).status).toBe(200);
  });

  test("ROB-10, URL-05: queries that are badly encoded are no 5xx", async () => {
    const flow = await flowOn(wire, lab());
    await ready(flow, "i1");
    for (const query of [
      "?%",
      "?%zz=1",
      "?=",
      "?&&&",
      "?service_id=%ff",
      "?service_id[]=a",
      "?a=1?b=2",
      "?service_id=%00&plan_id=%00",
    ]) {
      const answer = await unchanged(flow, () => flow.request("DELETE", `${instancePath("i1")}${query}`));
      expectRefusal(answer, 400);
    }
  });

  test("ROB-03, ROB-04: unknown routes and wrong methods are 404 or 405, with a description", async () => {
    const flow = await flowOn(wire, lab());
    await ready(flow, "i1");
    for (const path of [
      "/",
      "/v1/catalog",
      "/v2",
      "/v2/",
      "/v2/catalog/",
      "/v2/catalog/x",
      "/v2/service_instances",
      "/v2/service_instances/",
      "/v2/service_instances/i1/",
      "/v2/service_instances/i1/service_bindings",
      "/v2/service_instances/i1/service_bindings/",
      "/v2/service_instances//service_bindings/b1",
      "/v2/service_instances/i1/nothing",
      "/v2/service_instances/i1/service_bindings/b1/nothing",
      "/v2/service_instances/i1/service_bindings/b1/last_operation/x",
      "/V2/catalog",
      "//v2/catalog",
      "/x/v2/catalog",
      "/x/y/v2/catalog",
    ]) {
      for (const method of ["GET", "PUT", "PATCH", "DELETE", "POST"]) {
        const body = method === "GET" || method === "DELETE" ? {} : { body: provisionBody };
        const answer = await unchanged(flow, () => flow.request(method, path, body));
        expectRefusal(answer, 404);
      }
    }
    const known = new Set(routes.map(([, path]) => path.replace(":instance", "i1").replace(":binding", "b1")));
    for (const path of known) {
      const allowed = routes.filter(([, route]) => route.replace(":instance", "i1").replace(":binding", "b1") === path);
      for (const method of ["GET", "PUT", "PATCH", "DELETE", "POST", "OPTIONS", "PROPFIND", "PURGE"]) {
        if (allowed.some(([verb]) => verb === method)) continue;
        const answer = await unchanged(flow, () => flow.request(method, `${path}${at}`, {}));
        expect(expectRefusal(answer, 405)).toContain(method);
        expect(answer.headers.allow).toBe(allowed.map(([verb]) => verb).join(", "));
      }
    }
  });

  test("ROB-04: HEAD is GET without a body", async () => {
    const flow = await flowOn(wire, lab());
    await ready(flow, "i1");
    expect(await flow.request("HEAD", "/v2/catalog")).toMatchObject({ status: 200, body: undefined });
    expect(await flow.request("HEAD", instancePath("i1"))).toMatchObject({ status: 200, body: undefined });
    expect(await flow.request("HEAD", instancePath("never"))).toMatchObject({ status: 404, body: undefined });
  });
});

const statuses = (answers: readonly TestAnswer[]) =>
  [...new Set(answers.map(({ status }) => status))].sort((a, b) => a - b);

describe.each(wires)("%s: many at once", (wire) => {
  test("ROB-06: identical provisions make one instance, one operation, and one delete removes it", async () => {
    const laboratory = lab();
    const flow = await flowOn(wire, laboratory);
    const held = gate();
    laboratory.behave.provision = held.wait;
    const answers = await Promise.all(Array.from({ length: 50 }, () => flow.provision("i1")));
    held.open();
    await flow.advance();
    expect(statuses(answers)).toEqual([202]);
    expect(new Set(answers.map(({ body }) => body.operation)).size).toBe(1);
    expect((await flow.deprovision("i1", sync)).status).toBe(200);
    expect(laboratory.done).toEqual(["provision i1", "deprovision i1"]);
  });

  test("ROB-06: so do identical synchronous ones", async () => {
    const laboratory = lab();
    const flow = await flowOn(wire, laboratory);
    const held = gate();
    laboratory.behave.provision = held.wait;
    const asked = Array.from({ length: 50 }, () => flow.provision("i1", sync));
    await flow.advance();
    held.open();
    const answers = await Promise.all(asked);
    // The one that made it; those that joined.
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(1);
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(49);
    expect(new Set(answers.map(({ body }) => JSON.stringify(body))).size).toBe(1);
    expect(laboratory.done).toEqual(["provision i1"]);
  });

  test("ROB-07: of provisions with two plans one plan wins", async () => {
    const laboratory = lab();
    const flow = await flowOn(wire, laboratory);
    const plan = (index: number) => (index % 2 === 0 ? "small" : "large");
    const held = gate();
    laboratory.behave.provision = held.wait;
    const answers = await Promise.all(
      Array.from({ length: 50 }, (_, index) => flow.provision("i1", { plan: plan(index) })),
    );
    held.open();
    await flow.advance();
    expect(statuses(answers)).toEqual([202, 409]);
    const { body } = await flow.fetch("i1");
    const winner = answers.findIndex(({ status }) => status === 202);
    expect(body.plan_id).toBe(plan(winner) === "small" ? ids.small : ids.large);
    expect(laboratory.done).toEqual(["provision i1"]);
  });

  test("ROB-08: identical binds make one binding with one set of credentials", async () => {
    const laboratory = lab();
    let granted = 0;
    const flow = await flowOn(wire, laboratory);
    await ready(flow, "i1");
    const held = gate();
    laboratory.behave.bind = async () => {
      await held.wait();
      return { credentials: { number: ++granted } };
    };
    const asked = Array.from({ length: 50 }, () => flow.bind("i1", "b1", sync));
    await flow.advance();
    held.open();
    const answers = await Promise.all(asked);
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(1);
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(49);
    expect(new Set(answers.map(({ body }) => body.credentials.number))).toEqual(new Set([1]));
  });

  test("ROB-09: identical deletes are one delete", async () => {
    const laboratory = lab();
    const flow = await flowOn(wire, laboratory);
    await ready(flow, "i1");
    await ready(flow, "i2");
    const waiting = await Promise.all(Array.from({ length: 50 }, () => flow.deprovision("i1", sync)));
    expect([[200], [200, 410]]).toContainEqual(statuses(waiting));
    const accepted = await Promise.all(Array.from({ length: 50 }, () => flow.deprovision("i2")));
    await flow.advance();
    expect([[202], [202, 410]]).toContainEqual(statuses(accepted));
    expect(new Set(accepted.flatMap(({ body }) => body.operation ?? [])).size).toBe(1);
    expect(laboratory.done.filter((line) => line.startsWith("deprovision"))).toHaveLength(2);
  });

  test("ROB-11, ROB-12, ROB-13: everything at once on one id ends in a state that can be cleaned up", async () => {
    const laboratory = lab();
    const flow = await flowOn(wire, laboratory);
    const catalog = await flow.request("GET", "/v2/catalog");
    for (let round = 0; round < 10; round++) {
      const held = gate();
      for (const verb of ["provision", "update", "bind"] as const) laboratory.behave[verb] = held.wait;
      const answers = Promise.all(
        Array.from({ length: 10 }, (_, index) => [
          flow.provision("i1", { plan: index % 2 === 0 ? "small" : "large" }),
          flow.update("i1", { parameters: { size: index + 1 } }),
          flow.bind("i1", `b${index % 3}`),
          flow.unbind("i1", `b${index % 3}`),
          flow.deprovision("i1"),
        ]).flat(),
      );
      await flow.advance();
      held.open();
      await flow.advance(60_000);
      for (const { status, body } of await answers) expect(status, JSON.stringify(body)).toBeLessThan(500);
    }
    for (const verb of ["provision", "update", "bind"] as const) delete laboratory.behave[verb];
    await flow.advance(60_000);
    for (const binding of ["b0", "b1", "b2"]) await flow.unbind("i1", binding, sync);
    expect([200, 410]).toContain((await flow.deprovision("i1", sync)).status);
    expectRefusal(await flow.fetch("i1"), 404);
    const left = (await everything(flow)) as { data: { phase: string }; parts: unknown[]; open: unknown[] }[];
    for (const { data, parts, open } of left) expect([data.phase, parts, open]).toEqual(["gone", [], []]);
    expect((await flow.request("GET", "/v2/catalog")).body).toEqual(catalog.body);
    const made = laboratory.done.filter((line) => line.startsWith("provision")).length;
    const removed = laboratory.done.filter((line) => line.startsWith("deprovision")).length;
    expect(removed).toBeGreaterThanOrEqual(made);
  });
});

describe.each(wires)("%s: what could not be kept", (wire) => {
  const half = "x".repeat(500_000);

  test("ROB-01, UPD-13: it is refused before anything is done, also what only grows too large with what is there", async () => {
    const laboratory = lab();
    const flow = await flowOn(wire, laboratory);
    const large = { plan: "large", ...sync };
    const whole = { parameters: { a: half + half } };
    expectRefusal(await unchanged(flow, () => flow.provision("i1", { ...large, ...whole })), 413);
    expect((await flow.provision("i1", { ...large, parameters: { a: half } })).status).toBe(201);
    expectRefusal(await unchanged(flow, () => flow.bind("i1", "b1", { ...large, ...whole })), 413);
    expectRefusal(await unchanged(flow, () => flow.update("i1", { ...sync, ...whole })), 413);
    expectRefusal(await unchanged(flow, () => flow.update("i1", { ...sync, parameters: { b: half } })), 413);
    expect((await flow.update("i1", { ...sync, parameters: { a: "x" } })).status).toBe(200);
    expect((await flow.update("i1", { ...sync, parameters: { b: half } })).status).toBe(200);
    expect(laboratory.done.map((line) => line.split(" ")[0])).toEqual(["provision", "update", "update"]);
  });
});

/** What only a real server sees. */
describe("over a socket", () => {
  test("a server that finds its port taken leaves nothing behind: the broker's store is closed", async () => {
    const folder = await mkdtemp(join(tmpdir(), "osbert-serve-"));
    onTestFinished(() => rm(folder, { recursive: true, force: true }));
    const taken = createServer();
    await new Promise<void>((resolve) => void taken.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => void taken.close());
    const { port } = taken.address() as AddressInfo;
    const broker = () =>
      createBroker({ stderr: "nothing", services: [lab().service], store: sqliteStore(join(folder, "broker.db")) });
    await expect(serve(broker(), { port })).rejects.toMatchObject({ code: "EADDRINUSE" });
    // Its file has one owner: a second broker could not open it if the first had kept it.
    const second = await serve(broker(), { port: 0 });
    await second.close({ drainMs: 0 });
  });

  test("a broker that was started before it is served is started once, and stops as a whole", async () => {
    const folder = await mkdtemp(join(tmpdir(), "osbert-serve-"));
    onTestFinished(() => rm(folder, { recursive: true, force: true }));
    const broker = createBroker({
      stderr: "nothing",
      services: [lab().service],
      store: sqliteStore(join(folder, "broker.db")),
    });
    await Promise.all([broker.start(), broker.start()]);
    const { journal } = broker;
    const server = await serve(broker, { port: 0 });
    expect(broker.journal).toBe(journal);
    await server.close({ drainMs: 0 });
    await broker.start();
    expect(broker.journal).not.toBe(journal);
    await broker.stop({ drainMs: 0 });
  });

  test("a broker that cannot start leaves the store to the next one", async () => {
    const calls: string[] = [];
    const store = interposedStore(memoryStore(), ({ method }, go) => {
      const isFirst = !calls.includes(method);
      calls.push(method);
      return method === "attend" && isFirst ? Promise.reject(new Error("not now")) : go();
    });
    const broker = createBroker({ stderr: "nothing", services: [lab().service], store });
    await expect(broker.start()).rejects.toThrow("not now");
    expect(calls.at(-1)).toBe("close");
    expect(() => broker.journal).toThrow(/starting/);
    await broker.start();
    await broker.stop({ drainMs: 0 });
  });

  test("ROB-05: a request that never comes to its end is not waited for for ever", async () => {
    const broker = createBroker({ stderr: "nothing", services: [lab().service], store: memoryStore() });
    const server = await serve(broker, { port: 0 });
    onTestFinished(() => server.close({ drainMs: 0 }));
    expect(server.app.server.requestTimeout).toBe(60_000);
  });

  async function served() {
    const laboratory = lab();
    const broker = createBroker({ stderr: "nothing", services: [laboratory.service], store: memoryStore() });
    const server = await serve(broker, { port: 0 });
    onTestFinished(() => server.close({ drainMs: 0 }));
    const { username, password } = server.credential ?? { username: "", password: "" };
    const headers = {
      authorization: `Basic ${Buffer.from(`${username}:${password}`).toString("base64")}`,
      "x-broker-api-version": "2.17",
    };
    /** The path goes out as it is; fetch would tidy it up. */
    const ask = (method: string, path: string, body?: string) =>
      new Promise<{ status: number; body: { description?: string } }>((resolve, reject) => {
        const request = httpRequest(server.url, { method, path, headers, agent: false }, (response) => {
          let text = "";
          response.setEncoding("utf8");
          response.on("data", (chunk: string) => {
            text += chunk;
          });
          response.on("end", () =>
            resolve({ status: response.statusCode ?? 0, body: text === "" ? {} : JSON.parse(text) }),
          );
        });
        request.on("error", reject);
        request.end(body);
      });
    return { laboratory, server, ask };
  }

  test("AUTH-01: serve asks for credentials, which it makes if there are none, and listens to this machine alone", async () => {
    const { server, ask } = await served();
    expect(server.url).toContain("127.0.0.1");
    expect(server.credential?.password.length).toBeGreaterThan(20);
    expect((await fetch(`${server.url}/v2/catalog`)).status).toBe(401);
    expect((await ask("GET", "/v2/catalog")).status).toBe(200);
    expect(await (await fetch(`${server.url}/healthz`)).json()).toEqual({ status: "ok" });
  });

  test("URL-05: dots in a path are an id like any other, never the way to another instance", async () => {
    const { ask, laboratory } = await served();
    const body = JSON.stringify({ ...provisionBody, plan_id: ids.large });
    expect((await ask("PUT", "/v2/service_instances/victim", body)).status).toBe(201);
    expect((await ask("PUT", "/v2/service_instances/..", body)).status).toBe(201);
    expect((await ask("PUT", "/v2/service_instances/%2e%2e%2f%2e%2e%2fetc%2fpasswd", body)).status).toBe(201);
    expect((await ask("GET", "/v2/service_instances/x/../victim")).status).toBe(404);
    expect((await ask("DELETE", `/v2/service_instances/x/%2e%2e/victim${at}`)).status).toBe(404);
    expect(laboratory.done).toEqual(["provision victim", "provision ..", "provision ../../etc/passwd"]);
    expect((await ask("GET", "/v2/service_instances/victim")).status).toBe(200);
  });

  test("ROB-02, ROB-03, ROB-04: what the server itself refuses has a description, too", async () => {
    const { ask } = await served();
    for (const [method, path, status] of [
      ["GET", "/v2/service_instances/%zz", 400],
      ["GET", "/%", 404],
      ["PROPFIND", "/v2/catalog", 405],
      ["TRACE", "/v2/catalog", 405],
      ["GET", "/nothing", 404],
    ] as const) {
      const answer = await ask(method, path);
      expect(answer.status, `${method} ${path}`).toBe(status);
      expect(answer.body.description).toMatch(/\S/);
    }
  });

  test("ROB-02: bytes that are no HTTP are answered, and the broker goes on", async () => {
    const { server, ask } = await served();
    const { port } = new URL(server.url);
    for (const bytes of ["NONSENSE\r\n\r\n", `GET / HTTP/1.1\r\nhost: x\r\nx: ${"y".repeat(100_000)}\r\n\r\n`]) {
      const answer = await new Promise<string>((resolve, reject) => {
        const socket = connect(Number(port), "127.0.0.1", () => socket.write(bytes));
        let text = "";
        socket.setEncoding("utf8");
        socket.on("data", (chunk: string) => {
          text += chunk;
        });
        socket.on("close", () => resolve(text));
        socket.on("error", (error: NodeJS.ErrnoException) =>
          error.code === "ECONNRESET" ? resolve(text) : reject(error),
        );
      });
      expect(answer).toMatch(/^HTTP\/1\.1 4\d\d /);
      expect(answer).toContain('"description":"');
    }
    expect((await ask("GET", "/v2/catalog")).status).toBe(200);
  });

  test("ORPH-03: a client that hangs up leaves an instance that a delete removes", async () => {
    const { server, ask, laboratory } = await served();
    const held = gate();
    laboratory.behave.provision = held.wait;
    const { username, password } = server.credential ?? { username: "", password: "" };
    const hungUp = fetch(`${server.url}/v2/service_instances/i1`, {
      method: "PUT",
      body: JSON.stringify(provisionBody),
      headers: {
        authorization: `Basic ${Buffer.from(`${username}:${password}`).toString("base64")}`,
        "x-broker-api-version": "2.17",
        "content-type": "application/json",
      },
      signal: AbortSignal.timeout(200),
    });
    await expect(hungUp).rejects.toThrow();
    const deleted = ask("DELETE", `/v2/service_instances/i1${at}`);
    for (let told = ""; !told.includes("deprovisioned"); ) {
      told = (await ask("GET", "/v2/service_instances/i1/last_operation")).body.description ?? "";
    }
    held.open();
    expect((await deleted).status).toBe(200);
    expect(laboratory.done).toEqual(["provision i1", "deprovision i1 undoing create"]);
  });

  test("the plugin works in an app of the author's own, under a prefix", async () => {
    const broker = createBroker({ stderr: "nothing", services: [lab().service], store: memoryStore() });
    await broker.start();
    const app = fastify();
    onTestFinished(async () => {
      await app.close();
      await broker.stop({ drainMs: 0 });
    });
    app.get("/mine", async () => ({ mine: true }));
    await app.register(brokerPlugin, { prefix: "/broker", broker, credentials: "none" });
    const headers = { "x-broker-api-version": "2.17" };
    expect((await app.inject({ url: "/broker/v2/catalog", headers })).statusCode).toBe(200);
    const put = await app.inject({
      method: "PUT",
      url: "/broker/v2/service_instances/i1",
      headers,
      payload: provisionBody,
    });
    expect(put.statusCode).toBe(201);
    expect((await app.inject({ url: "/mine" })).json()).toEqual({ mine: true });
    expect((await app.inject({ url: "/v2/catalog", headers })).statusCode).toBe(404);
  });
});
