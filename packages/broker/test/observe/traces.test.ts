import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from "@opentelemetry/sdk-trace-base";
import { readTraceparent } from "@osbert/server/traces";
import { expect, onTestFinished, test } from "vitest";
import { RetryLater } from "../../src/index.js";
import { type Tracing, traces } from "../../src/observe/index.js";
import { bindBody, lab, provisionBody } from "../lab.js";
import { followContext, type SeenSpan, seenSpan } from "./spans.js";
import { watchedBroker } from "./watched-broker.js";

followContext();

const instance = "/v2/service_instances/i1";
const asynchronously = "?accepts_incomplete=true";
const callersTrace = "0af7651916cd43dd8448eb211c80319c";
const callersSpan = "b7ad6b7169203331";
const traceparent = `00-${callersTrace}-${callersSpan}-01`;

function recorder() {
  const exporter = new InMemorySpanExporter();
  const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });
  const spans = () => exporter.getFinishedSpans().map(seenSpan);
  return { tracer: provider.getTracer("osbert"), spans, exporter };
}

/** A span and those above it, by name, up to where the trace came from. */
function pathTo(span: SeenSpan, all: readonly SeenSpan[]): readonly string[] {
  const parent = all.find(({ id, trace }) => id === span.parent && trace === span.trace);
  return [...(parent === undefined ? [span.parent ?? "root"] : pathTo(parent, all)), span.name];
}

test("request, attempts and steps are one trace, that of the platform; spans of authors' libraries nest", async () => {
  const laboratory = lab();
  const { tracer, spans } = recorder();
  let failures = 1;
  laboratory.behave.provision = async (work) => {
    await work.step("ask the host", () => tracer.startActiveSpan("library", (span) => span.end()));
    if (failures-- > 0) throw new RetryLater("not yet", { afterMs: 1 });
    return undefined;
  };
  const { ask, settles } = await watchedBroker({ services: [laboratory.service], tracing: traces(tracer) });
  const headers = { traceparent, tracestate: "vendor=1", "x-broker-api-request-identity": "request-7" };
  expect((await ask("PUT", instance + asynchronously, { body: provisionBody, headers })).status).toBe(202);
  expect(await settles(instance)).toBe("succeeded");
  await expect.poll(() => spans().filter(({ name }) => name === "provision")).toHaveLength(3);
  const of = spans().filter(({ trace }) => trace === callersTrace);
  expect(of.map((span) => pathTo(span, of).join(" > ")).sort()).toEqual(
    [
      `${callersSpan} > provision`,
      `${callersSpan} > provision > provision`,
      `${callersSpan} > provision > provision`,
      `${callersSpan} > provision > provision > ask the host`,
      `${callersSpan} > provision > provision > ask the host > library`,
      `${callersSpan} > provision > provision > create`,
    ].sort(),
  );
  const request = of.find(({ parent }) => parent === callersSpan);
  expect(request?.attributes).toMatchObject({
    "http.request.method": "PUT",
    "http.response.status_code": 202,
    "osbert.instance": "i1",
    "osbert.service": "lab",
    "osbert.plan": "small",
    "osbert.request": "request-7",
  });
  const attempts = of.filter(({ parent }) => parent === request?.id);
  expect(attempts.map(({ attributes }) => attributes["osbert.attempt"])).toEqual([1, 2]);
  expect(
    attempts.every(({ attributes }) => attributes["osbert.operation"] === request?.attributes["osbert.operation"]),
  ).toBe(true);
  // To ask for more time is no failure.
  expect(of.filter(({ failed }) => failed)).toEqual([]);
});

test("what goes wrong inside fails its spans, with class and message and no stack; what a platform does wrong does not", async () => {
  const laboratory = lab();
  const { tracer, spans, exporter } = recorder();
  laboratory.behave.bind = (work) =>
    work.step("grant it", () => {
      throw new TypeError("the host said no");
    });
  const { ask, settles } = await watchedBroker({
    services: [laboratory.service],
    tracing: traces(tracer),
    syncTimeoutMs: 200,
  });
  await ask("PUT", instance + asynchronously, { body: provisionBody });
  await settles(instance);
  expect((await ask("PUT", `${instance}/service_bindings/b1`, { body: bindBody })).status).toBe(504);
  expect((await ask("PUT", instance, { body: { ...provisionBody, plan_id: "none such" } })).status).toBe(409);
  const failed = () => spans().filter(({ failed: isFailed }) => isFailed);
  await expect.poll(() => new Set(failed().map(({ name }) => name))).toEqual(new Set(["bind", "grant it"]));
  const events = exporter.getFinishedSpans().flatMap((span) => span.events);
  expect(events.map(({ attributes }) => attributes?.["exception.type"])).toContain("TypeError");
  expect(JSON.stringify(events)).not.toContain("traces.test.ts");
});

test("probes, scrapes and hostile trace headers: none of them begins, joins or breaks a trace", async () => {
  const { tracer, spans } = recorder();
  const { ask } = await watchedBroker({ services: [lab().service], tracing: traces(tracer) });
  expect((await ask("GET", "/readyz")).status).toBe(200);
  expect(spans()).toEqual([]);
  for (const hostile of [
    "",
    "00-x",
    `ff-${callersTrace}-${callersSpan}-01`,
    `00-${"0".repeat(32)}-${callersSpan}-01`,
    "a".repeat(5_000),
  ])
    expect((await ask("GET", "/v2/catalog", { headers: { traceparent: hostile } })).status).toBe(200);
  expect(spans().map(({ name, parent }) => [name, parent])).toEqual(Array.from({ length: 5 }, () => ["catalog", null]));
});

test("a traceparent of a later version is read as far as this one goes", () => {
  expect(readTraceparent(`01-${callersTrace}-${callersSpan}-03-more`)).toMatchObject({
    traceId: callersTrace,
    traceFlags: 1,
  });
  expect(readTraceparent(`${traceparent}-more`)).toBeUndefined();
  expect(readTraceparent(traceparent.toUpperCase())).toBeUndefined();
});

test("a tracer that is broken breaks nothing", async () => {
  const fails = (): never => {
    throw new Error("broken");
  };
  const tracings: readonly Tracing[] = [
    { request: fails, attempt: fails },
    {
      request: () => ({ trace: "not one", run: fails, end: fails }),
      attempt: () => ({ run: fails, step: fails, end: fails }),
    },
  ];
  for (const tracing of tracings) {
    const { ask, settles } = await watchedBroker({ services: [lab().service], tracing });
    expect((await ask("PUT", instance + asynchronously, { body: provisionBody })).status).toBe(202);
    expect(await settles(instance)).toBe("succeeded");
  }
});

test("a broker that is killed in a step, and the one that goes on, write one trace", async () => {
  const folder = mkdtempSync(join(tmpdir(), "osbert-traces-"));
  const file = join(folder, "broker.db");
  const first = await start(file, "dies");
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const answer = await fetch(`${first.url}${instance}${asynchronously}`, {
    method: "PUT",
    headers: { "x-broker-api-version": "2.17", "content-type": "application/json", traceparent },
    body: JSON.stringify({ service_id: "s", plan_id: "p", organization_guid: "o", space_guid: "s" }),
  }).catch(() => undefined);
  await first.dead;
  // Its answer may have died with it; what was accepted is kept all the same.
  expect([undefined, 202]).toContain(answer?.status);
  const second = await start(file, "lives");
  await expect.poll(() => second.spans.map(({ name }) => name), { timeout: 20_000 }).toContain("provision");
  expect(first.spans.map(({ name }) => name)).toContain("one");
  expect(second.spans.map(({ name }) => name).sort()).toEqual(["provision", "query", "two"]);
  const all = [...first.spans, ...second.spans];
  expect(new Set(all.map(({ trace }) => trace))).toEqual(new Set([callersTrace]));
  const named = (spans: readonly SeenSpan[], name: string) => spans.find((span) => span.name === name);
  const attempt = second.spans.find(({ name }) => name === "provision");
  expect(named(second.spans, "two")?.parent).toBe(attempt?.id);
  expect(named(second.spans, "query")?.parent).toBe(named(second.spans, "two")?.id);
  // Both attempts hang below the request, which the first one answered.
  const request = first.spans.find(({ parent }) => parent === callersSpan);
  if (request !== undefined) expect(attempt?.parent).toBe(request.id);
  second.child.kill("SIGTERM");
});

async function start(file: string, how: "dies" | "lives") {
  const program = fileURLToPath(new URL("./traces-broker.ts", import.meta.url));
  const child: ChildProcess = spawn(
    process.execPath,
    ["--conditions=@osbert/source", "--import", "tsx", program, file, how],
    { stdio: ["ignore", "pipe", "inherit"] },
  );
  onTestFinished(() => void child.kill("SIGKILL"));
  const dead = new Promise<void>((resolve) => child.once("close", () => resolve()));
  const spans: SeenSpan[] = [];
  const url = await new Promise<string>((resolve, reject) => {
    child.once("close", () => reject(new Error("the broker ended")));
    createInterface({ input: child.stdout as NonNullable<typeof child.stdout> }).on("line", (line) => {
      const said = JSON.parse(line) as SeenSpan | { readonly url: string };
      if ("url" in said) resolve(said.url);
      else spans.push(said);
    });
  });
  return { child, url, spans, dead };
}
