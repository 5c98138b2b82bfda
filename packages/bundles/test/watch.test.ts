import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createHandler } from "@osbert/broker/http";
import { metrics } from "@osbert/broker/observe";
import { testBroker } from "@osbert/broker/testing";
import { expect, onTestFinished, test } from "vitest";
import { SourceReadings } from "../src/catalog/source-readings.js";
import { type Observation, SourceError, type StoredSource, withdraw } from "../src/index.js";
import { newSource } from "../src/reconcile/records.js";
import { type BundleEvent, bundleMetricDefinitions, bundleMetrics, logBundles } from "../src/watch/index.js";
import { bundleFolder, folderServices } from "./folder-services.js";

const yaml = (name: string) => `
osbert: 1
name: ${name}
version: 1.0.0
description: Notes in a file
bindable: true
command: [sh, ./run.sh]
plans:
  small: { description: A small one, free: true }
`;

async function folderOf(...names: readonly string[]): Promise<string> {
  const bundles = await bundleFolder();
  for (const name of names) {
    await mkdir(join(bundles, name));
    await writeFile(join(bundles, name, "osbert.yaml"), yaml(name));
    await writeFile(join(bundles, name, "run.sh"), '[ "$1" = bind ] && exit 3; exit 0');
  }
  return bundles;
}

interface LoggedLine {
  readonly level: string;
  readonly message: string;
  readonly [fact: string]: unknown;
}

/** A broker with bundles in a folder, with all who watch it. */
async function start({ guarded = false, bundles = "" }) {
  const figures = metrics({ process: false });
  const lines: LoggedLine[] = [];
  const level = (name: string) => (fields: object, message: string) =>
    void lines.push({ level: name, message, ...fields });
  const logger = { debug: level("debug"), info: level("info"), warn: level("warn"), error: level("error") };
  const events: BundleEvent[] = [];
  const services = await folderServices(bundles, {
    guarded,
    observe: [bundleMetrics(figures.registry), logBundles(logger), (event) => void events.push(event)],
  });
  const admin = { credentials: [{ username: "ann", password: "the-admin-s3cret" }] };
  const flow = await testBroker({
    services,
    observe: figures.observe,
    stderr: "nothing",
    wire: (broker, options) => createHandler(broker, { ...options, admin, metrics: figures }),
  });
  onTestFinished(() => flow.stop());
  const ann = { actor: { type: "operator", subject: "ann" } } as const;
  const refresh = () => services.refresh("folder", ann);
  const names = async () =>
    ((await flow.request("GET", "/v2/catalog")).body?.services ?? []).map(({ name }: { name: string }) => name).sort();
  const figure = async (series: string) => {
    const text = await figures.registry.metrics();
    const line = text.split("\n").find((each) => each.startsWith(`${series} `));
    return line === undefined ? undefined : Number(line.slice(series.length + 1));
  };
  return { flow, lines, events, services, refresh, names, figure, figures };
}

test("F5-86: known readings, decisions and jobs give known figures", async () => {
  const bundles = await folderOf("a", "b", "c", "d", "e");
  const { flow, refresh, names, figure, figures } = await start({ guarded: true, bundles });
  await expect.poll(names).toEqual(["a", "b", "c", "d", "e"]);
  expect(await figure('osbert_source_specs{source="folder",state="active"}')).toBe(5);
  expect(await figure('osbert_source_verdicts_total{source="folder",verdict="read"}')).toBe(5);
  expect(await figure('osbert_source_events_total{source="folder",code="spec.added"}')).toBe(5);
  expect(await figure('osbert_source_failures{source="folder"}')).toBe(0);
  expect(await figure('osbert_source_failure_ratio{source="folder"}')).toBe(0);
  expect(await figure('osbert_source_guard_held{source="folder"}')).toBe(0);
  expect(await figure('osbert_source_snapshot_timestamp_seconds{source="folder"}')).toBeGreaterThan(1_600_000_000);
  const complete = await figure('osbert_source_last_complete_timestamp_seconds{source="folder"}');
  expect(complete).toBeGreaterThan(1_600_000_000);

  // A reading that changes nothing writes nothing, and is counted all the same.
  const readings = () =>
    figure('osbert_source_reading_duration_seconds_count{source="folder",completeness="complete"}');
  const before = (await readings()) ?? 0;
  await flow.clock.advance(60_000);
  await refresh();
  await expect.poll(readings).toBe(before + 1);
  expect(await figure('osbert_source_last_complete_timestamp_seconds{source="folder"}')).toBeGreaterThan(complete ?? 0);
  expect(await figure('osbert_source_verdicts_total{source="folder",verdict="same"}')).toBeGreaterThanOrEqual(5);

  expect((await flow.provision("i1", { service: "a", acceptsIncomplete: false })).status).toBe(201);
  expect((await flow.bind("i1", "b1", { service: "a", acceptsIncomplete: false })).status).toBe(500);
  expect(await figure('osbert_bundle_jobs_total{action="provision",end="done",cause="exit"}')).toBe(1);
  expect(await figure('osbert_bundle_jobs_total{action="bind",end="failed",cause="exit"}')).toBe(1);
  expect(await figure('osbert_bundle_jobs_running{action="provision"}')).toBe(0);

  for (const name of ["a", "b", "c", "d"]) await rm(join(bundles, name), { recursive: true });
  await refresh();
  await expect.poll(() => figure('osbert_source_guard_held{source="folder"}')).toBe(4);
  expect(await figure('osbert_source_events_total{source="folder",code="guard.tripped"}')).toBe(1);

  // Neither a spec nor an image is a label.
  const text = await figures.registry.metrics();
  const labels = new Set([...text.matchAll(/^osbert_(?:source|bundle)_\w+\{([^}]*)\}/gm)].map(([, found]) => found));
  for (const each of labels) expect(each).not.toMatch(/"[a-e]"/);
  for (const { name } of Object.values(bundleMetricDefinitions)) expect(text).toContain(`# TYPE ${name} `);
});

test("F5-86: each event is one line of the log with its code, louder where it asks for a person, and told once", async () => {
  const bundles = await folderOf("good");
  await mkdir(join(bundles, "bad"));
  await writeFile(join(bundles, "bad", "osbert.yaml"), "osbert: 1\nname: bad\n");
  const { lines, refresh, names, services } = await start({ bundles });
  await expect.poll(names).toEqual(["good"]);
  const about = (spec: string) => lines.filter((line) => line.spec === spec || line.bundle === spec);
  await expect.poll(() => about("bad")).toHaveLength(1);
  expect(about("bad")).toMatchObject([{ level: "warn", message: "bundles: spec.rejected", source: "folder" }]);
  expect(about("good")).toMatchObject([{ level: "info", code: "spec.added", by: "a reading" }]);
  const ann = { actor: { type: "operator", subject: "ann" }, why: "it leaks\nnotes" } as const;
  await services.decide("folder", (stored, decider) => withdraw(stored, "good", decider), ann);
  expect(about("good").at(-1)).toMatchObject({ level: "info", code: "spec.withdrawn", by: "ann" });
  // What is as it was is no news.
  const before = lines.length;
  await refresh();
  await expect.poll(async () => (await services.collectable()).size).toBe(0);
  expect(lines.slice(before).filter(({ message }) => message.includes("bundles: "))).toEqual([]);
});

test("of thousands of events of one commit the log has some, and says how many more there are", () => {
  const lines: LoggedLine[] = [];
  const write = (level: string) => (fields: object, message: string) => void lines.push({ level, message, ...fields });
  const observe = logBundles({
    debug: write("debug"),
    info: write("info"),
    warn: write("warn"),
    error: write("error"),
  });
  const event = { code: "spec.added", serviceId: null, why: "x".repeat(5_000) } as const;
  const events = Array.from({ length: 2_000 }, (_, index) => ({ ...event, spec: `s${index}` }));
  observe({ kind: "source changed", source: "big", by: "a reading", events });
  expect(lines).toHaveLength(51);
  expect(lines.at(-1)).toMatchObject({ source: "big", events: 1_950 });
  expect(Math.max(...lines.map((line) => JSON.stringify(line).length))).toBeLessThan(1_000);
});

test("a first reading that takes long tells how far it is, in the log and to whoever asks", () => {
  let now = 0;
  const readings = new SourceReadings(() => now);
  expect(readings.progress("k", { done: 10, of: null })).toBe(false);
  now = 4_999;
  expect(readings.progress("k", { done: 0, of: 500 })).toBe(false);
  now = 5_000;
  expect(readings.progress("k", { done: 120, of: 500 })).toBe(true);
  expect(readings.progress("k", { done: 121, of: 500 })).toBe(false);
  expect(readings.reading("k")).toEqual({ done: 121, of: 500, since: 0 });
  readings.ended("k");
  expect(readings.reading("k")).toBeNull();
  const lines: object[] = [];
  const write = (fields: object, message: string) => void lines.push({ message, ...fields });
  const observe = logBundles({ debug: write, info: write, warn: write, error: write });
  observe({ kind: "source reading", source: "big", done: 120, of: 500 });
  observe({ kind: "source reading", source: "big", done: 7, of: null });
  expect(lines).toEqual([
    { message: "source of bundles is being read", source: "big", done: 120, of: 500 },
    { message: "source of bundles is being listed", source: "big", done: 7 },
  ]);
});

test("a change that a process cannot take in is a warning in its log, with why", () => {
  const lines: LoggedLine[] = [];
  const write = (level: string) => (fields: object, message: string) => void lines.push({ level, message, ...fields });
  const logger = { debug: write("debug"), info: write("info"), warn: write("warn"), error: write("error") };
  logBundles(logger)({ kind: "source not taken in", source: "hub", why: "the store does not answer" });
  expect(lines).toMatchObject([{ level: "warn", source: "hub", why: "the store does not answer" }]);
});

test("F5-6: readings that change nothing are not written, and count in the failure ratio all the same", async () => {
  let outcome: "complete" | "failed" = "complete";
  const bundles = await bundleFolder();
  const seen: string[] = [];
  const services = await folderServices(bundles, {
    observe: (event) => {
      if (event.kind === "source read") seen.push(event.observation.completeness.charAt(0));
    },
    change: (source) => ({
      ...source,
      observe: async (stored: StoredSource, request) => {
        const observation: Observation = await source.observe(stored, request);
        return outcome === "complete"
          ? observation
          : { ...observation, completeness: "failed", error: new SourceError("unreachable", "folder").message };
      },
    }),
  });
  const flow = await testBroker({ services, stderr: "nothing" });
  onTestFinished(() => flow.stop());
  const ann = { actor: { type: "operator", subject: "ann" } } as const;
  const read = async (times: number) => {
    for (let time = 0; time < times; time++) {
      const before = seen.length;
      await services.refresh("folder", ann);
      await expect.poll(() => seen.length).toBeGreaterThan(before);
    }
  };
  await read(6);
  outcome = "failed";
  await read(1);
  const stored = () => services.sources().get("folder")?.data.health.recent ?? "";
  await expect.poll(stored).toMatch(/f$/);
  // All of them, and not only those that were worth a commit.
  await expect.poll(stored).toBe(seen.join(""));
});

test("what others have stored of a source's health counts more than what was seen here before", () => {
  const readings = new SourceReadings(() => 0);
  const data = newSource("s", "g");
  const here = { ...data.health, recent: "ccc" };
  readings.saw("k", data.health, here);
  expect(readings.upToDate("k", { data, specs: new Map() }).data.health).toBe(here);
  const other = { ...data, health: { ...data.health, recent: "f" } };
  expect(readings.upToDate("k", { data: other, specs: new Map() }).data).toBe(other);
});
