import { brokerErrors, type OriginatingIdentity } from "@osbert/protocol";
import { describe, expect, test } from "vitest";
import { routes } from "../src/http/index.js";
import { BrokerError, Failed, type HookRequest } from "../src/index.js";
import type { TestBroker, TestBrokerOptions } from "../src/testing/index.js";
import {
  adapters,
  bindBody,
  bindingPath,
  expectRefusal,
  flowOn,
  hang,
  ids,
  instancePath,
  lab,
  provisionBody,
  ready,
  unchanged,
  wires,
} from "./lab.js";

type Asked = { readonly identity: OriginatingIdentity | null };

const versionHeader = "x-broker-api-version";
const identityHeader = "x-broker-api-originating-identity";
const requestHeader = "x-broker-api-request-identity";

/** Every endpoint, with a request that it understands. */
const endpoints = routes.map(([method, path]) => {
  const at = path.replace(":instance", "i1").replace(":binding", "b1");
  const query = method === "DELETE" ? `?service_id=${ids.service}&plan_id=${ids.small}` : "";
  const body = path.includes("service_bindings") ? bindBody : provisionBody;
  return { method, path: at + query, ...((method === "PUT" || method === "PATCH") && { body }) };
});

const mutating = endpoints.filter(({ method }) => method !== "GET");

function identity(value: unknown, platform = "cloudfoundry"): Record<string, string> {
  return { [identityHeader]: `${platform} ${Buffer.from(JSON.stringify(value)).toString("base64")}` };
}

describe.each(wires)("%s: API version", (wire) => {
  test("VER-01: a request with a supported version is processed", async () => {
    const flow = await flowOn(wire, lab());
    for (const version of ["2.13", "2.14", "2.15", "2.16", "2.17"]) {
      expect((await flow.request("GET", "/v2/catalog", { headers: { [versionHeader]: version } })).status).toBe(200);
    }
  });

  test("VER-02, VER-07, B12: without the version every endpoint answers 400 and names the header", async () => {
    const flow = await flowOn(wire, lab(), { wire: withoutVersion(wire) });
    for (const { method, path, ...rest } of endpoints) {
      const told = expectRefusal(await flow.request(method, path, rest), 400);
      expect(told, `${method} ${path}`).toContain("X-Broker-API-Version");
    }
  });

  test("VER-03, B12: an older minor or another major is refused with 412, which says what to use", async () => {
    const flow = await flowOn(wire, lab());
    for (const version of ["2.12", "1.17", "3.0"]) {
      const answer = await flow.request("GET", "/v2/catalog", { headers: { [versionHeader]: version } });
      expect(expectRefusal(answer, 412)).toContain("2.13");
    }
  });

  test("VER-03: the oldest version can be chosen", async () => {
    const flow = await flowOn(wire, lab(), { minimumApiVersion: "2.16" });
    const ask = (version: string) => flow.request("GET", "/v2/catalog", { headers: { [versionHeader]: version } });
    expect(expectRefusal(await ask("2.15"), 412)).toContain("2.16");
    expect((await ask("2.16")).status).toBe(200);
  });

  test("VER-04, B12: a higher minor of the same major is accepted", async () => {
    const flow = await flowOn(wire, lab());
    expect((await flow.request("GET", "/v2/catalog", { headers: { [versionHeader]: "2.99" } })).status).toBe(200);
    expect((await flow.provision("i1", { headers: { [versionHeader]: "2.99" } })).status).toBe(202);
  });

  test("VER-05: what is not MAJOR.MINOR is a 400", async () => {
    const flow = await flowOn(wire, lab());
    for (const version of ["", "2", "v2.17", "2.17.1", "two.one", "2,17", "999999999999.1", "-2.17"]) {
      const answer = await flow.request("GET", "/v2/catalog", { headers: { [versionHeader]: version } });
      expectRefusal(answer, 400);
    }
  });

  test("VER-06: a request that is refused for its version changes nothing", async () => {
    const flow = await flowOn(wire, lab());
    await ready(flow, "i1");
    for (const { method, path, ...rest } of mutating) {
      const ask = { ...rest, headers: { [versionHeader]: "2.1" } };
      expectRefusal(await unchanged(flow, () => flow.request(method, path, ask)), 412);
    }
  });
});

function withoutVersion(wire: string): NonNullable<TestBrokerOptions["wire"]> {
  return (broker, options) => {
    const handle = adapters[wire]?.(broker, options);
    if (handle === undefined) throw new Error(`there is no adapter ${wire}`);
    return (request) => {
      const header = (name: string) => (name === versionHeader ? undefined : request.header(name));
      return handle({ ...request, header });
    };
  };
}

describe.each(wires)("%s: identities", (wire) => {
  test("ID-01: everything works without an originating identity", async () => {
    const flow = await flowOn(wire, lab());
    await ready(flow, "i1");
    const [accepted] = await flow.broker.journal.entries("/i1");
    expect(accepted?.actor).toEqual({ type: "service-account", subject: "anyone" });
  });

  test("ID-02: the identity of a request stands in the journal, and reaches functions and hooks", async () => {
    const seen: unknown[] = [];
    const laboratory = lab({
      hooks: { before: ({ verb, identity }: HookRequest) => void seen.push([verb, identity]) },
    });
    const flow = await flowOn(wire, laboratory);
    await ready(flow, "i1", { headers: { ...identity({ user_id: "u-1" }), [requestHeader]: "r-1" } });
    const [accepted] = await flow.broker.journal.entries("/i1");
    expect(accepted).toMatchObject({
      actor: { type: "user", subject: "u-1", claims: { platform: "cloudfoundry", user_id: "u-1" } },
      requestId: "r-1",
    });
    expect(seen).toEqual([["provision", { platform: "cloudfoundry", value: { user_id: "u-1" } }]]);
  });

  test("ID-02: each function gets the identity of who asked for it, not of who created the instance", async () => {
    const seen: string[] = [];
    const note = (verb: string, identity: OriginatingIdentity | null) =>
      void seen.push(`${verb} ${JSON.stringify(identity?.value)}`);
    const flow = await flowOn(wire, {
      service: {
        ...lab().service,
        provision: async (_: unknown, input: Asked) => note("provision", input.identity),
        update: async (_: unknown, input: Asked) => note("update", input.identity),
        bind: async (_: unknown, input: Asked) => note("bind", input.identity) ?? {},
        unbind: async (_: unknown, input: Asked) => note("unbind", input.identity),
        deprovision: async (_: unknown, input: Asked) => note("deprovision", input.identity),
      },
    });
    const as = (user: string) => ({ headers: identity({ user_id: user }), acceptsIncomplete: false });
    await flow.provision("i1", as("ann"));
    await flow.update("i1", { ...as("ben"), parameters: { size: 2 } });
    await flow.bind("i1", "b1", as("cat"));
    await flow.unbind("i1", "b1", as("dan"));
    await flow.deprovision("i1", as("eve"));
    expect(seen).toEqual(
      ["provision ann", "update ben", "bind cat", "unbind dan", "deprovision eve"].map((line) =>
        line.replace(/ (.*)/, ' {"user_id":"$1"}'),
      ),
    );
  });

  test("ID-03: a malformed identity is a 400 that names the header, and nothing changes", async () => {
    const flow = await flowOn(wire, lab());
    const base64 = (text: string) => Buffer.from(text).toString("base64");
    const malformed = [
      "cloudfoundry",
      "cloudfoundry !!!",
      `cloudfoundry ${base64("not json")}`,
      `cloudfoundry ${base64("[1]")}`,
      `cloudfoundry ${base64('"text"')}`,
      `cloudfoundry ${base64("null")}`,
      `cloudfoundry ${base64("{}")} more`,
      `cloudfoundry ${Buffer.from([0x7b, 0xff, 0x7d]).toString("base64")}`,
      `cloudfoundry ${base64(`{"a":${"[".repeat(2_000)}${"]".repeat(2_000)}}`)}`,
      `cloudfoundry ${base64(`{"a":"${"x".repeat(60_000)}"}`)}`,
      `${"p".repeat(200)} ${base64("{}")}`,
    ];
    for (const header of malformed) {
      const headers = { [identityHeader]: header };
      for (const { method, path, ...rest } of mutating) {
        const answer = await unchanged(flow, () => flow.request(method, path, { ...rest, headers }));
        expect(expectRefusal(answer, 400), header.slice(0, 60)).toContain("X-Broker-API-Originating-Identity");
      }
    }
  });

  test("ID-04: an identity of another platform than the context's does no harm", async () => {
    const flow = await flowOn(wire, lab());
    const context = { platform: "kubernetes", namespace: "n", clusterid: "c" };
    const answer = await flow.provision("i1", { with: { context }, headers: identity({ user_id: "u" }) });
    expect(answer.status).toBe(202);
  });

  test("ID-05: unknown platforms and more properties than the profile names are tolerated", async () => {
    const flow = await flowOn(wire, lab());
    const value = {
      user_id: "u",
      groups: ["a"],
      extra: { deep: { er: [1, null, "😀"] } },
      platform: "mine",
      __proto__x: 1,
    };
    expect((await flow.provision("i1", { headers: identity(value, "my-platform") })).status).toBe(202);
  });

  test("REQ-01, REQ-02: the request identity comes back on every answer and stands in the journal", async () => {
    const flow = await flowOn(wire, lab());
    for (const id of ["e26cee84-6b38-4456-b34e-d1a9f002c956", "two words", "~!@#$%^&*()"]) {
      const headers = { [requestHeader]: id };
      for (const { method, path, ...rest } of endpoints) {
        const answer = await flow.request(method, path, { ...rest, headers });
        expect(answer.headers[requestHeader], `${method} ${path} ${answer.status}`).toBe(id);
      }
      expectRefusal(await flow.request("PUT", "/v2/service_instances/x", { body: "{", headers }), 400);
      expect((await flow.request("GET", "/nowhere", { headers })).headers[requestHeader]).toBe(id);
    }
    const entries = await flow.broker.journal.entries("/i1");
    expect(entries[0]?.requestId).toBe("e26cee84-6b38-4456-b34e-d1a9f002c956");
  });
});

describe.each(wires)("%s: extensions", (wire) => {
  test("EXT-01: unknown fields at any level are ignored", async () => {
    const flow = await flowOn(wire, lab());
    const unknown = { x_mine: 1, nested: { deep: [{}] } };
    const maintenance_info = { version: "1.2.3", ...unknown };
    const context = { platform: "cloudfoundry", ...unknown };
    await ready(flow, "i1", { with: { ...unknown, context, maintenance_info } });
    const previous_values = { plan_id: ids.small, ...unknown };
    const update = { acceptsIncomplete: false, parameters: { size: 2 }, with: { ...unknown, previous_values } };
    expect((await flow.update("i1", update)).status).toBe(200);
    const bind_resource = { app_guid: "a", ...unknown };
    const bind = { acceptsIncomplete: false, with: { ...unknown, bind_resource, context } };
    expect((await flow.bind("i1", "b1", bind)).status).toBe(201);
  });

  test("EXT-02: what a broker adds of its own in credentials and metadata goes out as it is", async () => {
    const laboratory = lab({ prepare: () => ({ metadata: { labels: { "x.example/mine": "1" } } }) });
    const flow = await flowOn(wire, laboratory);
    expect((await ready(flow, "i1")).body.metadata).toEqual({ labels: { "x.example/mine": "1" } });
  });

  test("EXT-03: a platform of 2.13 that knows none of the later fields gets along, at the endpoints that it knows", async () => {
    expect(routes.map(([method, path]) => `${method} ${path}`)).toEqual([
      "GET /v2/catalog",
      "PUT /v2/service_instances/:instance",
      "GET /v2/service_instances/:instance",
      "PATCH /v2/service_instances/:instance",
      "DELETE /v2/service_instances/:instance",
      "GET /v2/service_instances/:instance/last_operation",
      "PUT /v2/service_instances/:instance/service_bindings/:binding",
      "GET /v2/service_instances/:instance/service_bindings/:binding",
      "DELETE /v2/service_instances/:instance/service_bindings/:binding",
      "GET /v2/service_instances/:instance/service_bindings/:binding/last_operation",
    ]);
    const flow = await flowOn(wire, lab());
    const headers = { [versionHeader]: "2.13" };
    const ask = (method: string, path: string, body?: object) =>
      flow.request(method, path, { headers, ...(body && { body }) });
    const at = `?service_id=${ids.service}&plan_id=${ids.small}`;
    const { services } = (await ask("GET", "/v2/catalog")).body;
    expect(Object.keys(services[0])).toEqual(
      expect.arrayContaining(["id", "name", "description", "bindable", "plans"]),
    );
    expect((await ask("PUT", instancePath("i1"), provisionBody)).status).toBe(201);
    expect((await ask("PATCH", instancePath("i1"), { service_id: ids.service, plan_id: ids.large })).status).toBe(200);
    expect((await ask("PUT", bindingPath("i1", "b1"), { ...bindBody, plan_id: ids.large })).body).toHaveProperty(
      "credentials",
    );
    expect((await ask("DELETE", `${bindingPath("i1", "b1")}${at}`)).body).toEqual({});
    expect((await ask("DELETE", `${instancePath("i1")}${at}`)).body).toEqual({});
  });

  test("EXT-04: unknown query parameters are ignored", async () => {
    const flow = await flowOn(wire, lab());
    const path = `${instancePath("i1")}?x_mine=1&accepts_incomplete=true&__proto__=2&constructor`;
    expect((await flow.request("PUT", path, { body: provisionBody })).status).toBe(202);
  });
});

describe.each(wires)("%s: authentication", (wire) => {
  const credentials = [
    { username: "old", password: "one:two" },
    { username: "new", password: "pässwörd" },
  ];
  const basic = (text: string) => ({ authorization: `Basic ${Buffer.from(text).toString("base64")}` });
  const guarded = (): Promise<TestBroker> =>
    flowOn(wire, lab(), {
      wire: (broker, options) => {
        // What repeated failures cost is seen elsewhere, on a clock that a test moves.
        const handle = adapters[wire]?.(broker, { ...options, credentials, authentication: { slowDown: "none" } });
        if (handle === undefined) throw new Error(`there is no adapter ${wire}`);
        return handle;
      },
    });

  test("AUTH-01, AUTH-03, AUTH-07, ROB-03: without credentials each of the ten endpoints answers 401 and says how to authenticate", async () => {
    const flow = await guarded();
    expect(endpoints).toHaveLength(10);
    for (const { method, path, ...rest } of [...endpoints, { method: "GET", path: "/nowhere" }]) {
      const answer = await flow.request(method, path, rest);
      expectRefusal(answer, 401);
      expect(answer.headers["www-authenticate"]).toMatch(/^Basic /);
    }
  });

  test("AUTH-02, AUTH-04: wrong credentials of any kind are a 401 and change nothing", async () => {
    const flow = await guarded();
    expect((await flow.provision("i1", { headers: basic("old:one:two") })).status).toBe(202);
    await flow.advance();
    const wrong = [
      basic("old:wrong"),
      basic("wrong:one:two"),
      basic("old:one"),
      basic("old"),
      basic(":"),
      basic(""),
      basic("old:pässwörd"),
      { authorization: "Basic" },
      { authorization: "Basic !!!" },
      { authorization: `Bearer ${Buffer.from("old:one:two").toString("base64")}` },
      { authorization: `Basic ${"A".repeat(5_000)}` },
    ];
    for (const headers of wrong) {
      for (const { method, path, ...rest } of mutating) {
        expectRefusal(await unchanged(flow, () => flow.request(method, path, { ...rest, headers })), 401);
      }
    }
  });

  test("AUTH-05: HTTP basic is understood, two credentials at a time, with any characters", async () => {
    const flow = await guarded();
    for (const { username, password } of credentials) {
      const headers = basic(`${username}:${password}`);
      expect((await flow.request("GET", "/v2/catalog", { headers })).status).toBe(200);
    }
    const lower = { authorization: basic("old:one:two").authorization.replace("Basic", "basic") };
    expect((await flow.request("GET", "/v2/catalog", { headers: lower })).status).toBe(200);
  });

  test("AUTH-08: several platforms have prefixes and credentials of their own, and their ids are kept apart", async () => {
    const flow = await flowOn(wire, lab(), {
      platforms: ["east", "west side"],
      wire: (broker, options) => {
        const own = [
          { username: "e", password: "1", platform: "east" },
          { username: "w", password: "2", platform: "west side" },
          { username: "all", password: "3" },
        ];
        return adapters[wire]?.(broker, { ...options, credentials: own }) ?? (() => Promise.reject(new Error(wire)));
      },
    });
    const put = (prefix: string, who: string, plan: string) =>
      flow.request("PUT", `${prefix}${instancePath("i1")}?accepts_incomplete=true`, {
        headers: basic(who),
        body: { ...provisionBody, plan_id: plan },
      });
    expect((await put("/east", "e:1", ids.small)).status).toBe(202);
    expect((await put("/west%20side", "w:2", ids.large)).status).toBe(202);
    expectRefusal(await put("/east", "w:2", ids.small), 401);
    expectRefusal(await put("/west%20side", "e:1", ids.small), 401);
    expectRefusal(await put("/north", "all:3", ids.small), 404);
    expectRefusal(await put("", "all:3", ids.small), 404);
    await flow.advance();
    const get = (prefix: string) => flow.request("GET", `${prefix}${instancePath("i1")}`, { headers: basic("all:3") });
    expect((await get("/east")).body.plan_id).toBe(ids.small);
    expect((await get("/west%20side")).body.plan_id).toBe(ids.large);
  });
});

describe.each(wires)("%s: ids in paths", (wire) => {
  const odd = [
    "a/b",
    "a b",
    "100%",
    "ünï-✓-😀",
    "__proto__",
    "constructor",
    "a?b#c",
    "a;b=c",
    "A".repeat(300),
    "%2F",
    "a\\b",
  ];

  test("URL-01: any characters make an id, of instances, bindings, services and plans", async () => {
    const plan = { id: "plan/ä ?&=", description: "odd" };
    const laboratory = lab({ id: "service/ü ?&=", plans: { odd: plan } });
    const flow = await flowOn(wire, laboratory);
    for (const id of odd) {
      await ready(flow, id);
      expect((await flow.bind(id, id, { acceptsIncomplete: false })).body.credentials.user).toBe(id);
      expect((await flow.fetch(id, id)).status).toBe(200);
      expect((await flow.unbind(id, id, { acceptsIncomplete: false })).status).toBe(200);
      expect((await flow.deprovision(id, { acceptsIncomplete: false })).status).toBe(200);
    }
    expect(laboratory.done.filter((line) => line.startsWith("provision"))).toEqual(odd.map((id) => `provision ${id}`));
  });

  test("URL-02: operations that the broker names need no encoding", async () => {
    const flow = await flowOn(wire, lab());
    const { body } = await flow.provision("i1");
    expect(body.operation).toMatch(/^[A-Za-z0-9._~-]+$/);
  });

  test("URL-03: an encoded character is the character, decoded once", async () => {
    const flow = await flowOn(wire, lab());
    await ready(flow, "a-b");
    expect((await flow.request("GET", "/v2/service_instances/a%2Db")).status).toBe(200);
    expect((await flow.request("GET", "/v2/service_instances/a%252Db")).status).toBe(404);
  });

  test("URL-04: ids that differ in case are different instances", async () => {
    const flow = await flowOn(wire, lab());
    await ready(flow, "abc", { plan: "small" });
    await ready(flow, "ABC", { plan: "large" });
    expect((await flow.fetch("abc")).body.plan_id).toBe(ids.small);
    expect((await flow.fetch("ABC")).body.plan_id).toBe(ids.large);
  });

  test("URL-05: hostile ids work or are refused with a 4xx; never a 5xx, never another instance", async () => {
    const laboratory = lab();
    const flow = await flowOn(wire, laboratory);
    await ready(flow, "victim");
    const hostile = [
      "%00",
      "a%00b",
      "%zz",
      "%",
      "%ff%fe",
      "%ed%a0%80",
      "a".repeat(401),
      "..%2fvictim",
      "%2e%2e%2fvictim",
    ];
    for (const segment of hostile) {
      for (const method of ["GET", "PUT", "PATCH", "DELETE"]) {
        const path = `/v2/service_instances/${segment}?service_id=${ids.service}&plan_id=${ids.small}`;
        const body = method === "PUT" || method === "PATCH" ? { body: provisionBody } : {};
        const answer = await flow.request(method, path, body);
        expect([200, 201, 202, 400, 404, 410], `${method} ${segment}`).toContain(answer.status);
        if (answer.status >= 400) expect(answer.body.description).toMatch(/\S/);
      }
    }
    expect((await flow.fetch("victim")).body.plan_id).toBe(ids.small);
    expect(laboratory.done.filter((line) => line.endsWith(" victim"))).toEqual(["provision victim"]);
  });

  test("URL-05: an id that cannot be kept is named in the answer", async () => {
    const flow = await flowOn(wire, lab());
    await ready(flow, "i1");
    const get = async (path: string) => expectRefusal(await flow.request("GET", path), 400);
    expect(await get("/v2/service_instances/a%00b")).toContain("instance_id");
    expect(await get(`/v2/service_instances/${"a".repeat(401)}`)).toContain("instance_id");
    expect(await get("/v2/service_instances/i1/service_bindings/a%00b")).toContain("binding_id");
    expect(await get(`/v2/service_instances/i1/service_bindings/${"ü".repeat(201)}`)).toContain("binding_id");
  });
});

describe.each(wires)("%s: errors", (wire) => {
  test("ERR-01, ERR-02, ERR-03: every entry of the table is one camel-case word with its status", async () => {
    for (const [code, { status, error }] of Object.entries(brokerErrors)) {
      const laboratory = lab({
        hooks: {
          before() {
            throw new BrokerError(code as keyof typeof brokerErrors, "because the test says so");
          },
        },
      });
      const flow = await flowOn(wire, laboratory);
      const answer = await flow.provision("i1");
      expect(answer.status, code).toBe(status);
      expect(error).toMatch(/^[A-Z][A-Za-z]+$/);
      expect(answer.body).toEqual({ error, description: "because the test says so" });
      expect(laboratory.done).toEqual([]);
      expectRefusal(await flow.deprovision("i1"), 410);
    }
  });

  test("ERR-04, ERR-05: a hook that refuses a provision with them does not get them through", async () => {
    const refusal = new BrokerError("unprocessable", "no", { instanceUsable: false, updateRepeatable: false });
    const flow = await flowOn(wire, lab({ hooks: { before: () => Promise.reject(refusal) } }));
    expect((await flow.provision("i1")).body).toEqual({ error: refusal.body.error, description: "no" });
  });

  test("ERR-04, ERR-05: instance_usable and update_repeatable are told where they may stand, and nowhere else", async () => {
    const laboratory = lab();
    const flow = await flowOn(wire, laboratory);
    const fail = () => {
      throw new Failed("it broke", { instanceUsable: false, updateRepeatable: false });
    };
    const sync = { acceptsIncomplete: false };
    laboratory.behave.provision = fail;
    const told = { description: "it broke", error: "OperationFailed" };
    expect((await flow.provision("p", sync)).body).toEqual(told);
    expect((await flow.lastOperation("p")).body).toEqual({ state: "failed", description: "it broke" });
    delete laboratory.behave.provision;
    await ready(flow, "i1");
    Object.assign(laboratory.behave, { update: fail, bind: fail, unbind: fail, deprovision: fail });
    const usable = { instance_usable: false };
    const repeatable = { update_repeatable: false };
    expect((await flow.update("i1", { ...sync, parameters: { size: 2 } })).body).toEqual({
      ...told,
      ...usable,
      ...repeatable,
    });
    expect((await flow.lastOperation("i1")).body).toMatchObject({ state: "failed", ...usable, ...repeatable });
    expect((await flow.bind("i1", "b1", sync)).body).toEqual(told);
    expect((await flow.lastOperation("i1", { binding: "b1" })).body).toEqual({
      state: "failed",
      description: "it broke",
    });
    expect((await flow.unbind("i1", "b1", sync)).body).toEqual(told);
    expect((await flow.deprovision("i1", sync)).body).toEqual({ ...told, ...usable });
    expect((await flow.lastOperation("i1")).body).toEqual({ state: "failed", description: "it broke", ...usable });
  });

  test("ERR-04, ERR-05: a failed update that says nothing of them leaves them out", async () => {
    const laboratory = lab();
    laboratory.behave.update = () => {
      throw new Failed("it broke");
    };
    const flow = await flowOn(wire, laboratory);
    await ready(flow, "i1");
    await flow.update("i1", { parameters: { size: 2 } });
    await flow.advance();
    expect((await flow.lastOperation("i1")).body).toEqual({ state: "failed", description: "it broke" });
  });

  test("ERR-06: the four reserved words stand for their scenarios alone", async () => {
    const requiring = { id: ids.small, description: "x", requiresApp: true, maintenanceInfo: { version: "1.0.0" } };
    const laboratory = lab({ plans: { small: requiring }, async: { update: "require" } });
    const flow = await flowOn(wire, laboratory);
    const conflict = await flow.provision("i0", { with: { maintenance_info: { version: "2.0.0" } } });
    expectRefusal(conflict, 422, "MaintenanceInfoConflict");
    await ready(flow, "i1");
    expectRefusal(await flow.update("i1", { acceptsIncomplete: false, parameters: {} }), 422, "AsyncRequired");
    expectRefusal(await flow.bind("i1", "b1"), 422, "RequiresApp");
    laboratory.behave.update = hang;
    await flow.update("i1", { parameters: { a: 1 } });
    expectRefusal(await flow.update("i1", { parameters: { a: 2 } }), 422, "ConcurrencyError");
    const reserved = Object.values(brokerErrors).filter((entry) => entry.reserved);
    expect(reserved.map(({ error }) => error).sort()).toEqual([
      "AsyncRequired",
      "ConcurrencyError",
      "MaintenanceInfoConflict",
      "RequiresApp",
    ]);
  });

  test("ERR-07, PROV-29, BIND-39: what the author refuses after a step was recorded is a 5xx, so that the platform cleans up", async () => {
    const refuse = async (operation: { step(name: string, work: () => string): Promise<string> }) => {
      await operation.step("reserve", () => "a host");
      throw new BrokerError("unprocessable", "no more than three");
    };
    const sync = { acceptsIncomplete: false };
    const laboratory = lab();
    const flow = await flowOn(wire, {
      ...laboratory,
      service: { ...laboratory.service, provision: (operation) => refuse(operation) },
    });
    expect(expectRefusal(await flow.provision("i1", sync), 500)).toContain("no more than three");
    expect((await flow.deprovision("i1", sync)).status).toBe(200);
    await flow.broker.offer([{ ...laboratory.service, bind: (operation) => refuse(operation) }]);
    await ready(flow, "i2");
    expect(expectRefusal(await flow.bind("i2", "b1", sync), 500)).toContain("no more than three");
    expect((await flow.unbind("i2", "b1", sync)).status).toBe(200);
  });

  test("ERR-07: a request that is refused with a 4xx leaves no trace", async () => {
    const flow = await flowOn(wire, lab());
    await ready(flow, "i1");
    await flow.bind("i1", "b1", { acceptsIncomplete: false });
    const at = `?service_id=${ids.service}&plan_id=${ids.small}`;
    const refused: [string, string, unknown?][] = [
      ["PUT", instancePath("i1"), { ...provisionBody, plan_id: ids.large }],
      ["PUT", instancePath("i2"), { ...provisionBody, plan_id: "unknown" }],
      ["PUT", instancePath("i2"), { ...provisionBody, parameters: { size: "no" } }],
      ["PATCH", instancePath("i1"), { service_id: "unknown" }],
      ["PATCH", instancePath("i1"), { service_id: ids.service, plan_id: "unknown" }],
      ["PATCH", instancePath("i1"), { service_id: ids.service, context: { a: 1 } }],
      ["PATCH", instancePath("i2"), { service_id: ids.service }],
      ["PUT", bindingPath("i1", "b1"), { ...bindBody, parameters: { role: "reader" } }],
      ["PUT", bindingPath("i1", "b2"), { ...bindBody, parameters: { role: "king" } }],
      ["PUT", bindingPath("i2", "b2"), bindBody],
      ["DELETE", `${instancePath("i1")}${at}`],
      ["DELETE", instancePath("i1")],
      ["DELETE", `${bindingPath("i1", "b1")}?service_id=${ids.service}`],
      ["DELETE", `${instancePath("i2")}${at}`],
      ["DELETE", `${bindingPath("i1", "b2")}${at}`],
    ];
    for (const [method, path, body] of refused) {
      const answer = await unchanged(flow, () => flow.request(method, path, body === undefined ? {} : { body }));
      expect(answer.status, `${method} ${path}`).toBeGreaterThanOrEqual(400);
      expect(answer.status, `${method} ${path}`).toBeLessThan(500);
    }
  });

  test("ERR-08: after a failure of the broker itself there is no instance for the platform, and a delete cleans up", async () => {
    const laboratory = lab();
    laboratory.behave.provision = () => {
      throw new Failed("no room");
    };
    const flow = await flowOn(wire, laboratory);
    expectRefusal(await flow.provision("i1", { acceptsIncomplete: false }), 500);
    expectRefusal(await flow.fetch("i1"), 404);
    expect((await flow.deprovision("i1", { acceptsIncomplete: false })).status).toBe(200);
    expect(laboratory.done).toEqual(["provision i1", "deprovision i1 undoing create"]);
  });

  test("ERR-09: the description of a 400 names the field and what is wrong with it", async () => {
    const flow = await flowOn(wire, lab());
    const told = async (ask: object) => expectRefusal(await flow.provision("i1", { with: ask as never }), 400);
    expect(await told({ service_id: 7 })).toBe("service_id must be a text");
    expect(await told({ space_guid: "" })).toBe("space_guid must not be empty");
    expect(await told({ parameters: [] })).toBe("parameters must be an object");
    expect(await told({ parameters: { size: 0 } })).toBe("parameters.size must be >= 1");
    expect(await told({ parameters: { other: 0 } })).toContain('"other"');
  });
});

describe.each(wires)("%s: content types", (wire) => {
  const put = (flow: TestBroker, contentType?: string, body: unknown = provisionBody) =>
    flow.request("PUT", `${instancePath("i1")}?accepts_incomplete=true`, {
      body,
      headers: contentType === undefined ? {} : { "content-type": contentType },
    });

  test("CT-01: everything with a body is application/json", async () => {
    const flow = await flowOn(wire, lab());
    for (const { method, path, ...rest } of [...endpoints, { method: "POST", path: "/v2/catalog" }]) {
      const answer = await flow.request(method, path, rest);
      expect(answer.headers["content-type"], `${method} ${path}`).toMatch(/^application\/json\b/);
    }
  });

  test("CT-02, CT-05: JSON is read without a content type, and with a charset", async () => {
    const flow = await flowOn(wire, lab());
    await put(flow);
    await flow.advance();
    for (const type of [undefined, "application/json; charset=utf-8", "APPLICATION/JSON", "application/vnd.osb+json"]) {
      expect((await put(flow, type)).status, type).toBe(200);
    }
  });

  test("CT-03: another content type is a 400, not a 415", async () => {
    const flow = await flowOn(wire, lab());
    for (const type of ["text/plain", "application/xml", "multipart/form-data; boundary=x", "garbage", ";;;"]) {
      const answer = await unchanged(flow, () => put(flow, type));
      expectRefusal(answer, 400);
    }
  });

  test("CT-04: a body that is no JSON is a 400", async () => {
    const flow = await flowOn(wire, lab());
    for (const body of [
      "{",
      "{'a':1}",
      "undefined",
      "{} {}",
      '{"a":1,}',
      "\u0000",
      new Uint8Array([0x7b, 0xff, 0x7d]),
    ]) {
      const answer = await unchanged(flow, () => put(flow, "application/json", body));
      expect(expectRefusal(answer, 400)).toContain("body");
    }
  });

  test("CT-06: a megabyte is read; what is larger is a 413", async () => {
    const flow = await flowOn(wire, lab());
    const padded = (bytes: number) => {
      const empty = JSON.stringify({ ...provisionBody, padding: "" }).length;
      return { ...provisionBody, padding: "x".repeat(bytes - empty) };
    };
    expect((await put(flow, "application/json", padded(1_048_576))).status).toBe(202);
    expectRefusal(await unchanged(flow, () => put(flow, "application/json", padded(1_048_577))), 413);
    expectRefusal(await unchanged(flow, () => put(flow, "application/json", padded(5_000_000))), 413);
  });

  test("CT-06: what grows too large to be kept on its way from the wire to the store is a 413, too", async () => {
    const flow = await flowOn(wire, lab());
    const numbers = `[${"1e20,".repeat(200_000)}1]`;
    const body = JSON.stringify({ ...provisionBody, plan_id: ids.large, parameters: { numbers: 0 } });
    const grown = body.replace('"numbers":0', `"numbers":${numbers}`);
    expectRefusal(await unchanged(flow, () => put(flow, "application/json", grown)), 413);
  });
});
