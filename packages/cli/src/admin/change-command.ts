import type { Command } from "commander";
import { type Example, withExamples } from "../examples-of.js";
import { type ReasonChoice, withAdminOptions, withPlatformOption, withReason } from "./admin-command-options.js";
import type { AdminOptions } from "./admin-session.js";

/** What every command that changes something is given. */
export type ChangeOptions = AdminOptions & ReasonChoice;

/** A command that changes something through the admin API, but for what it does. */
export interface ChangeCommand {
  readonly name: string;
  readonly summary: string;
  readonly description: string;
  /** What it is about, in order: `["<instance>", "the instance's id"]`. */
  readonly arguments?: readonly (readonly [name: string, description: string])[];
  /** Adds options of its own, which stand before those that all have. */
  readonly options?: (command: Command) => Command;
  /** Whether it is about an instance, which is some platform's. Default false. */
  readonly ofInstance?: boolean;
  /** What the help says of where the reason can be read. Empty: no command shows it. Default: in the journal. */
  readonly whereReasonStands?: string;
  readonly examples: readonly Example[];
}

/** Registers a command that asks for a reason: it leaves an entry with that and the operator's name. */
export function changeCommand(parent: Command, change: ChangeCommand): Command {
  const command = parent.command(change.name).summary(change.summary).description(change.description);
  for (const [name, description] of change.arguments ?? []) command.argument(name, description);
  change.options?.(command);
  if (change.ofInstance) withPlatformOption(command);
  return withExamples(withReason(withAdminOptions(command), change.whereReasonStands), change.examples);
}
