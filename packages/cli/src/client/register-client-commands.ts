import type { Command } from "commander";
import { registerBind } from "./bind.js";
import { registerCatalog } from "./catalog.js";
import { registerDeprovision } from "./deprovision.js";
import { registerFetch } from "./fetch.js";
import { registerLastOperation } from "./last-operation.js";
import { registerProvision } from "./provision.js";
import { processSurroundings, type Surroundings } from "./surroundings.js";
import { registerUnbind } from "./unbind.js";
import { registerUpdate } from "./update.js";

/** The commands for any Open Service Broker. They speak to it as a platform does and keep nothing on this machine. */
export function registerClientCommands(program: Command, surroundings: Surroundings = processSurroundings()): void {
  const before = program.commands.length;
  registerCatalog(program, surroundings);
  registerProvision(program, surroundings);
  registerUpdate(program, surroundings);
  registerBind(program, surroundings);
  registerUnbind(program, surroundings);
  registerDeprovision(program, surroundings);
  registerFetch(program, surroundings);
  registerLastOperation(program, surroundings);
  for (const command of program.commands.slice(before)) command.helpGroup("Commands for any broker:");
}
