import type { Command } from "commander";
import { processSurroundings, type Surroundings } from "../client/surroundings.js";
import { registerApplicationCommands } from "./application-commands.js";
import { eventsGroup } from "./events-group.js";
import { registerFlowCommands } from "./flow-commands.js";

/** `osbert events …`: look at the flows of a running broker and decide about its applications, through its admin API. */
export function registerEventsCommands(program: Command, surroundings: Surroundings = processSurroundings()): void {
  const events = eventsGroup(program);
  registerFlowCommands(events, surroundings);
  registerApplicationCommands(events, surroundings);
}
