import { classify, headerNames, type JsonObject } from "@osbert/protocol";
import { BrokerAnswerError, type Client, createClient, receivedOf } from "@osbert/protocol/client";
import { brokerFetch } from "@osbert/protocol/node";
import { expect, onTestFinished, test } from "vitest";
import {
  type MisbehavingBroker,
  type MisbehavingOptions,
  type MisbehaviourName,
  namedMisbehaviours,
  startMisbehaving,
} from "../src/testing/index.js";

const credentials = { username: "platform", password: "secret" };
const authorization = `Basic ${Buffer.from("platform:secret").toString("base64")}`;
const good = { serviceId: "service-misbehaving", planId: "plan-good" };

async function misbehaving(
  options: Partial<MisbehavingOptions> = {},
): Promise<{ broker: MisbehavingBroker; client: Client; control: typeof fetch }> {
  const broker = await startMisbehaving({ credentials, ...options });
  onTestFinished(() => broker.stop());
  // Long enough for slow bytes on a busy machine; what never answers is told apart by `timeoutMs` of its own.
  const client = createClient({ url: broker.url, credentials, fetch: brokerFetch(), timeoutMs: 20_000 });
  const control: typeof fetch = (path, init) =>
    fetch(`${broker.url}/misbehave/${String(path)}`, { ...init, headers: { authorization } });
  return { broker, client, control };
}

const wanted = (plan: string, parameters: JsonObject = {}) => ({
  service_id: "service-misbehaving",
  plan_id: `plan-${plan}`,
  organization_guid: "o",
  space_guid: "s",
  parameters,
});

/** How a platform takes what came back. */
async function classOf(call: "provision" | "deprovision" | "bind", answer: Promise<unknown>): Promise<string> {
  try {
    const { kind } = (await answer) as { readonly kind: string };
    return kind === "accepted" ? "running" : "done";
  } catch (error) {
    if (!(error instanceof BrokerAnswerError)) throw error;
    return classify(call, receivedOf(error)).class;
  }
}

test("without a rule it is a good broker that keeps what it is asked for", async () => {
  const { broker, client } = await misbehaving();
  const { catalog, etag = "" } = await client.catalog();
  expect(catalog).toMatchObject({ services: [{ name: "misbehaving" }, {}, {}, {}] });
  expect((await client.catalog({ etag })).catalog).toBe("unchanged");

  expect(await client.provision("i", wanted("good", { size: 1 }))).toMatchObject({ kind: "done", status: 201 });
  expect(await client.provision("i", wanted("good", { size: 1 }))).toMatchObject({ status: 200 });
  await expect(client.provision("i", wanted("good", { size: 2 }))).rejects.toMatchObject({ status: 409 });
  await client.update("i", { service_id: good.serviceId, parameters: { colour: "red" } });
  expect(await client.fetchInstance("i")).toMatchObject({ body: { parameters: { size: 1, colour: "red" } } });

  const bound = await client.bind("i", "b", { service_id: good.serviceId, plan_id: good.planId });
  expect(bound.body).toMatchObject({ credentials: { user: "user-of-b" } });
  await expect(client.deprovision("i", good)).rejects.toMatchObject({ status: 400 });
  expect(broker.state()).toMatchObject({ instances: [{ id: "i", state: "ready", bindings: [{ id: "b" }] }] });

  await client.unbind("i", "b", good);
  expect(await client.deprovision("i", good)).toMatchObject({ status: 200 });
  expect(await client.deprovision("i", good)).toMatchObject({ status: 410 });
  expect(broker.state()).toEqual({ instances: [], created: 2, deleted: 2, pending: 0 });
});

const bindsOnly: readonly string[] = ["needs-app", "credentials-a-text", "drain-unasked", "large-numbers", "expiring"];
/** What is wrong with these is in fields that the client hands on as they are; whoever uses it judges them. */
const judgedLater: Readonly<Record<string, string>> = { "credentials-a-text": "done" };
const hanging: readonly string[] = ["hang", "done-hang", "late-hang", "half-answer-hang"];

test.each(Object.entries(namedMisbehaviours))("%s is taken by a platform as the table says", async (name, expected) => {
  const { broker } = await misbehaving();
  const timeoutMs = hanging.includes(name) ? 300 : 20_000;
  const client = createClient({ url: broker.url, credentials, fetch: brokerFetch(), timeoutMs });
  if (bindsOnly.includes(name)) {
    await client.provision("i", wanted("good"));
    const parameters = { misbehave: name };
    const answer = client.bind("i", "b", { service_id: good.serviceId, plan_id: good.planId, parameters });
    expect(await classOf("bind", answer)).toBe(judgedLater[name] ?? expected.class ?? "done");
  } else
    expect(await classOf("provision", client.provision("i", wanted(name)))).toBe(
      judgedLater[name] ?? expected.class ?? "done",
    );
});

test.each<[MisbehaviourName, number]>([
  ["done-reset", 1],
  ["half-answer", 1],
  ["201-half-json", 1],
  ["done-500", 1],
  ["500", 0],
  ["reset", 0],
  ["half-request", 0],
  ["409", 0],
])("%s leaves %i instances behind", async (name, count) => {
  const { broker, client } = await misbehaving();
  await expect(client.provision("i", wanted(name))).rejects.toThrow();
  expect(broker.state().instances).toHaveLength(count);
});

test("an answer can be broken off at each of its bytes, and what was asked for is done", async () => {
  const { broker, client } = await misbehaving();
  let breaks = 0;
  for (let answerBytes = 0; answerBytes < 1_000; answerBytes++) {
    broker.setRules([{ call: "provision", do: [{ answerBytes, ending: answerBytes % 2 === 0 ? "reset" : "close" }] }]);
    const id = `i${answerBytes}`;
    const end = await classOf("provision", client.provision(id, wanted("good")));
    expect(broker.state().instances.at(-1)?.id).toBe(id);
    if (end === "done") break;
    expect(end).toBe("unknown");
    breaks++;
  }
  expect(breaks).toBeGreaterThan(100);
  expect(breaks).toBeLessThan(1_000);
});

test("a request can be broken off while it is read, also in a body that never ends", async () => {
  const { broker, client } = await misbehaving();
  const large = wanted("good", { text: "x".repeat(1_000_000) });
  for (const requestBytes of [0, 1, 20, 300, 5_000, 500_000]) {
    broker.setRules([{ call: "provision", do: { requestBytes } }]);
    expect(await classOf("provision", client.provision("i", large))).toBe("unknown");
    expect(broker.requests().at(-1)?.body.length).toBeLessThanOrEqual(requestBytes);
  }
  expect(broker.state().instances).toEqual([]);
});

test("what is late is done after the answer, and also after a delete that found nothing", async () => {
  const { broker, client } = await misbehaving({ now: () => 0 });
  await expect(client.provision("i", wanted("late-reset"))).rejects.toMatchObject({ kind: "connection lost" });
  expect(await client.deprovision("i", good)).toMatchObject({ status: 410 });
  expect(broker.state()).toMatchObject({ instances: [], pending: 1 });
  broker.finishLate();
  expect(broker.state()).toMatchObject({ instances: [{ id: "i" }], pending: 0 });
});

test("operations go on after 202 and end as they were told to", async () => {
  const { broker, client } = await misbehaving();
  const begun = await client.provision("i", wanted("async"));
  expect(begun).toMatchObject({ kind: "accepted", operation: "operation-1" });
  expect(await client.provision("i", wanted("async"))).toMatchObject({ operation: "operation-1" });
  await expect(client.update("i", { service_id: good.serviceId })).rejects.toMatchObject({ error: "ConcurrencyError" });
  expect((await client.instanceLastOperation("i", { operation: "operation-1" })).body.state).toBe("in progress");
  expect((await client.instanceLastOperation("i", { operation: "operation-1" })).body.state).toBe("succeeded");

  broker.setRules([{ call: "update", do: { slow: { polls: 0, end: "failed", usable: false, repeatable: false } } }]);
  await client.update("i", { service_id: good.serviceId, parameters: { size: 2 } });
  const { body } = await client.instanceLastOperation("i");
  expect(body).toMatchObject({ state: "failed", instance_usable: false, update_repeatable: false });
  expect(broker.state().instances).toMatchObject([{ state: "ready", parameters: {} }]);

  broker.setRules([{ call: "deprovision", do: "async" }]);
  await client.deprovision("i", good);
  await client.instanceLastOperation("i");
  expect((await client.instanceLastOperation("i")).body.state).toBe("succeeded");
  await expect(client.instanceLastOperation("i")).rejects.toMatchObject({ status: 410 });
});

test("polls of an operation are misbehaved to as it says", async () => {
  const { client } = await misbehaving();
  for (const [name, status] of [
    ["async-forgotten", 404],
    ["async-gone", 410],
    ["async-polls-refused", 400],
  ] as const) {
    await client.provision(name, wanted(name));
    await expect(client.instanceLastOperation(name)).rejects.toMatchObject({ status });
  }
});

test("parameters say what becomes of their own request, and by call of later ones", async () => {
  const { broker, client } = await misbehaving();
  await expect(client.provision("j", wanted("good", { misbehave: "418" }))).rejects.toMatchObject({ status: 418 });
  expect(await client.provision("j", wanted("good"))).toMatchObject({ status: 201 });
  await client.deprovision("j", good);
  await client.provision("i", wanted("good", { misbehave: { deprovision: ["500", { status: 423 }], poll: "404" } }));
  await expect(client.deprovision("i", good)).rejects.toMatchObject({ status: 500 });
  await expect(client.deprovision("i", good)).rejects.toMatchObject({ status: 423 });
  expect(await client.deprovision("i", good)).toMatchObject({ status: 200 });
  for (const misbehave of ["nonsense", { status: "yes" }, { provision: [{ slow: { polled: { slow: {} } } }] }, 7])
    await expect(client.provision("k", wanted("good", { misbehave }))).rejects.toMatchObject({ status: 400 });
  expect(broker.state().instances).toEqual([]);
});

test("rules count what they were used for, skip, and leave the rest to the next one", async () => {
  const { client, broker } = await misbehaving({
    rules: [
      { call: "provision", skip: 1, do: ["403"] },
      { call: ["provision", "bind"], instance: "i", do: ["405"] },
      { plan: "async", do: "415" },
    ],
  });
  const statuses: unknown[] = [];
  for (let count = 0; count < 3; count++)
    statuses.push(
      await client.provision("i", wanted("good")).then(
        ({ status }) => status,
        (error: BrokerAnswerError) => error.status,
      ),
    );
  expect(statuses).toEqual([405, 403, 201]);
  await expect(client.provision("j", wanted("async"))).rejects.toMatchObject({ status: 415 });
  broker.setRules([]);
  expect(await client.provision("j", wanted("async"))).toMatchObject({ status: 202 });
});

test("it is told what to do, and asked what it has and was asked, over HTTP", async () => {
  const { broker, client, control } = await misbehaving();
  expect((await fetch(`${broker.url}/misbehave/state`)).status).toBe(401);
  const put = (path: string, body: unknown) => control(path, { method: "PUT", body: JSON.stringify(body) });
  expect((await put("rules", [{ call: "provision", do: ["500"] }])).status).toBe(200);
  expect(await (await control("rules")).json()).toEqual({ rules: [{ call: "provision", do: ["500"] }] });
  for (const wrong of [{}, [{ do: "nonsense" }], [{ call: "steal", do: "500" }], [{ do: { status: 1 } }], [{ at: 1 }]])
    expect((await put("rules", wrong)).status).toBe(400);

  const identity = { platform: "osbert", value: { user: "anna" } };
  await expect(client.provision("i", wanted("good"), { identity, requestId: "r-1" })).rejects.toThrow();
  const { requests } = (await (await control("requests")).json()) as { requests: readonly JsonObject[] };
  expect(requests).toMatchObject([
    {
      ...{ method: "PUT", path: "/v2/service_instances/i", call: "provision", delivered: 500 },
      headers: { [headerNames.requestIdentity.toLowerCase()]: "r-1" },
    },
  ]);
  expect(JSON.stringify(requests)).not.toContain(authorization);

  await client.provision("i", wanted("late-500")).catch(() => undefined);
  await control("finish", { method: "POST" });
  expect(await (await control("state")).json()).toMatchObject({ instances: [{ id: "i" }] });
  await control("state", { method: "DELETE" });
  expect(broker.state().instances).toEqual([]);

  expect((await put("catalog", "plans-15000")).status).toBe(200);
  const { catalog } = await client.catalog();
  expect(catalog).toMatchObject({ services: { length: 150 } });
  expect((await put("catalog", "nonsense")).status).toBe(400);
  expect((await put("catalog", { services: "none" })).status).toBe(200);
});

test("chance comes from the seed and from nothing else, and who asks again comes to an end", async () => {
  const run = async (seed: number, ids: readonly string[]) => {
    const { broker, client } = await misbehaving({ chaos: { seed, rate: 0.8 } });
    const ends = new Map<string, string>();
    for (const id of ids) {
      let story = "";
      for (let tries = 0; tries < 10; tries++) {
        const end = await classOf("deprovision", client.deprovision(id, good));
        story += `${end}, `;
        if (end === "done") break;
      }
      ends.set(id, story);
      expect(story).toContain("done");
    }
    expect(broker.state().instances).toEqual([]);
    return ends;
  };
  const ids = Array.from({ length: 12 }, (_, index) => `i${index}`);
  const first = await run(1, ids);
  expect(await run(1, ids.toReversed())).toEqual(first);
  expect(await run(2, ids)).not.toEqual(first);
});

test("hostile requests are refused, and it goes on", async () => {
  const { broker, client } = await misbehaving();
  const send = (path: string, body: string) =>
    fetch(`${broker.url}${path}`, { method: "PUT", body, headers: { authorization, "x-broker-api-version": "2.17" } });
  expect((await send("/v2/service_instances/i", "{")).status).toBe(400);
  expect((await send("/v2/service_instances/i", "[".repeat(100_000))).status).toBe(400);
  expect((await send("/v2/service_instances/i", "[]")).status).toBe(400);
  expect((await send("/v2/service_instances/%E0%A4%A", "{}")).status).toBe(400);
  expect((await send("/v2/nothing", "{}")).status).toBe(404);
  expect((await send("/misbehave/rules", "{")).status).toBe(400);
  expect((await send("/misbehave/nothing", "{}")).status).toBe(404);
  expect((await send("/v2/service_instances/__proto__", '{"service_id":"s","plan_id":"__proto__"}')).status).toBe(201);
  expect(await client.provision("i", wanted("good"))).toMatchObject({ status: 201 });
});

test("it can be stopped while requests hang", async () => {
  const broker = await startMisbehaving({ credentials, rules: [{ do: "hang" }] });
  const client = createClient({ url: broker.url, credentials, fetch: brokerFetch() });
  const hung = client.catalog().catch((error: unknown) => error);
  await expect.poll(() => broker.requests().at(-1)?.delivered).toBe("hung");
  await broker.stop();
  expect(await hung).toBeInstanceOf(BrokerAnswerError);
});
