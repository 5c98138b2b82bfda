import type { Command } from "commander";

/** `osbert events`: the group of all commands about event flow. Whoever comes first makes it. */
export function eventsGroup(program: Command): Command {
  return (
    program.commands.find((command) => command.name() === "events") ??
    program
      .command("events")
      .summary("run a broker for a cluster's events, or see how they flow")
      .description(
        "Commands for those who run or operate a broker whose services are the applications of a Kubernetes cluster. All but `serve` and `access` need a credential of the broker's admin API.",
      )
      .helpGroup("Commands for operators:")
  );
}
