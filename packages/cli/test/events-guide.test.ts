import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { Command } from "commander";
import { expect, test } from "vitest";
import { registerEventsCommands } from "../src/events/register-events-commands.js";
import { examplesOf } from "../src/examples-of.js";
import { osbertProgram } from "../src/main.js";
import { clusterAccess } from "../src/serve/cluster-access.js";
import { loadSettings } from "../src/settings/load.js";
import { commandOf } from "./admin/admin-run.js";
import { callsIn } from "./calls-in.js";
import { urlWithoutServer } from "./client/server-that.js";
import { systemWith } from "./system.js";

const guide = readFileSync(fileURLToPath(new URL("../../../docs/guides/operating-events.md", import.meta.url)), "utf8");
const events = osbertProgram().commands.find((command) => command.name() === "events") as Command;

test("every command about events in the guide and in the help is one that the program takes, and none is missing", async () => {
  const [, snippet = ""] = /^## Commands[\s\S]*?^```sh\n([\s\S]*?)^```$/m.exec(guide) ?? [];
  const asking = events.commands.filter((command) => !["serve", "access"].includes(command.name()));
  const examples = asking.flatMap((command) => examplesOf(command).map(({ command: line }) => line));
  const calls = [snippet, ...examples].flatMap((script) => callsIn(script));
  expect(new Set(callsIn(snippet).map(([, verb]) => verb))).toEqual(new Set(asking.map((command) => command.name())));
  const env = { OSBERT_ADMIN_URL: await urlWithoutServer(), OSBERT_ADMIN_LOGIN: "ops:password" };
  // A command line that is wrong ends with 2; these get as far as the broker, which is not there.
  for (const args of calls)
    expect(await commandOf(registerEventsCommands, args, env), args.join(" ")).toMatchObject({ status: 4 });
});

test("every command about events has a description, examples, and an explanation of each argument and option", () => {
  for (const command of events.commands) {
    expect(command.description(), command.name()).not.toBe("");
    expect(examplesOf(command).length, command.name()).toBeGreaterThan(0);
    for (const item of [...command.registeredArguments, ...command.options])
      expect(item.description, `${command.name()} ${item.name()}`).not.toBe("");
  }
});

test("the settings in the guide are settings that the program takes, with a credential for each namespace", () => {
  const [, yaml = ""] = /^```yaml\n(# events\.yaml\n[\s\S]*?)^```$/m.exec(guide) ?? [];
  const secrets = ["platform", "team-a", "admin"].map((name) => [`/run/secrets/${name}`, name]);
  const files = {
    ...Object.fromEntries(secrets),
    "/run/secrets/store-url": "postgres://host/database",
    "/run/secrets/keys": `one:${Buffer.alloc(32, 1).toString("base64")}`,
  };
  const { settings } = loadSettings("events.yaml", systemWith({ ...files, "/place/events.yaml": yaml }));
  expect(settings.credentials?.map(({ platform }) => platform)).toEqual([undefined, "team-a"]);
});

test("the cluster is that of the settings, of KUBECONFIG, of the pod, or of the home folder", () => {
  const access = (cluster: { kubeconfig?: string; context?: string }, environment: Record<string, string> = {}) =>
    clusterAccess({ kubeconfig: undefined, context: undefined, ...cluster }, { environment, home: "/home/me" });
  const pod = { KUBERNETES_SERVICE_HOST: "10.0.0.1" };
  expect(access({ kubeconfig: "/a" }, { ...pod, KUBECONFIG: "/b" })).toEqual({ kind: "kubeconfig", file: "/a" });
  expect(access({}, { ...pod, KUBECONFIG: "/b" })).toEqual({ kind: "kubeconfig", file: "/b" });
  expect(access({}, pod)).toEqual({ kind: "in cluster" });
  expect(access({ context: "c" })).toEqual({ kind: "kubeconfig", file: "/home/me/.kube/config", context: "c" });
  expect(() => access({}, { KUBECONFIG: "/a:/b" })).toThrow(/several files/);
});
