import type { Command } from "commander";

const usageStatus = 2;

/**
 * A wrong command line ends with status 2, so that a script can tell it from a broker that refuses (1). Must be called before commands are
 * added: they inherit it.
 */
export function usageErrorsHaveTheirStatus(program: Command): Command {
  return program.exitOverride(({ code, exitCode }) => {
    // `commander.error` is a command's own word; everything else with a status is commander's about the command line.
    process.exit(
      exitCode !== 0 && code.startsWith("commander.") && code !== "commander.error" ? usageStatus : exitCode,
    );
  });
}
