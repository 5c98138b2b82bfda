import { describe, expect, test } from "vitest";
import { bundleSecrets } from "../src/settings/bundle-secrets.js";
import { bundleSources } from "../src/settings/bundle-sources.js";
import { changesBetween } from "../src/settings/changes.js";
import { inForce } from "../src/settings/in-force.js";
import { loadSettings } from "../src/settings/load.js";
import { table } from "../src/settings/table.js";
import { systemWith } from "./system.js";

function load(yaml: string) {
  return loadSettings("osbert.yaml", systemWith({ "/place/osbert.yaml": yaml }));
}

function faults(yaml: string): readonly string[] {
  try {
    load(yaml);
  } catch (error) {
    return (error as Error).message.split("\n");
  }
  return [];
}

/** The block of the Ansible Service Broker, as an operator has it there. */
const registry = `  registry:
    - type: dockerhub
      name: dh
      org: example
      user: dh-user
      pass: hunter2
      tag:
        default: latest
        named:
          - hello-apb: [v1.0, v2.0]
      white_list: [".*-apb$"]
      black_list: [".*bad-apb$"]
`;

describe("sources of bundles in the settings", () => {
  test("both forms are read, and a module is not needed beside them", () => {
    const { settings, places } = load(
      `bundles:\n${registry}  sources:\n    - { name: ours, type: folder, path: bundles }\n`,
    );
    const { sources = [], faults: wrong, advice } = bundleSources(settings, places);
    expect([wrong, advice]).toEqual([[], []]);
    expect(sources.map(({ key, config, place }) => [key, config.name, place])).toEqual([
      ["bundles.registry[0]", "dh", expect.objectContaining({ line: 3 })],
      ["bundles.sources[0]", "ours", expect.objectContaining({ line: 15 })],
    ]);
    expect(settings.module).toBeUndefined();
  });

  test("without sources a module is needed, also if there are other settings of bundles", () => {
    expect(faults("bundles: { network: true }\n")).toEqual([
      "module: is missing; write e.g. module: services.ts, or name sources under bundles in osbert.yaml",
    ]);
    expect(faults("bundles: { sources: [] }\n")).toEqual([]);
  });

  test("F5-25: all that is wrong is told at once, each with its line", () => {
    const yaml = `bundles:
  network: perhaps
  limits: { time: 3 }
  registry:
    - { name: old, type: galaxy }
  sources:
    - name: ours
      type: folder
      paht: bundles
    - name: Other One
      type: images
      url: https://registry.example
    - name: ours
      type: folder
      path: more
    - 3
`;
    expect(faults(yaml)).toEqual([
      'osbert.yaml:2:12 bundles.network: must be true or false, not "perhaps"; write e.g. network: false',
      expect.stringMatching(/^osbert\.yaml:3:19 bundles\.limits\.time: must be a number with a unit/),
      expect.stringMatching(/^osbert\.yaml:5:\d+ bundles\.registry\[0\]\.type: galaxy .* is gone/),
      expect.stringMatching(/^osbert\.yaml:7:7 bundles\.sources\[0\]\.path: is missing/),
      expect.stringMatching(/^osbert\.yaml:9:7 bundles\.sources\[0\]\.paht: is not a setting; did you mean path\?/),
      expect.stringMatching(/^osbert\.yaml:10:7 bundles\.sources\[1\]\.name: must be 1 to 63 lower-case/),
      expect.stringMatching(/^osbert\.yaml:10:7 bundles\.sources\[1\]\.repositories: is missing/),
      expect.stringMatching(/^osbert\.yaml:16:7 bundles\.sources\[3\]: must be a group of settings/),
    ]);
    expect(faults("bundles: { sources: here }\n")).toEqual([
      expect.stringMatching(/^osbert\.yaml:1:21 bundles\.sources: must be a list; write e\.g\. sources: /),
    ]);
  });

  test("no secret of them is shown, neither where they are right nor where they are wrong", () => {
    const { settings, places } = load(`bundles:\n${registry}`);
    const shown = inForce(table, settings, places).map(({ key, value, from }) => ({ key, value, from }));
    expect(shown).toContainEqual({
      key: "bundles.registry",
      value: [{ name: "dh", type: "dockerhub" }],
      from: "osbert.yaml:3:5",
    });
    expect(JSON.stringify(shown)).not.toContain("hunter2");
    const wrong = registry
      .replace("dockerhub", "apiv2")
      .replace("org: example", "url: https://u:hunter2@registry.example");
    const told = faults(`bundles:\n${wrong.replace("pass: hunter2", "pass: [hunter2]")}`);
    expect(told.length).toBeGreaterThan(1);
    expect(told.join()).not.toContain("hunter2");
  });

  test("changed sources are applied, also if only a secret changed; beside them the catalog needs a restart, and so does the first of them", () => {
    const before = load(`bundles:\n${registry}`);
    const after = load(
      `bundles:\n${registry.replace("hunter2", "hunter3")}log: { level: warn }\ncatalog: { schemaDraft: as-written }\n`,
    );
    expect(changesBetween(before, after)).toEqual({
      live: ["bundles.registry", "log.level"],
      needRestart: ["catalog.schemaDraft"],
    });
    const [without, first] = [load("module: s.ts\n"), load(`module: s.ts\nbundles:\n${registry}`)];
    expect(changesBetween(without, first)).toEqual({ live: [], needRestart: ["bundles.registry"] });
    expect(changesBetween(first, without)).toEqual({ live: [], needRestart: ["bundles.registry"] });
  });

  const secrets = (values: string, services = '["postgres-.*"]') => `bundles:
  sources: [{ name: ours, type: folder, path: bundles }]
  secrets:
    server:
      sources: [ours]
      services: ${services}
      values: ${values}
`;

  test("secrets for bundles are shown nowhere, and a reload gives out others", () => {
    const before = load(secrets("{ user: admin, password: hunter2 }"));
    const [server] = bundleSecrets(before.settings);
    expect(server?.values.get("password")?.reveal()).toBe("hunter2");
    expect(server).toMatchObject({ name: "server", sources: ["ours"], services: ["postgres-.*"] });
    expect(JSON.stringify(inForce(table, before.settings, before.places).map(({ value }) => value))).not.toContain(
      "hunter2",
    );
    const after = load(secrets("{ user: admin, password: hunter3 }"));
    expect(changesBetween(before, after)).toEqual({
      live: ["bundles.secrets.server.values.password"],
      needRestart: [],
    });
  });

  test("F5-83: a secret that is not there, or is wrong, is a fault with its line: nothing is offered without it by accident", () => {
    expect(faults(secrets("{ password: { env: NOT_THERE } }"))).toEqual([
      expect.stringMatching(/^osbert\.yaml:7:\d+ bundles\.secrets\.server\.values\.password: .*NOT_THERE is not set$/),
    ]);
    expect(faults(secrets("{ password: { file: /none } }"))).toEqual([
      expect.stringMatching(/^osbert\.yaml:7:\d+ bundles\.secrets\.server\.values\.password: the file \/none /),
    ]);
    expect(faults(secrets("{ password: hunter2 }", '["postgres", "("]'))).toEqual([
      expect.stringMatching(/^osbert\.yaml:6:\d+ bundles\.secrets\.server\.services\[1\]: is no pattern of RE2/),
    ]);
    expect(faults(secrets("{ password: hunter2 }").replace("[ours]", "[ours, uors]"))).toEqual([
      expect.stringMatching(/secrets\.server\.sources\[1\]: is none of the sources of bundles; did you mean ours\?$/),
    ]);
    expect(faults(secrets("{ ../password: hunter2 }"))).toEqual([expect.stringMatching(/must be called by letters/)]);
    expect(faults("bundles: { sources: [], secrets: { server: { values: { a: b } } } }\n")).toEqual([
      expect.stringMatching(/bundles\.secrets\.server\.sources: is missing/),
      expect.stringMatching(/bundles\.secrets\.server\.services: is missing/),
    ]);
  });

  test("what bundles may do has the safe defaults", () => {
    expect(load("bundles: { sources: [] }\n").settings.bundles).toMatchObject({
      unsandboxed: false,
      network: false,
      limits: { time: 3_600_000, cpu: 3_600_000, memory: 1_024, processes: 256, output: 16 },
    });
  });
});
