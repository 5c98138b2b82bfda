import type { Command } from "commander";

/** `osbert platform`: the group of all commands that run a platform or talk to one. Whoever comes first makes it. */
export function platformGroup(program: Command): Command {
  return (
    program.commands.find((command) => command.name() === "platform") ??
    program
      .command("platform")
      .summary("run a platform, or use one")
      .description("Commands for those who want instances and bindings from a platform, and for those who run one.")
      .helpGroup("Commands for a platform:")
  );
}
