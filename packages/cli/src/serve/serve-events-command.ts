import type { Command } from "commander";
import { withExamples } from "../examples-of.js";
import { usualFile } from "../settings/load.js";
import { reportErrors } from "../user-error.js";
import { runEvents } from "./run.js";

/** `osbert events serve`: runs a broker whose services are the applications of a cluster. */
export function registerServeEvents(events: Command): void {
  const command = events
    .command("serve")
    .summary("run a broker for the applications of a cluster")
    .description(
      "Runs a broker that offers each namespace what applications of the cluster grant it, and has their events flow there. It is `osbert serve` with `events.enabled`: all other settings are the same.",
    )
    .argument("[file]", `the settings (default: ${usualFile}, if it is there)`)
    .action(async (file: string | undefined) => {
      await reportErrors(() => runEvents(file));
      process.exit();
    });
  withExamples(command, [
    {
      does: "for the cluster that kubectl talks to, with a credential that is made and shown once",
      command: "osbert events serve",
    },
    { does: "with the settings of a file", command: "osbert events serve /etc/osbert/events.yaml" },
    {
      does: "for another context of a kubeconfig",
      command: "OSBERT_CLUSTER_KUBECONFIG=~/.kube/config OSBERT_CLUSTER_CONTEXT=staging osbert events serve",
    },
  ]);
}
