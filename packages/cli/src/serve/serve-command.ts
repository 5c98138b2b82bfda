import type { Command } from "commander";
import { withExamples } from "../examples-of.js";
import { operatorGroup } from "../operator-group.js";
import { usualFile } from "../settings/load.js";
import { reportErrors } from "../user-error.js";

/** `osbert serve`: runs a broker. */
export function registerServe(program: Command): void {
  const command = program
    .command("serve")
    .helpGroup(operatorGroup)
    .summary("run a broker")
    .description(
      "Runs a broker by its settings until SIGTERM or Ctrl-C; a second signal stops it at once. SIGHUP, or a change of a file, reloads the catalog.",
    )
    .argument("[file]", `the settings (default: ${usualFile}, if it is there)`)
    .action(async (file: string | undefined) => {
      // Loaded only now: all other commands would wait for it, too.
      const { run } = await import("./run.js");
      await reportErrors(() => run(file));
      // A module may have timers and connections of its own; they must not keep a broker from ending that has stopped.
      process.exit();
    });
  withExamples(command, [
    { does: `with the settings in ./${usualFile}`, command: "osbert serve" },
    { does: "with those of another file", command: "osbert serve /etc/osbert/production.yaml" },
    { does: "without a file", command: "OSBERT_MODULE=services.ts PORT=9000 osbert serve" },
  ]);
}
