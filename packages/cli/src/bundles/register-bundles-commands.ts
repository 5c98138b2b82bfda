import type { Command } from "commander";
import { processSurroundings, type Surroundings } from "../client/surroundings.js";
import { registerDecisions } from "./decision-commands.js";
import { registerPushCommands } from "./push-commands.js";
import { registerReadCommands } from "./read-commands.js";
import { registerReadTag } from "./read-tag-command.js";

/** `osbert bundles …`: look at the sources of bundles of a running broker and decide about them, through its admin API. */
export function registerBundlesCommands(program: Command, surroundings: Surroundings = processSurroundings()): void {
  const bundles = program
    .command("bundles")
    .summary("see and decide what a broker offers from registries")
    .description(
      "Commands for those who operate a broker whose services are bundles. They need a credential of the broker's admin API.",
    )
    .helpGroup("Commands for operators:");
  registerReadCommands(bundles, surroundings);
  registerReadTag(bundles, surroundings);
  registerDecisions(bundles, surroundings);
  registerPushCommands(bundles, surroundings);
}
