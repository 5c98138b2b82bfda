import type { Command } from "commander";
import { processSurroundings, type Surroundings } from "../client/surroundings.js";
import { registerBindingCommands } from "./binding-commands.js";
import { registerBrokerCommands } from "./broker-commands.js";
import { registerCampaignCommands } from "./campaign-commands.js";
import { registerControlCommands } from "./control-commands.js";
import { registerFreezeCommands } from "./freeze-commands.js";
import { registerInstanceCommands } from "./instance-commands.js";
import { registerJournal } from "./journal-command.js";
import { registerLockCommands } from "./lock-commands.js";
import { registerLookCommands } from "./look-commands.js";
import { registerOrphanCommands } from "./orphan-commands.js";
import { platformGroup } from "./platform-group.js";
import { registerPolicy } from "./policy-command.js";
import { registerQuotaCommands } from "./quota-commands.js";
import { registerRotations } from "./rotation-commands.js";
import { registerTargetCommands } from "./target-commands.js";
import { registerVisibilityCommands } from "./visibility-commands.js";

/** `osbert platform …`: for those who use a platform, and those who care for its brokers. */
export function registerPlatformCommands(program: Command, surroundings: Surroundings = processSurroundings()): void {
  const platform = platformGroup(program);
  registerTargetCommands(platform, surroundings);
  registerLookCommands(platform, surroundings);
  registerInstanceCommands(platform, surroundings);
  registerBindingCommands(platform, surroundings);
  registerControlCommands(platform, surroundings);
  registerLockCommands(platform, surroundings);
  registerPolicy(platform, surroundings);
  registerJournal(platform, surroundings);
  registerBrokerCommands(platform, surroundings);
  registerOrphanCommands(platform, surroundings);
  registerRotations(platform, surroundings);
  registerCampaignCommands(platform, surroundings);
  registerFreezeCommands(platform, surroundings);
  registerQuotaCommands(platform, surroundings);
  registerVisibilityCommands(platform, surroundings);
}
