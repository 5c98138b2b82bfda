import type { Command } from "commander";
import { processSurroundings, type Surroundings } from "../client/surroundings.js";
import { registerBulk } from "./bulk.js";
import { registerChangeCommands } from "./change-commands.js";
import { registerReadCommands } from "./read-commands.js";

/** `osbert admin …`: look into a running broker and mend it, through its admin API. */
export function registerAdminCommands(program: Command, surroundings: Surroundings = processSurroundings()): void {
  const admin = program
    .command("admin")
    .summary("look into a broker and mend it")
    .description("Commands for those who operate a broker. They need a credential of the broker's admin API.")
    .helpGroup("Commands for operators:");
  registerReadCommands(admin, surroundings);
  registerChangeCommands(admin, surroundings);
  registerBulk(admin, surroundings);
}
