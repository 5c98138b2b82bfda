import { describe, expect, test } from "vitest";
import { type BindResult, BrokerError, Failed, type Schema } from "../src/index.js";
import {
  bindBody,
  bindingPath,
  bound,
  expectRefusal,
  flowOn,
  gate,
  hang,
  ids,
  lab,
  plans,
  provisionBody,
  ready,
  unchanged,
  wires,
} from "./lab.js";
import { watchedBroker } from "./observe/watched-broker.js";

const sync = { acceptsIncomplete: false };
const bodies = (fields: object) => ({ body: { ...bindBody, ...fields } });

describe.each(wires)("%s: bind", (wire) => {
  test("BIND-01, BIND-16, BIND-30, ASYNC-09: a binding that is made by the request is a 201 with its credentials", async () => {
    const laboratory = lab();
    const flow = await flowOn(wire, laboratory);
    await ready(flow, "i1");
    expect(await flow.bind("i1", "b1", { ...sync, parameters: { role: "reader" } })).toMatchObject({
      status: 201,
      body: { credentials: { user: "b1", host: "host-i1", role: "reader" } },
    });
    expect(laboratory.done).toEqual(["provision i1", "bind b1"]);
  });

  test("BIND-02, B2: an identical request after the end is a 200 with the credentials", async () => {
    const laboratory = lab();
    const flow = await flowOn(wire, laboratory);
    await ready(flow, "i1");
    const first = await bound(flow, "i1", "b1", { parameters: { role: "reader" } });
    for (const acceptsIncomplete of [false, true]) {
      const ask = { acceptsIncomplete, parameters: { role: "reader" } };
      const again = await unchanged(flow, () => flow.bind("i1", "b1", ask));
      expect(again).toMatchObject({ status: 200, body: first.body });
    }
    expect(laboratory.done).toEqual(["provision i1", "bind b1"]);
  });

  test("BIND-02, B2: it stays identical after the instance's plan was changed, and whatever the application's annotations are", async () => {
    const flow = await flowOn(wire, lab());
    await ready(flow, "i1");
    const resource = (note: string) => ({ bind_resource: { app_guid: "a", app_annotations: { note } } });
    const first = await bound(flow, "i1", "b1", { with: resource("old") });
    expect((await flow.bind("i1", "b1", { with: resource("new") })).status).toBe(200);
    await flow.update("i1", { ...sync, plan: "large" });
    const again = await flow.bind("i1", "b1", { plan: "large", with: resource("new") });
    expect(again).toMatchObject({ status: 200, body: first.body });
  });

  test("BIND-03, BIND-04, BIND-15: one that is being made is a 202 with an operation and nothing of the binding", async () => {
    const laboratory = lab();
    const flow = await flowOn(wire, laboratory);
    await ready(flow, "i1");
    const { status, body } = await flow.bind("i1", "b1");
    expect(status).toBe(202);
    expect(body).toEqual({ operation: expect.stringMatching(/^.{1,10000}$/) });
  });

  test("BIND-05, BIND-06, B2: an identical request while it runs is a 202 with the same operation", async () => {
    const laboratory = lab();
    const flow = await flowOn(wire, laboratory);
    await ready(flow, "i1");
    laboratory.behave.bind = hang;
    const first = await flow.bind("i1", "b1", { parameters: { role: "reader" } });
    const again = await unchanged(flow, () => flow.bind("i1", "b1", { parameters: { role: "reader" } }));
    expect(again).toMatchObject({ status: 202, body: first.body });
    expect(laboratory.done).toEqual(["provision i1", "bind b1"]);
  });

  test("BIND-07: what is no JSON object is a 400", async () => {
    const flow = await flowOn(wire, lab());
    await ready(flow, "i1");
    for (const body of ["", "{", "[]", "null", "1"]) {
      expectRefusal(await unchanged(flow, () => flow.request("PUT", bindingPath("i1", "b1"), { body })), 400);
    }
  });

  test.each([
    ["BIND-08: service_id", "service_id"],
    ["BIND-09: plan_id", "plan_id"],
  ])("%s is needed, as a text that is not empty", async (_, field) => {
    const flow = await flowOn(wire, lab());
    await ready(flow, "i1");
    const { [field as "service_id"]: __, ...rest } = bindBody;
    for (const body of [rest, ...["", 1, null, [], {}].map((wrong) => ({ ...rest, [field]: wrong }))]) {
      const answer = await unchanged(flow, () => flow.request("PUT", bindingPath("i1", "b1"), { body }));
      expect(expectRefusal(answer, 400)).toContain(field);
    }
  });

  test.each([
    ["ready", "BIND-10, B2: another request for a binding that exists is a 409"],
    ["running", "BIND-11, B2: another request for a binding that is being made is a 409"],
  ])("%s: %s", async (phase) => {
    const laboratory = lab();
    const flow = await flowOn(wire, laboratory);
    await ready(flow, "i1");
    if (phase === "running") laboratory.behave.bind = hang;
    await flow.bind("i1", "b1", { parameters: { role: "reader" } });
    await flow.advance();
    for (const fields of [
      { parameters: { role: "writer" } },
      { parameters: {} },
      { parameters: { role: "reader" }, bind_resource: { app_guid: "a" } },
      { parameters: { role: "reader" }, app_guid: "a" },
    ]) {
      expectRefusal(await unchanged(flow, () => flow.bind("i1", "b1", { with: fields })), 409);
    }
  });

  test.each(["ready", "running", "failed"])(
    "BIND-10, B2: a %s binding that is asked for with other ids is a 409, as an instance is",
    async (phase) => {
      const laboratory = lab();
      const flow = await flowOn(wire, laboratory);
      await ready(flow, "i1");
      if (phase === "running") laboratory.behave.bind = hang;
      if (phase === "failed")
        laboratory.behave.bind = () => {
          throw new Failed("no room");
        };
      await flow.bind("i1", "b1");
      await flow.advance();
      for (const other of [{ service_id: "other" }, { plan_id: ids.large }, { plan_id: "no plan at all" }]) {
        const answer = await unchanged(flow, () => flow.bind("i1", "b1", { with: other }));
        expect(expectRefusal(answer, 409)).toContain(Object.keys(other)[0]);
        expectRefusal(await unchanged(flow, () => flow.bind("i1", "b2", { with: other })), 400);
      }
    },
  );

  test("B2: a repeated bind finds its binding under the plan that the instance has now, and under the one it had then", async () => {
    const flow = await flowOn(wire, lab());
    await ready(flow, "i1");
    const { body } = await bound(flow, "i1", "b1");
    expect((await flow.update("i1", { ...sync, plan: "large" })).status).toBe(200);
    for (const plan of ["small", "large"])
      expect(await flow.bind("i1", "b1", { plan })).toMatchObject({ status: 200, body });
    expectRefusal(await flow.bind("i1", "b1", { plan: "sealed" }), 409);
    expectRefusal(await flow.bind("i1", "b2", { plan: "small" }), 400);
  });

  test("BIND-12: a binding that needs an application says so", async () => {
    const flow = await flowOn(wire, lab({ plans: { small: { ...plans.small, requiresApp: true } } }));
    await ready(flow, "i1");
    expectRefusal(await unchanged(flow, () => flow.bind("i1", "b1")), 422, "RequiresApp");
    await bound(flow, "i1", "b1", { with: { bind_resource: { app_guid: "a" } } });
    await bound(flow, "i1", "b2", { with: { app_guid: "a" } });
  });

  test("BIND-13, CONC-01: a bind that another operation on the instance keeps out is a ConcurrencyError", async () => {
    const laboratory = lab();
    const flow = await flowOn(wire, laboratory);
    await ready(flow, "i1");
    laboratory.behave.update = hang;
    await flow.update("i1", { parameters: { size: 2 } });
    expectRefusal(await unchanged(flow, () => flow.bind("i1", "b1")), 422, "ConcurrencyError");
  });

  test("BIND-14: what is only bound asynchronously says so", async () => {
    const flow = await flowOn(wire, lab({ async: { bind: "require" } }));
    await ready(flow, "i1");
    expectRefusal(await unchanged(flow, () => flow.bind("i1", "b1", sync)), 422, "AsyncRequired");
  });

  test("BIND-29: two bindings of one instance have credentials of their own", async () => {
    const flow = await flowOn(wire, lab());
    await ready(flow, "i1");
    const first = await bound(flow, "i1", "b1");
    const second = await bound(flow, "i1", "b2");
    expect(first.body.credentials).not.toEqual(second.body.credentials);
    await flow.unbind("i1", "b1", sync);
    expect((await flow.fetch("i1", "b2")).body.credentials).toEqual(second.body.credentials);
  });

  test("BIND-31: an application is a text, or left out", async () => {
    const flow = await flowOn(wire, lab());
    await ready(flow, "i1");
    for (const fields of [{ app_guid: 1 }, { bind_resource: { app_guid: [] } }]) {
      const answer = await unchanged(flow, () => flow.request("PUT", bindingPath("i1", "b1"), bodies(fields)));
      expect(expectRefusal(answer, 400)).toContain("app_guid");
    }
    await bound(flow, "i1", "b1", { with: { app_guid: "a", bind_resource: { app_guid: "a" } } });
  });

  test("BIND-32, BIND-39: parameters that the plan does not allow are a 400, and there is no binding", async () => {
    const flow = await flowOn(wire, lab());
    await ready(flow, "i1");
    const answer = await unchanged(flow, () => flow.bind("i1", "b1", { parameters: { role: "king" } }));
    expect(expectRefusal(answer, 400)).toContain("parameters.role");
    expectRefusal(await flow.unbind("i1", "b1"), 410);
    expectRefusal(await flow.fetch("i1", "b1"), 404);
  });

  test("BIND-33: an instance that never was, or is gone, or could not be made, is a 404", async () => {
    const laboratory = lab();
    const flow = await flowOn(wire, laboratory);
    expectRefusal(await unchanged(flow, () => flow.bind("never", "b1")), 404);
    await ready(flow, "gone");
    await flow.deprovision("gone", sync);
    expectRefusal(await unchanged(flow, () => flow.bind("gone", "b1")), 404);
    laboratory.behave.provision = () => {
      throw new Failed("no room");
    };
    await flow.provision("failed", sync);
    expectRefusal(await unchanged(flow, () => flow.bind("failed", "b1")), 404);
  });

  test("BIND-34: a plan that cannot be bound is a 422", async () => {
    const flow = await flowOn(wire, lab());
    await ready(flow, "i1", { plan: "sealed" });
    expectRefusal(await unchanged(flow, () => flow.bind("i1", "b1", { plan: "sealed" })), 422);
  });

  test("BIND-35: service and plan have to be the instance's", async () => {
    const flow = await flowOn(wire, lab());
    await ready(flow, "i1");
    for (const [fields, named] of [
      [{ service_id: "unknown" }, "service_id"],
      [{ plan_id: "unknown" }, "plan_id"],
      [{ plan_id: ids.large }, "plan_id"],
    ] as const) {
      const answer = await unchanged(flow, () => flow.bind("i1", "b1", { with: fields }));
      expect(expectRefusal(answer, 400)).toContain(named);
    }
  });

  test("BIND-36: parameters, bind_resource and context have to be objects", async () => {
    const flow = await flowOn(wire, lab());
    await ready(flow, "i1");
    for (const field of ["parameters", "bind_resource", "context"]) {
      for (const wrong of ["x", 1, true, [], [{}]]) {
        const answer = await unchanged(flow, () => flow.bind("i1", "b1", { with: { [field]: wrong } }));
        expect(expectRefusal(answer, 400)).toContain(field);
      }
    }
  });

  test("BIND-37: the same id on another instance is another binding", async () => {
    const flow = await flowOn(wire, lab());
    await ready(flow, "i1");
    await ready(flow, "i2");
    await bound(flow, "i1", "b1", { parameters: { role: "reader" } });
    await bound(flow, "i2", "b1", { parameters: { role: "writer" } });
    await flow.unbind("i2", "b1", sync);
    expect((await flow.fetch("i1", "b1")).body.credentials).toMatchObject({ host: "host-i1", role: "reader" });
  });

  test("BIND-38: bindings that cannot be fetched are answered with their credentials, never with a 202", async () => {
    const flow = await flowOn(wire, lab({ bindingsRetrievable: false }));
    await ready(flow, "i1");
    expect(await flow.bind("i1", "b1", { acceptsIncomplete: true })).toMatchObject({
      status: 201,
      body: { credentials: { user: "b1" } },
    });
  });

  test("BIND-40: an instance that is still being made is a ConcurrencyError", async () => {
    const laboratory = lab();
    const held = gate();
    laboratory.behave.provision = held.wait;
    const flow = await flowOn(wire, laboratory);
    await flow.provision("i1");
    expectRefusal(await unchanged(flow, () => flow.bind("i1", "b1")), 422, "ConcurrencyError");
    held.open();
    await flow.advance();
    await bound(flow, "i1", "b1");
  });

  test("a bind that failed can be asked for again, and deleted", async () => {
    const laboratory = lab();
    const flow = await flowOn(wire, laboratory);
    await ready(flow, "i1");
    laboratory.behave.bind = () => {
      throw new Failed("no more users");
    };
    expect(expectRefusal(await flow.bind("i1", "b1", sync), 500)).toBe("no more users");
    expectRefusal(await flow.bind("i1", "b1", { ...sync, parameters: { role: "reader" } }), 409);
    delete laboratory.behave.bind;
    await bound(flow, "i1", "b1");
    laboratory.behave.bind = () => {
      throw new Failed("no more users");
    };
    expectRefusal(await flow.bind("i1", "b2", sync), 500);
    expect((await flow.unbind("i1", "b2", sync)).status).toBe(200);
    await flow.unbind("i1", "b1", sync);
    expect((await flow.deprovision("i1", sync)).status).toBe(200);
  });

  test("B1: a second bind that is refused does not forget what the first one left", async () => {
    const laboratory = lab();
    const flow = await flowOn(wire, laboratory);
    await ready(flow, "i1");
    laboratory.behave.bind = () => {
      throw new Failed("no more users");
    };
    expectRefusal(await flow.bind("i1", "b1", sync), 500);
    await flow.broker.offer([
      {
        ...laboratory.service,
        async bind() {
          throw new BrokerError("unprocessable", "not now");
        },
      },
    ]);
    expectRefusal(await flow.bind("i1", "b1", sync), 500);
    expect((await flow.unbind("i1", "b1", sync)).status).toBe(200);
    expect(laboratory.done.slice(1)).toEqual(["bind b1", "unbind b1 null undoing grant"]);
  });

  test("a binding is given its instance's state, the application, the bind resource and the context", async () => {
    let given: unknown;
    const bindingState: Schema = { type: "object", properties: { user: { type: "string" } }, required: ["user"] };
    const flow = await flowOn(wire, {
      service: {
        ...lab({ bindingState }).service,
        async bind(_work, { binding, state, plan, instance }) {
          given = { ...binding, state, plan, instance: instance.id };
          return { state: { user: "u" } };
        },
      },
    });
    await ready(flow, "i1");
    const bind_resource = { app_guid: "a", route: "r.example" };
    await flow.bind("i1", "b1", { ...sync, with: { bind_resource, context: { platform: "cloudfoundry" } } });
    expect(given).toEqual({
      id: "b1",
      appGuid: "a",
      bindResource: bind_resource,
      context: { platform: "cloudfoundry" },
      state: { host: "host-i1" },
      plan: "small",
      instance: "i1",
    });
  });
});

const mount = {
  driver: "nfs",
  container_dir: "/data",
  mode: "rw",
  device_type: "shared",
  device: { volume_id: "v-1", mount_config: { key: "value" } },
} as const;

describe.each(wires)("%s: what a binding holds", (wire) => {
  async function binding(
    result: unknown,
    requires: readonly string[] = ["syslog_drain", "route_forwarding", "volume_mount"],
  ) {
    const laboratory = lab({ requires: requires as never });
    laboratory.behave.bind = () => result;
    const flow = await flowOn(wire, laboratory);
    await ready(flow, "i1");
    const answer = await flow.bind("i1", "b1", sync);
    return { ...answer, fetched: await flow.fetch("i1", "b1") };
  }

  test.each([
    ["BIND-17, BFETCH-06: a syslog drain", { syslogDrainUrl: "syslog://x" }, "syslog_drain_url", "syslog_drain"],
    [
      "BIND-18, BFETCH-06, CAT-40: a route service",
      { routeServiceUrl: "https://x" },
      "route_service_url",
      "route_forwarding",
    ],
    ["BIND-19, BIND-20, BIND-21, BFETCH-06: volume mounts", { volumeMounts: [mount] }, "volume_mounts", "volume_mount"],
  ])(
    "%s is given out where the service says that it needs the permission, and only there",
    async (_, result, field, permission) => {
      const told = { [field]: Object.values(result)[0] };
      const { status, body, fetched } = await binding(result, [permission]);
      expect(status).toBe(201);
      expect(body).toEqual(told);
      expect(fetched.body).toMatchObject(told);
      const refused = await binding(result, []);
      expect(expectRefusal(refused, 500)).toContain(permission);
      expectRefusal(refused.fetched, 404);
    },
  );

  test("BIND-22, BIND-23, BIND-24: endpoints are given out whole, beside the credentials", async () => {
    const endpoints = [
      { host: "db.example", ports: ["5432", "9000-9010"], protocol: "tcp" },
      { host: "10.0.0.1", ports: ["53"], protocol: "udp" },
      { host: "any.example", ports: ["1"], protocol: "all" },
      { host: "default.example", ports: ["443"] },
    ];
    const { body, fetched } = await binding({ credentials: { a: 1 }, endpoints });
    expect(body).toEqual({ credentials: { a: 1 }, endpoints });
    expect(fetched.body.endpoints).toEqual(endpoints);
  });

  test("BIND-22: platforms older than 2.15, whose clients fail on ports that are texts, are not told of endpoints", async () => {
    const laboratory = lab();
    laboratory.behave.bind = () => ({
      credentials: { a: 1 },
      endpoints: [{ host: "db.example", ports: ["5432"] }],
      expiresAt: new Date(0),
    });
    const flow = await flowOn(wire, laboratory);
    await ready(flow, "i1");
    const tells = async (version: string) => {
      const headers = { "x-broker-api-version": version };
      const binding = `b-${version}`;
      const bound = await flow.bind("i1", binding, { ...sync, headers });
      const again = await flow.bind("i1", binding, { ...sync, headers });
      const fetched = await flow.request("GET", bindingPath("i1", binding), { headers });
      const answers = [bound, again, fetched];
      expect(answers.map(({ status }) => status)).toEqual([201, 200, 200]);
      for (const { body } of answers) expect(body).toMatchObject({ credentials: { a: 1 }, metadata: {} });
      return answers.map(({ body }) => "endpoints" in body);
    };
    for (const version of ["2.13", "2.14"]) expect(await tells(version)).toEqual([false, false, false]);
    for (const version of ["2.15", "2.17", "2.100"]) expect(await tells(version)).toEqual([true, true, true]);
  });

  test("BIND-25, BIND-26, BIND-28: expiry and renewal are told in UTC with a fraction, and metadata holds nothing else", async () => {
    const expiresAt = new Date(Date.UTC(2031, 0, 31, 12));
    const renewBefore = new Date(Date.UTC(2031, 0, 30, 12, 0, 0, 5));
    const { body, fetched } = await binding({ credentials: {}, expiresAt, renewBefore });
    const metadata = { expires_at: "2031-01-31T12:00:00.000Z", renew_before: "2031-01-30T12:00:00.005Z" };
    expect(body.metadata).toEqual(metadata);
    expect(fetched.body.metadata).toEqual(metadata);
  });

  test.each([
    ["BIND-20: a mount without a driver", { volumeMounts: [{ ...mount, driver: "" }] }, "driver"],
    [
      "BIND-20: a mount without a directory",
      { volumeMounts: [{ ...mount, container_dir: undefined }] },
      "container_dir",
    ],
    ["BIND-20: a mount in another mode", { volumeMounts: [{ ...mount, mode: "w" }] }, "mode"],
    ["BIND-20: a mount of another type", { volumeMounts: [{ ...mount, device_type: "local" }] }, "device_type"],
    ["BIND-21: a device without an id", { volumeMounts: [{ ...mount, device: {} }] }, "volume_id"],
    [
      "BIND-21: a device whose config is none",
      { volumeMounts: [{ ...mount, device: { volume_id: "v", mount_config: 1 } }] },
      "mount_config",
    ],
    ["BIND-21: a mount without a device", { volumeMounts: [{ ...mount, device: undefined }] }, "volume_id"],
    ["BIND-19: mounts that are no list", { volumeMounts: mount }, "volumeMounts"],
    ["BIND-22: an endpoint without a host", { endpoints: [{ ports: ["1"] }] }, "host"],
    ["BIND-22: an endpoint without ports", { endpoints: [{ host: "h", ports: [] }] }, "ports"],
    ["BIND-22: ports that are numbers", { endpoints: [{ host: "h", ports: [443] }] }, "ports"],
    ["BIND-22: ports that are missing", { endpoints: [{ host: "h" }] }, "ports"],
    ["BIND-22: another protocol", { endpoints: [{ host: "h", ports: ["1"], protocol: "icmp" }] }, "protocol"],
    ["BIND-22: endpoints that are no list", { endpoints: { host: "h" } }, "endpoints"],
    ["BIND-16: credentials that are no object", { credentials: "secret" }, "credentials"],
    ["BIND-17: a drain that is no text", { syslogDrainUrl: 7 }, "URL"],
    ["BIND-25: a date that is none", { expiresAt: new Date(Number.NaN) }, "expiresAt"],
    ["BIND-25: a text for a date", { expiresAt: "tomorrow" }, "expiresAt"],
    ["BIND-26: renewal after expiry", { expiresAt: new Date(1_000), renewBefore: new Date(2_000) }, "renewBefore"],
    ["BIND-26: renewal without expiry", { renewBefore: new Date(2_000) }, "expiresAt"],
    ["BIND-16: what is no object at all", "secret", "object"],
  ])("%s is not given out: the bind fails at once, and says why", async (_, result, named) => {
    const answer = await binding(result as BindResult<undefined>);
    const description = expectRefusal(answer, 500);
    expect(description).toContain(named);
    // What is said is a rule for the author, not a claim about what came.
    expect(description).toContain("must");
    expectRefusal(answer.fetched, 404);
  });
});

test("an instance that has a revision of its service is bound by a broker whose services come from no source", async () => {
  const { ask } = await watchedBroker({ services: [{ ...lab().service, revision: "1" }] });
  const provisioned = await ask("PUT", "/v2/service_instances/i1", { body: provisionBody });
  expect(provisioned.status).toBe(201);
  const binding = await ask("PUT", "/v2/service_instances/i1/service_bindings/b1", { body: bindBody });
  expect(binding.status).toBe(201);
  const unknown = await ask("PUT", "/v2/service_instances/i2/service_bindings/b1", { body: bindBody });
  expect(unknown.status).toBe(404);
});
