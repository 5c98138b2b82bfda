import { memoryStore } from "@osbert/journal/memory";
import { manualClock } from "@osbert/journal/testing";
import { pino } from "pino";
import { expect, onTestFinished, test } from "vitest";
import { createHandler, hashPassword } from "../../src/http/index.js";
import { createBroker } from "../../src/index.js";
import { logTo, metrics, type RequestAnswered } from "../../src/observe/index.js";
import { lab } from "../lab.js";
import { parseAnswer, speak } from "../raw-http.js";
import { platform, watchedBroker, watcher } from "./watched-broker.js";

type Line = Readonly<Record<string, unknown>> & { readonly msg: string };

function captured() {
  const lines: Line[] = [];
  const logger = pino({ base: null }, { write: (text: string) => void lines.push(JSON.parse(text) as Line) });
  const refusals = () => lines.filter(({ msg }) => msg.startsWith("requests were refused"));
  return { lines, logger, refusals };
}

const admin = { username: "ann", password: "pa55-of-ann" };

test("refused requests are logged with address and user name, the first at once and then one line a minute, and counted", async () => {
  const clock = manualClock();
  const { lines, logger, refusals } = captured();
  const figures = metrics({ process: false });
  const { ask } = await watchedBroker(
    { services: [lab().service], observe: [logTo(logger, { clock }), figures.observe] },
    { metrics: figures, admin: { credentials: [admin] }, authentication: { slowDown: "none" } },
  );
  const wrong = { ...platform, password: "guess" };
  expect((await ask("GET", "/v2/catalog", { as: wrong })).status).toBe(401);
  expect(refusals()).toMatchObject([{ level: 40, network: "127.0.0.1", unauthorized: 1, names: ["platform"] }]);
  for (let time = 0; time < 20; time++) await ask("GET", "/v2/catalog", { as: wrong });
  // A password that was typed where the name belongs, one without a name, and known names at the other doors.
  await ask("GET", "/v2/catalog", { as: { username: "pa55w0rd-in-the-wrong-field", password: "" } });
  await ask("GET", "/v2/catalog", { as: null });
  await ask("GET", "/admin/v1/instances", { as: { ...admin, password: "guess" } });
  await ask("GET", "/metrics", { as: { ...watcher, password: "guess" } });
  expect(refusals()).toHaveLength(1);
  await clock.advance(60_000);
  expect(refusals().slice(1)).toEqual([
    expect.objectContaining({
      network: "127.0.0.1",
      unauthorized: 24,
      names: ["platform", "ann", "prometheus"],
      withUnknownName: 1,
      withoutName: 1,
    }),
  ]);
  expect(JSON.stringify(lines)).not.toMatch(/pa55w0rd-in-the-wrong-field|guess/);
  // Nothing is gathered any more: the next one is told at once again.
  await clock.advance(60_000);
  expect(refusals()).toHaveLength(2);
  await ask("GET", "/v2/catalog", { as: null });
  expect(refusals()).toHaveLength(3);
  const text = await (await ask("GET", "/metrics")).text();
  expect(text).toContain('osbert_requests_refused_total{status="401",user="known"} 23');
  expect(text).toContain('osbert_requests_refused_total{status="401",user="unknown"} 1');
  expect(text).toContain('osbert_requests_refused_total{status="401",user="none"} 2');
});

test("a name that is known at another door is told, and that it was the wrong door", async () => {
  const clock = manualClock();
  const { logger, refusals } = captured();
  const figures = metrics({ process: false });
  const { ask } = await watchedBroker(
    { services: [lab().service], observe: [logTo(logger, { clock }), figures.observe] },
    { metrics: figures, admin: { credentials: [admin] }, authentication: { slowDown: "none" } },
  );
  await ask("GET", "/v2/catalog", { as: null });
  expect((await ask("GET", "/v2/catalog", { as: admin })).status).toBe(401);
  expect((await ask("GET", "/v2/catalog", { as: watcher })).status).toBe(401);
  expect((await ask("GET", "/admin/v1/instances", { as: platform })).status).toBe(401);
  expect((await ask("GET", "/metrics", { as: admin })).status).toBe(401);
  await clock.advance(60_000);
  const names = ["ann", "prometheus", "platform"];
  expect(refusals()[1]).toMatchObject({ unauthorized: 4, names, atWrongDoor: 4 });
  expect(refusals()[1]).not.toHaveProperty("withUnknownName");
  const text = await (await ask("GET", "/metrics")).text();
  expect(text).toContain('osbert_requests_refused_total{status="401",user="wrong door"} 4');
});

test("guesses that are refused unheard are in the same line", async () => {
  const clock = manualClock();
  const { logger, refusals } = captured();
  const slowDown = { freeFailures: 0, mostWaiting: 0 };
  const { ask } = await watchedBroker(
    { services: [lab().service], observe: logTo(logger, { clock }) },
    { authentication: { slowDown } },
  );
  for (let time = 0; time < 3; time++)
    expect((await ask("GET", "/v2/catalog", { as: { ...platform, password: "x" } })).status).toBe(429);
  await clock.advance(60_000);
  expect(refusals()).toMatchObject([{ tooManyRequests: 1 }, { tooManyRequests: 2, names: ["platform"] }]);
  expect(refusals()[0]).not.toHaveProperty("unauthorized");
});

test("guesses at the pages for which there is no room are gathered and counted, too", async () => {
  const refused: (RequestAnswered["refused"] | "not told")[] = [];
  const broker = createBroker({
    services: [lab().service],
    store: memoryStore(),
    observe: (event) => {
      if (event.kind === "request answered" && event.status === 429) refused.push(event.refused ?? "not told");
    },
  });
  await broker.start();
  onTestFinished(() => broker.stop({ drainMs: 0 }));
  const passwordHash = await hashPassword("secret", { ln: 10, r: 8, p: 1 });
  const handle = createHandler(broker, {
    credentials: [platform],
    watchers: [{ username: "prometheus", passwordHash }],
  });
  const guess = async (number: number) => {
    const authorization = `Basic ${Buffer.from(`prometheus:${number}`).toString("base64")}`;
    const header = (name: string) => (name === "authorization" ? authorization : undefined);
    return handle({ method: "GET", url: "/readyz", header, body: new Uint8Array() });
  };
  await Promise.all(Array.from({ length: 300 }, (_, number) => guess(number)));
  expect(refused.length).toBeGreaterThan(0);
  expect(refused).toEqual(refused.map(() => ({ network: "unknown", user: { kind: "known", name: "prometheus" } })));
});

test("a stranger cannot write the log with what is refused before it is known who asks", async () => {
  const { lines, logger } = captured();
  const { served } = await watchedBroker({
    services: [lab().service],
    observe: logTo(logger, { clock: manualClock() }),
  });
  const before = lines.length;
  const twice = "authorization: Basic YTpi\r\nauthorization: Basic YTpi\r\nconnection: close\r\n";
  for (const request of [
    `PUT /v2/service_instances/i1 HTTP/1.1\r\nhost: b\r\n${twice}\r\n`,
    "CONNECT db.example:5432 HTTP/1.1\r\nhost: b\r\n\r\n",
    "FETCH /v2/catalog HTTP/1.1\r\nhost: b\r\n\r\n",
    "no HTTP at all\r\n\r\n",
  ])
    expect(parseAnswer(await speak(served.url, request)).status).toBeGreaterThanOrEqual(400);
  expect(lines.slice(before)).toEqual([]);
});

test("a log that cannot be written does not end the process, and is written again once it can", async () => {
  const clock = manualClock();
  let told = 0;
  let isBroken = true;
  const warn = () => {
    if (isBroken) throw new Error("the disk is full");
    told++;
  };
  const nothing = () => undefined;
  const observe = logTo({ debug: nothing, info: nothing, warn, error: nothing }, { clock });
  const event = { kind: "request answered", method: "GET", status: 401, route: null } as unknown as RequestAnswered;
  const refuse = () => {
    try {
      observe({ ...event, refused: { network: "192.0.2.1", user: { kind: "none" } } });
    } catch {
      // The broker swallows what an observer throws.
    }
  };
  refuse();
  refuse();
  await clock.advance(60_000);
  isBroken = false;
  refuse();
  await clock.advance(60_000);
  expect(told).toBe(1);
});

test("however many networks guess, the lines are bounded", async () => {
  const clock = manualClock();
  const { logger, refusals } = captured();
  const observe = logTo(logger, { clock });
  const event = { kind: "request answered", method: "GET", status: 401, route: null } as unknown as RequestAnswered;
  for (let round = 0; round < 3; round++)
    for (let network = 0; network < 5_000; network++)
      observe({ ...event, refused: { network: `n${network}`, user: { kind: "unknown" } } });
  expect(refusals()).toHaveLength(101);
  await clock.advance(60_000);
  expect(refusals()).toHaveLength(202);
  expect(refusals().find(({ network, unauthorized }) => network === "others" && unauthorized !== 1)).toMatchObject({
    unauthorized: 14_699,
  });
});

test("an address that a proxy hands on cannot write lines of its own", async () => {
  const { logger, refusals } = captured();
  const { ask } = await watchedBroker(
    { services: [lab().service], observe: logTo(logger, { clock: manualClock() }) },
    { trustProxy: true },
  );
  const headers = { "x-forwarded-for": "1.2.3.4\u009b31m\u00a0fake line" };
  await ask("GET", "/v2/catalog", { as: null, headers });
  expect(refusals()).toMatchObject([{ network: "1.2.3.4?31m?fake?line" }]);
});
