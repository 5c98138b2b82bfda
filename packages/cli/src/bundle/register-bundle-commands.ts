import type { Command } from "commander";
import { registerBundleBuild } from "./build-command.js";
import { registerBundleLint } from "./lint-command.js";
import { registerBundleNew } from "./new-command.js";
import { registerBundlePush } from "./push-command.js";
import { registerBundleRun } from "./run-action-command.js";
import { registerBundleTest } from "./test-command.js";

/** `osbert bundle`: the commands for whoever writes a bundle, in the order of the work. */
export function registerBundleCommands(program: Command): void {
  const bundle = program
    .command("bundle")
    .helpGroup("Commands for authors of bundles:")
    .summary("write, check, run and push a bundle")
    .description(
      "Bundles are services that a program provides: a folder with osbert.yaml, or an artifact in a registry.",
    );
  registerBundleNew(bundle);
  registerBundleLint(bundle);
  registerBundleRun(bundle);
  registerBundleTest(bundle);
  registerBundleBuild(bundle);
  registerBundlePush(bundle);
}
