import type { Command } from "commander";
import { usualFile } from "../settings/load.js";
import { telling } from "../told.js";
import { run } from "./run.js";

/** Adds `osbert serve`. */
export function addServeCommand(program: Command): void {
  program
    .command("serve")
    .description("run a broker")
    .argument("[file]", `the settings (default: ${usualFile}, if it is there)`)
    .addHelpText(
      "after",
      `
Examples:
  $ osbert serve                                   # with the settings in ./${usualFile}
  $ osbert serve /etc/osbert/production.yaml
  $ OSBERT_MODULE=services.ts PORT=9000 osbert serve

SIGHUP, or a change of the file, reloads the catalog. SIGTERM and Ctrl-C stop it cleanly.
\`osbert config\` shows what is in force.`,
    )
    .action(async (file: string | undefined) => {
      await telling(() => run(file));
      // A module may have timers and connections of its own; they must not keep a broker from ending that has stopped.
      process.exit();
    });
}
