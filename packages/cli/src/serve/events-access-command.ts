import type { Command } from "commander";
import { stringify } from "yaml";
import { withExamples } from "../examples-of.js";
import { usualFile } from "../settings/load.js";
import { reportErrors } from "../user-error.js";
import type { AccessFor } from "./access-objects.js";
import { loadEventSettings } from "./run.js";

/** `osbert events access`: prints what a service account has to be granted. */
export function registerEventsAccess(events: Command): void {
  const command = events
    .command("access")
    .summary("print the RBAC rules that a broker for events needs")
    .description(
      "Prints, for kubectl, a ServiceAccount with the roles that `osbert events serve` needs with these settings, and nothing more. It asks nobody.",
    )
    .argument("[file]", `the settings (default: ${usualFile}, if it is there)`)
    .option("--namespace <name>", "where the broker runs", "osbert")
    .option("--name <name>", "of the ServiceAccount and of its roles", "osbert-events")
    .action((file: string | undefined, options: AccessFor) =>
      reportErrors(async () => {
        // Loaded only where it is needed: no other command waits for it.
        const { accessObjects } = await import("./access-objects.js");
        const { settings } = loadEventSettings(file);
        process.stdout.write(
          accessObjects(settings, options)
            .map((object) => `---\n${stringify(object)}`)
            .join(""),
        );
      }),
    );
  withExamples(command, [
    { does: "grant it", command: "osbert events access events.yaml --namespace osbert | kubectl apply -f -" },
  ]);
}
