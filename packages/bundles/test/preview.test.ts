import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { testBroker } from "@osbert/broker/testing";
import { expect, onTestFinished, test } from "vitest";
import { sourceRuns } from "../src/catalog/source-runs.js";
import { type BundleSource, bundleServices, openBundleSource, openProcessRunner, parseSources } from "../src/index.js";
import { bundleFolder, folderServices } from "./folder-services.js";
import { bundleContent } from "./registry-broker.js";
import { json, serveContent } from "./registry-lab.js";

const yaml = (name: string) =>
  `osbert: 1\nname: ${name}\nversion: 1.0.0\ndescription: Notes\ncommand: ["true"]\nplans: { small: { description: Small } }\n`;

async function write(bundles: string, ...names: readonly string[]): Promise<void> {
  for (const name of names) {
    await mkdir(join(bundles, name));
    await writeFile(join(bundles, name, "osbert.yaml"), yaml(name));
  }
}

function sourceOf(path: string, settings: object): Promise<BundleSource> {
  return opened({ name: "folder", type: "folder", path, ...settings }, path);
}

async function opened(settings: object, path: string): Promise<BundleSource> {
  const parsed = parseSources({ sources: [{ interval: "10d", ...settings }] });
  if (parsed.kind === "invalid") throw new Error(JSON.stringify(parsed.faults));
  const [config] = parsed.sources;
  if (config === undefined) throw new Error("no source");
  const nothing = { list: async () => [], read: async () => null, fetch: async () => undefined };
  const ports = { readFile: (file: string) => readFile(file, "utf8"), environment: () => undefined, folder: path };
  return openBundleSource(config, { ...ports, pushed: nothing });
}

test("F5-21, F5-85: a preview tells what other settings would add, take away and hold, and changes nothing", async () => {
  const bundles = await bundleFolder();
  await write(bundles, "a", "b", "c", "d", "e");
  const services = await folderServices(bundles, { guarded: true });
  const flow = await testBroker({ services, stderr: "nothing" });
  onTestFinished(() => flow.stop());
  const names = async () =>
    ((await flow.request("GET", "/v2/catalog")).body?.services ?? []).map(({ name }: { name: string }) => name).sort();
  await expect.poll(names).toEqual(["a", "b", "c", "d", "e"]);
  const key = "bundles.source.folder";
  const seq = async () => (await flow.broker.journal.read(key))?.seq;
  const before = await seq();
  await write(bundles, "f");

  const narrower = await services.preview([await sourceOf(bundles, { default: "deny", allow: ["a"] })]);
  expect(narrower).toMatchObject([
    {
      source: "folder",
      settings: "changed",
      completeness: "complete",
      held: { count: 4, of: 5, specs: ["b", "c", "d", "e"] },
    },
  ]);
  expect(narrower[0]?.events.map(({ code }) => code)).toContain("guard.tripped");

  const fewer = await services.preview([await sourceOf(bundles, { default: "allow", deny: ["e"] })]);
  const told = (code: string) => fewer[0]?.events.filter((event) => event.code === code).map(({ spec }) => spec);
  expect([told("spec.added"), told("spec.missing"), fewer[0]?.held]).toEqual([["f"], ["e"], null]);

  const others = await bundleFolder();
  await write(others, "z");
  const replaced = await services.preview([await sourceOf(others, { name: "other" })]);
  expect(replaced.map(({ source, settings }) => [source, settings])).toEqual([
    ["other", "new"],
    ["folder", "gone"],
  ]);
  expect(replaced[0]?.events).toMatchObject([{ code: "spec.added", spec: "z" }]);
  expect(replaced[1]).toMatchObject({ held: { count: 5, of: 5 } });
  expect(replaced[1]?.events.map(({ code }) => code)).toEqual(["source.draining", "guard.tripped"]);

  const away = await services.preview([await sourceOf(join(bundles, "nowhere"), {})]);
  expect(away[0]).toMatchObject({ completeness: "failed", held: null, error: expect.any(String) });

  expect(await seq()).toBe(before);
  expect(await names()).toEqual(["a", "b", "c", "d", "e"]);
  expect([...services.sources().keys()]).toEqual(["folder"]);
});

test("a reading and a preview tell of repositories without the tag that is read", async () => {
  const work = await bundleFolder();
  const registry = await serveContent([bundleContent("notes", "1.0.0")], (request, response) => {
    if (!request.url?.includes("/untagged/")) return false;
    json(response, { errors: [{ code: "MANIFEST_UNKNOWN" }] }, {}, 404);
    return true;
  });
  const repositories = ["notes", "untagged/lists", "untagged/maps"];
  const settings = { name: "images", type: "images", url: registry.url, repositories };
  const services = bundleServices({
    sources: [await opened(settings, work)],
    runner: (files) => openProcessRunner({ directory: join(work, "jobs"), files, unsandboxed: true }),
    mirror: join(work, "mirror"),
  });
  const flow = await testBroker({ services, stderr: "nothing" });
  onTestFinished(() => flow.stop());
  const told = async () => {
    const { items } = await sourceRuns(flow.broker.journal, "bundles.source.images", {});
    return items.flatMap(({ events }) => events.filter(({ code }) => code === "source.untagged"));
  };
  const why = "2 repositories without the tag latest: untagged/lists, untagged/maps";
  await expect.poll(told).toMatchObject([{ spec: null, why }]);
  const [same] = await services.preview([await opened(settings, work)]);
  expect(same?.events).toEqual([]);
  const [other] = await services.preview([await opened({ ...settings, name: "other" }, work)]);
  expect(other?.events).toContainEqual({ code: "source.untagged", spec: null, serviceId: null, why });
});
