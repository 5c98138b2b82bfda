import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from "@opentelemetry/sdk-trace-base";
import { pino } from "pino";
import { expect, test } from "vitest";
import { type BrokerEvent, logTo, metrics, traces } from "../../src/observe/index.js";
import { brokerStderrLog } from "../../src/observe/stderr-log.js";
import { bindBody, lab, provisionBody } from "../lab.js";
import { platform, watchedBroker, watcher } from "./watched-broker.js";

/** One for each place where a secret can be. */
const planted = {
  password: platform.password,
  watchersPassword: watcher.password,
  guessed: "guessed-password-93f1",
  token: "eyJhbGciOiJub25lIn0.eyJzdWIiOiJqd3QifQ.c2lnbmF0dXJl",
  parameter: "parameter-5e1b",
  wrongParameter: "wrong-parameter-77aa",
  context: "context-c0de",
  identity: "identity-1d3e",
  state: "state-81cc",
  stepResult: "step-result-40fe",
  credential: "binding-credential-e2e2",
  bindingState: "binding-state-6b6b",
  query: "query-1f1f",
  cookie: "cookie-90a0",
};

test("planted secrets are found in no event, log, metric or trace, at any level", async () => {
  const laboratory = lab({
    plans: { small: { id: provisionBody.plan_id, description: "With any parameters" } },
    async provision(work: { step(name: string, work: () => string): Promise<string> }) {
      await work.step("make a key", () => planted.stepResult);
      return { state: { key: planted.state } };
    },
    async bind() {
      return { credentials: { password: planted.credential }, state: { key: planted.bindingState } };
    },
  } as object);
  const events: BrokerEvent[] = [];
  const lines: string[] = [];
  const logger = pino({ level: "trace" }, { write: (text: string) => void lines.push(text) });
  const stderr = { level: "warnings", now: Date.now, write: (text: string) => void lines.push(text) } as const;
  const seen = metrics();
  const exporter = new InMemorySpanExporter();
  const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });
  const { ask, settles } = await watchedBroker(
    {
      services: [laboratory.service],
      observe: [(event) => void events.push(event), logTo(logger), seen.observe, brokerStderrLog(stderr)],
      tracing: traces(provider.getTracer("osbert")),
    },
    { metrics: seen },
  );
  const identity = Buffer.from(JSON.stringify({ user_id: "ann", secret: planted.identity })).toString("base64");
  const headers = { "x-broker-api-originating-identity": `cloudfoundry ${identity}`, cookie: planted.cookie };
  const instance = "/v2/service_instances/i1";
  const parameters = { password: planted.parameter };
  const context = { platform: "cloudfoundry", secret: planted.context };
  const body = { ...provisionBody, parameters, context };
  expect((await ask("PUT", `${instance}?accepts_incomplete=true`, { body, headers })).status).toBe(202);
  expect(await settles(instance)).toBe("succeeded");
  const bind = await ask("PUT", `${instance}/service_bindings/b1`, { body: { ...bindBody, parameters }, headers });
  expect([bind.status, await bind.text()]).toEqual([201, expect.stringContaining(planted.credential)]);
  expect((await ask("PATCH", instance, { body: { service_id: body.service_id, parameters: 7 }, headers })).status).toBe(
    400,
  );
  const other = { ...body, parameters: { password: planted.wrongParameter } };
  expect((await ask("PUT", instance, { body: other, headers })).status).toBe(409);
  expect((await ask("GET", "/v2/catalog", { as: { ...platform, password: planted.guessed } })).status).toBe(401);
  const bearer = { authorization: `Bearer ${planted.token}` };
  expect((await ask("GET", "/v2/catalog", { headers: bearer })).status).toBe(401);
  expect((await ask("GET", `${instance}?secret=${planted.query}`)).status).toBe(200);
  expect((await ask("DELETE", `${instance}?secret=${planted.query}&service_id=x&plan_id=y`)).status).toBe(400);
  const scraped = await (await ask("GET", "/metrics", { as: watcher })).text();

  const spans = JSON.stringify(
    exporter
      .getFinishedSpans()
      .map(({ name, attributes, events: told, status }) => ({ name, attributes, told, status })),
  );
  const log = lines.join("");
  // All of them saw what there was to see.
  expect(log).toContain("provision succeeded");
  expect(scraped).toContain('osbert_operations_total{kind="bind"');
  expect(spans).toContain('"name":"make a key"');
  const places = { events: JSON.stringify(events), log, scraped, spans };
  for (const [where, text] of Object.entries(places)) {
    for (const [what, secret] of Object.entries(planted)) {
      expect(text.includes(secret), `${what} in ${where}`).toBe(false);
      const encoded = Buffer.from(`${platform.username}:${secret}`).toString("base64");
      expect(text.includes(encoded), `${what}, encoded, in ${where}`).toBe(false);
    }
  }
});
