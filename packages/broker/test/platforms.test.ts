import { describe, expect, test } from "vitest";
import { Failed } from "../src/index.js";
import {
  bindingPath,
  bound,
  expectRefusal,
  flowOn,
  gate,
  ids,
  instancePath,
  lab,
  ready,
  untilStopped,
  wires,
} from "./lab.js";

/** How real platforms speak to brokers, as their sources do it. */

describe.each(wires)("%s: Korifi", (wire) => {
  const as = { headers: { "x-broker-api-version": "2.17" } };

  test("B2: it sends PUT again on every pass, and gets the same operation until it is done, then 200", async () => {
    const laboratory = lab();
    const held = gate();
    laboratory.behave.provision = held.wait;
    const flow = await flowOn(wire, laboratory);
    const passes = [];
    for (let pass = 0; pass < 5; pass++) {
      passes.push(await flow.provision("i1", { ...as, parameters: { size: 1 } }));
      await flow.advance(1_000);
    }
    expect(new Set(passes.map(({ status, body }) => `${status} ${body.operation}`)).size).toBe(1);
    held.open();
    await flow.advance();
    expect((await flow.provision("i1", { ...as, parameters: { size: 1 } })).status).toBe(200);
    expect(laboratory.done).toEqual(["provision i1"]);
  });

  test("B2, BIND-02: it takes the credentials from the 200 of a repeated PUT, without ever fetching", async () => {
    const laboratory = lab();
    const flow = await flowOn(wire, laboratory);
    await ready(flow, "i1");
    const held = gate();
    laboratory.behave.bind = held.wait;
    expect((await flow.bind("i1", "b1", as)).status).toBe(202);
    expect((await flow.bind("i1", "b1", as)).status).toBe(202);
    held.open();
    await flow.advance();
    expect(await flow.bind("i1", "b1", as)).toMatchObject({
      status: 200,
      body: { credentials: { user: "b1", host: "host-i1" } },
    });
    expect(laboratory.done).toEqual(["provision i1", "bind b1"]);
  });

  test("B2: it sends DELETE again on every pass, until it is told that there is nothing left", async () => {
    const laboratory = lab();
    const flow = await flowOn(wire, laboratory);
    await ready(flow, "i1");
    const held = gate();
    laboratory.behave.deprovision = held.wait;
    const first = await flow.deprovision("i1", as);
    for (let pass = 0; pass < 3; pass++) {
      expect(await flow.deprovision("i1", as)).toMatchObject({ status: 202, body: first.body });
      await flow.advance(1_000);
    }
    held.open();
    await flow.advance();
    expectRefusal(await flow.deprovision("i1", as), 410);
    expect(laboratory.done).toEqual(["provision i1", "deprovision i1"]);
  });

  test("B9: it sends PUT again after a failure, which is a new attempt under a new operation", async () => {
    const laboratory = lab();
    laboratory.behave.provision = () => {
      throw new Failed("no room");
    };
    const flow = await flowOn(wire, laboratory);
    const first = await flow.provision("i1", as);
    await flow.advance();
    delete laboratory.behave.provision;
    const second = await flow.provision("i1", as);
    expect(second.status).toBe(202);
    expect(second.body.operation).not.toBe(first.body.operation);
    await flow.advance();
    expect((await flow.lastOperation("i1", { operation: first.body.operation })).body.state).toBe("failed");
    expect((await flow.lastOperation("i1", { operation: second.body.operation })).body.state).toBe("succeeded");
  });
});

describe.each(wires)("%s: Cloud Foundry", (wire) => {
  const as = { headers: { "x-broker-api-version": "2.15" } };
  const sync = { ...as, acceptsIncomplete: false };
  const context = {
    platform: "cloudfoundry",
    organization_guid: "o",
    organization_name: "org",
    space_guid: "s",
    space_name: "space",
    instance_name: "mine",
  };

  test("B4: it gives up after 60 seconds; the broker has answered before that", async () => {
    const laboratory = lab();
    laboratory.behave.bind = untilStopped;
    const flow = await flowOn(wire, laboratory);
    await ready(flow, "i1", { ...as, with: { context } });
    const asked = flow.bind("i1", "b1", sync);
    await flow.advance(59_000);
    expectRefusal(await asked, 504);
  });

  test("ORPH-02, ORPH-03: it mitigates with a DELETE, with or without an answer before it, until that succeeds", async () => {
    const laboratory = lab();
    laboratory.behave.provision = untilStopped;
    const flow = await flowOn(wire, laboratory);
    const lost = flow.provision("i1", { ...as, with: { context } });
    await flow.advance();
    await lost; // The answer never reached the platform.
    const { status, body } = await flow.deprovision("i1", as);
    expect(status).toBe(202);
    await flow.advance();
    expect((await flow.lastOperation("i1", { operation: body.operation })).body.state).toBe("succeeded");
    expectRefusal(await flow.deprovision("never-arrived", as), 410);
    expectRefusal(await flow.unbind("never-arrived", "b1", as), 410);
    expect(laboratory.done).toEqual(["provision i1", "deprovision i1 undoing create"]);
  });

  test("ORPH-02: a mitigation that comes while the broker cleans up by itself joins it", async () => {
    const laboratory = lab();
    laboratory.behave.provision = untilStopped;
    const held = gate();
    laboratory.behave.deprovision = held.wait;
    const flow = await flowOn(wire, laboratory);
    const asked = flow.provision("i1", sync);
    await flow.advance(50_000);
    expectRefusal(await asked, 504);
    expect((await flow.deprovision("i1", as)).status).toBe(202);
    held.open();
    await flow.advance();
    expectRefusal(await flow.deprovision("i1", as), 410);
    expect(laboratory.done).toEqual(["provision i1", "deprovision i1 undoing create"]);
  });

  test("LOP-09, LOP-11: it polls every 60 seconds with service, plan and operation, as long as it takes", async () => {
    const laboratory = lab();
    laboratory.behave.update = (work) => work.sleep("move the data", 30 * 60_000);
    const flow = await flowOn(wire, laboratory);
    await ready(flow, "i1", as);
    const { body } = await flow.update("i1", {
      ...as,
      plan: "large",
      with: { previous_values: { plan_id: ids.small } },
    });
    const query = `service_id=${ids.service}&plan_id=${ids.small}&operation=${body.operation}`;
    let state = "in progress";
    let polls = 0;
    while (state === "in progress") {
      await flow.advance(60_000);
      const answer = await flow.request("GET", `${instancePath("i1")}/last_operation?${query}`, as);
      expect(answer.status).toBe(200);
      state = answer.body.state;
      polls++;
    }
    expect(state).toBe("succeeded");
    expect(polls).toBe(30);
  });

  test("BFETCH-05: it fetches an asynchronous binding once it is done", async () => {
    const flow = await flowOn(wire, lab());
    await ready(flow, "i1", as);
    const bind_resource = { app_guid: "a", space_guid: "s" };
    const { body } = await flow.bind("i1", "b1", { ...as, with: { app_guid: "a", bind_resource, context } });
    await flow.advance();
    const query = `service_id=${ids.service}&plan_id=${ids.small}&operation=${body.operation}`;
    const polled = await flow.request("GET", `${bindingPath("i1", "b1")}/last_operation?${query}`, as);
    expect(polled.body.state).toBe("succeeded");
    expect((await flow.request("GET", bindingPath("i1", "b1"), as)).body.credentials.user).toBe("b1");
  });
});

describe.each(wires)("%s: Service Catalog", (wire) => {
  const as = { headers: { "x-broker-api-version": "2.13" } };
  const context = { platform: "kubernetes", namespace: "default", clusterid: "c" };

  test("LOP-11: it speaks 2.13 and polls a plan change with the old plan's id", async () => {
    const flow = await flowOn(wire, lab());
    await ready(flow, "i1", { ...as, with: { context } });
    const { body } = await flow.update("i1", { ...as, plan: "large", with: { context } });
    await flow.advance();
    for (const plan of [ids.small, ids.large]) {
      const query = `service_id=${ids.service}&plan_id=${plan}&operation=${body.operation}`;
      const answer = await flow.request("GET", `${instancePath("i1")}/last_operation?${query}`, as);
      expect(answer).toMatchObject({ status: 200, body: { state: "succeeded" } });
    }
  });

  test("DEL-08, LOP-13: it deletes asynchronously and takes succeeded as the end", async () => {
    const flow = await flowOn(wire, lab());
    await ready(flow, "i1", as);
    await bound(flow, "i1", "b1", as);
    const unbind = await flow.unbind("i1", "b1", as);
    await flow.advance();
    const told = await flow.lastOperation("i1", { binding: "b1", operation: unbind.body.operation });
    expect(told.body.state).toBe("succeeded");
    const { body } = await flow.deprovision("i1", as);
    await flow.advance();
    expect((await flow.lastOperation("i1", { operation: body.operation })).body.state).toBe("succeeded");
  });
});
