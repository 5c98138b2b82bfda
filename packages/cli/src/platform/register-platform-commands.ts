import type { Command } from "commander";
import { processSurroundings, type Surroundings } from "../client/surroundings.js";
import { registerBindingCommands } from "./binding-commands.js";
import { registerBrokerCommands } from "./broker-commands.js";
import { registerControlCommands } from "./control-commands.js";
import { registerInstanceCommands } from "./instance-commands.js";
import { registerJournal } from "./journal-command.js";
import { registerOrphanCommands } from "./orphan-commands.js";
import { platformGroup } from "./platform-group.js";
import { registerTargetCommands } from "./target-commands.js";

/** `osbert platform …`: for those who use a platform, and those who care for its brokers. */
export function registerPlatformCommands(program: Command, surroundings: Surroundings = processSurroundings()): void {
  const platform = platformGroup(program);
  registerTargetCommands(platform, surroundings);
  registerInstanceCommands(platform, surroundings);
  registerBindingCommands(platform, surroundings);
  registerControlCommands(platform, surroundings);
  registerJournal(platform, surroundings);
  registerBrokerCommands(platform, surroundings);
  registerOrphanCommands(platform, surroundings);
}
