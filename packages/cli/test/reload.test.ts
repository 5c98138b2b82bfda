import { pino } from "pino";
import { expect, test } from "vitest";
import { reloader } from "../src/serve/reload.js";
import { changesBetween } from "../src/settings/changes.js";
import { loadSettings } from "../src/settings/load.js";
import { systemWith } from "./system.js";

function loaded(yaml: string) {
  return loadSettings("o.yaml", systemWith({ "/place/o.yaml": `module: s.ts\n${yaml}` }));
}

test("what a reload applies is told apart from what needs a restart", () => {
  const before = loaded("log: { level: info }\nlisten: { port: 1 }\ncredentials: [{ username: a, password: one }]\n");
  const after = loaded(
    "log: { level: warn, format: json }\nlisten: { port: 2 }\ncredentials: [{ username: a, password: two }]\ncatalog: { services: { s: { tags: [a] } } }\n",
  );
  expect(changesBetween(before, after)).toEqual({
    live: ["credentials[0].password", "log.level", "catalog.services.s.tags"],
    needRestart: ["listen.port", "log.format"],
  });
  expect(changesBetween(after, after)).toEqual({ live: [], needRestart: [] });
});

function setUp(first: string) {
  const lines: string[] = [];
  const log = pino({ base: null }, { write: (line) => lines.push((JSON.parse(line) as { msg: string }).msg) });
  const applied: string[] = [];
  const state: { yaml: string; refuse: string | null } = { yaml: first, refuse: null };
  const apply = async (next: ReturnType<typeof loaded>) => {
    await Promise.resolve();
    if (state.refuse !== null) throw new Error(state.refuse);
    applied.push(next.settings.catalog.services.get("s")?.description ?? "");
  };
  const reloading = reloader({
    started: loaded(first),
    load: () => loaded(state.yaml),
    changes: changesBetween,
    apply,
    log,
  });
  return { lines, applied, state, reloading };
}

const described = (text: string) => `catalog: { services: { s: { description: ${text} } } }\n`;

test("a broker that refuses later, with a rejected promise, is a refused reload", async () => {
  const { lines, applied, state, reloading } = setUp(described("one"));
  Object.assign(state, { yaml: described("two"), refuse: "plan small has 3 instances" });
  await reloading.request("SIGHUP");
  expect(lines).toEqual(["not reloaded (SIGHUP), everything stays as it was: plan small has 3 instances"]);
  // The same settings are tried again: they are not taken for those in force.
  state.refuse = null;
  await reloading.request("SIGHUP");
  expect(applied).toEqual(["two"]);
});

test("a reload that is asked for during another one follows it, once", async () => {
  const { lines, applied, state, reloading } = setUp(described("one"));
  state.yaml = described("two");
  const first = reloading.request("first");
  state.yaml = described("three");
  await Promise.all([first, reloading.request("second"), reloading.request("third")]);
  expect(applied).toEqual(["two", "three"]);
  expect(lines).toHaveLength(2);
});

test("what needs a restart is named at every reload until there was one", async () => {
  const { lines, applied, state, reloading } = setUp("listen: { port: 1 }\n");
  state.yaml = "listen: { port: 2 }\n";
  await reloading.request("a");
  await reloading.request("b");
  const warning = "only a restart changes listen.port; until then the old values hold";
  expect(lines).toEqual(["reloaded (a): nothing to change", warning, "reloaded (b): nothing to change", warning]);
  expect(applied).toEqual([]);
});

test("the files of a refused reload are known, so that a change of them is seen: they will be mended there", async () => {
  const { state, reloading } = setUp(described("one"));
  state.yaml = "catalog: { services: { s: { image: late.png } } }\n";
  await reloading.request("a");
  expect([...reloading.files.keys()]).toEqual(["/place/o.yaml", "/place/late.png"]);
  Object.assign(state, { yaml: described("two"), refuse: "no" });
  await reloading.request("b");
  expect([...reloading.files.keys()]).toEqual(["/place/o.yaml"]);
});
