import { memoryStore } from "@osbert/journal/memory";
import { faultyStore } from "@osbert/journal/testing";
import { type Level, pino } from "pino";
import { expect, test } from "vitest";
import { createHandler } from "../../src/http/index.js";
import { createBroker, Failed } from "../../src/index.js";
import { type BrokerEvent, logTo } from "../../src/observe/index.js";
import { flowOn, lab, provisionBody } from "../lab.js";
import { watchedBroker } from "./watched-broker.js";

type Line = Readonly<Record<string, unknown>> & { readonly level: number; readonly msg: string };

/** What pino writes. */
function captured(level: Level = "debug") {
  const lines: Line[] = [];
  const logger = pino({ level, base: null }, { write: (text: string) => void lines.push(JSON.parse(text) as Line) });
  const said = (message: string) => lines.filter(({ msg }) => msg === message);
  return { lines, logger, said };
}

const levels = { debug: 20, info: 30, warn: 40, error: 50 };
const instance = "/v2/service_instances/i1";
const asynchronously = "?accepts_incomplete=true";

test("the story of a request is found by its id: answer, operation, steps, retry, end; each at its level", async () => {
  const laboratory = lab();
  const { lines, logger, said } = captured();
  let failures = 1;
  laboratory.behave.provision = () => {
    if (failures-- > 0) throw new TypeError("flaky", { cause: new Error("the cable") });
  };
  const { ask, settles } = await watchedBroker({
    services: [laboratory.service],
    observe: logTo(logger),
    journal: { random: () => 0 },
  });
  const headers = { "x-broker-api-request-identity": "request-7" };
  const answer = await ask("PUT", instance + asynchronously, { body: provisionBody, headers });
  const { operation } = (await answer.json()) as { operation: string };
  expect(await settles(instance)).toBe("succeeded");
  const story = lines.filter(({ requestId }) => requestId === "request-7");
  for (const line of story) expect(line).toMatchObject({ instance: "i1", service: "lab", plan: "small", operation });
  const levelOf = (message: string) => story.filter(({ msg }) => msg === message).map(({ level }) => level);
  expect(levelOf("provision answered with 202")).toEqual([levels.info]);
  expect(levelOf("provision accepted")).toEqual([levels.info]);
  expect(levelOf("provision begins")).toEqual([levels.debug, levels.debug]);
  expect(levelOf("provision has done a step")).toEqual([levels.debug]);
  expect(levelOf("provision failed and is tried again")).toEqual([levels.warn]);
  expect(levelOf("provision succeeded")).toEqual([levels.info]);
  expect(said("provision answered with 202")[0]).toMatchObject({ method: "PUT", credential: "platform", status: 202 });
  expect(said("provision failed and is tried again")[0]?.error).toEqual({ type: "TypeError", message: "flaky" });
  // Stack and causes come apart, for whoever looks closely.
  expect(levelOf("where it was thrown")).toEqual([levels.debug]);
  expect(said("where it was thrown")[0]).toMatchObject({ causes: [{ type: "Error", message: "the cable" }] });
});

test("what looks like a bug is an error the third time, once, with the step and the place in the author's file", async () => {
  const laboratory = lab();
  const { logger, lines } = captured("info");
  const settings: { cluster?: { url: string } } = {};
  laboratory.behave.provision = (operation) =>
    operation.step("reserve a host", () => (settings.cluster as { url: string }).url) as Promise<never>;
  const flow = await flowOn("fetch", laboratory, { observe: logTo(logger), journal: { random: () => 1 } });
  const bugs = () => lines.filter(({ msg }) => msg.startsWith("this looks like a bug"));
  await flow.provision("i1");
  await flow.advance();
  expect(bugs()).toEqual([]);
  for (let minute = 0; minute < 30; minute++) await flow.advance(60_000);
  expect(bugs()).toEqual([
    expect.objectContaining({
      level: levels.error,
      service: "lab",
      step: "reserve a host",
      times: 3,
      error: { type: "TypeError", message: "Cannot read properties of undefined (reading 'url')" },
      at: expect.arrayContaining([expect.stringMatching(/logs\.test\.ts:\d+:\d+/)]),
    }),
  ]);
});

test("what a platform does wrong is info, with the reason; what goes wrong here is an error, with its cause", async () => {
  const store = faultyStore(memoryStore());
  const { logger, said } = captured("info");
  const { ask } = await watchedBroker({ services: [lab().service], observe: logTo(logger), store });
  await ask("GET", "/v2/catalog", { as: null });
  await ask("PUT", instance, { body: { ...provisionBody, plan_id: 7 } });
  await ask("PUT", instance, { body: { padding: "x".repeat(1_100_000) } });
  expect((await ask("GET", "/v2/catalog")).status).toBe(200);
  store.breakDown("refused", ["read"]);
  await ask("GET", instance);
  store.comeBack();
  // Anyone could fill the log with these; refusals.test.ts has what is told instead.
  expect(said("request answered with 401")).toEqual([]);
  expect(said("provision answered with 400")[0]).toMatchObject({ level: levels.info, errorCode: "bad-request" });
  expect(said("provision answered with 400")[0]?.description).toContain("plan_id");
  expect(said("provision answered with 413")[0]).toMatchObject({ level: levels.info, errorCode: "too-large" });
  const failed = said("fetchInstance answered with 503")[0];
  expect(failed).toMatchObject({ level: levels.error, errorCode: "unavailable", error: { type: "JournalError" } });
  // Reads that go well are not worth a line, stacks neither.
  expect(said("catalog answered with 200")).toEqual([]);
  expect(said("where it was thrown")).toEqual([]);
});

test("an operation that fails is a warning, with what its user is told", async () => {
  const laboratory = lab();
  const { logger, said } = captured();
  laboratory.behave.provision = () => {
    throw new Failed("no more than 1000 GB can be had");
  };
  const { ask, settles } = await watchedBroker({ services: [laboratory.service], observe: logTo(logger) });
  await ask("PUT", instance + asynchronously, { body: provisionBody });
  expect(await settles(instance)).toBe("failed");
  expect(said("provision failed")).toMatchObject([{ level: levels.warn, why: "no more than 1000 GB can be had" }]);
});

test("every event has a line that can be written, whatever was thrown", () => {
  const { lines, logger } = captured();
  const unlookable = new Proxy(new Error(), {
    get: () => {
      throw new Error("do not look");
    },
  });
  const place = { platform: "", instance: "i", binding: "b", service: null, plan: null };
  const facts = { key: "/i", operation: "1-a", operationKind: "bind", part: "binding/b", requestId: null, labels: {} };
  const about = { ...facts, ...place };
  const events: readonly BrokerEvent[] = [
    { kind: "retrying", ...about, attempt: 1, until: Number.NaN, error: unlookable },
    { kind: "waiting", ...about, until: 0 },
    { kind: "settled", ...about, outcome: "cancelled", message: "why", tookMs: 1 },
    { kind: "settled", ...about, outcome: "failed", message: "why", tookMs: 1, settleError: new Error("a bug") },
    { kind: "abandoned", ...about, why: "deadline" },
    { kind: "unknown kind", ...about },
    { kind: "cancel requested", key: "/i", operation: "1-a", platform: "", instance: "i" },
    { kind: "lease lost", key: "/i", running: 1, platform: "", instance: "i" },
    { kind: "set aside", key: "/i", error: null, platform: "", instance: "i" },
    { kind: "pruned", key: "/i", entries: 1, removed: false, platform: "", instance: "i" },
    { kind: "taken over", resources: 2 },
    { kind: "store failed", doing: "claim", error: { token: "s3cr3t" } },
    { kind: "store answered again", doing: "claim" },
    { kind: "presence lost" },
  ];
  for (const event of events) logTo(logger)(event);
  expect(lines.filter(({ msg }) => msg !== "where it was thrown")).toHaveLength(events.length);
  expect(JSON.stringify(lines)).not.toContain("s3cr3t");
  const unkept = lines.filter(
    ({ msg }) => msg === "bind failed, but what that means for the instance could not be kept",
  );
  expect(unkept).toMatchObject([{ level: levels.error, why: "why", error: { message: "a bug" } }]);
});

test("the catalog is answered without a promise, watched or not", async () => {
  const { logger, said } = captured();
  const request = {
    method: "GET",
    url: "/v2/catalog",
    header: (name: string) => (name === "x-broker-api-version" ? "2.17" : undefined),
    body: new Uint8Array(),
  };
  for (const watching of [{}, { observe: logTo(logger) }]) {
    const broker = createBroker({ stderr: "nothing", services: [lab().service], store: memoryStore(), ...watching });
    const answer = createHandler(broker, { credentials: "none" })(request);
    expect(answer).not.toBeInstanceOf(Promise);
    expect(answer).toMatchObject({ status: 200 });
  }
  expect(said("catalog answered with 200")).toHaveLength(1);
});

test("observers that throw break neither the broker nor each other", async () => {
  const { logger, said } = captured();
  const fails = () => {
    throw new Error("the disk is full");
  };
  const { ask, settles } = await watchedBroker({ services: [lab().service], observe: [fails, logTo(logger)] });
  expect((await ask("PUT", instance + asynchronously, { body: provisionBody })).status).toBe(202);
  expect(await settles(instance)).toBe("succeeded");
  expect(said("provision succeeded")).toHaveLength(1);
});

test("an observer of the journal alone is told, also where nobody watches the broker", async () => {
  const kinds: string[] = [];
  const broker = createBroker({
    services: [lab().service],
    store: memoryStore(),
    stderr: "nothing",
    journal: { observe: ({ kind }) => void kinds.push(kind) },
  });
  await broker.start();
  const handle = createHandler(broker, { credentials: "none" });
  const headers: Readonly<Record<string, string>> = { "x-broker-api-version": "2.17" };
  const body = Buffer.from(JSON.stringify(provisionBody));
  await handle({ method: "PUT", url: instance, header: (name) => headers[name], body });
  await broker.stop();
  expect(kinds).toEqual(expect.arrayContaining(["accepted", "settled"]));
});
