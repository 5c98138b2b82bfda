import type { Command } from "commander";
import { withExamples } from "../examples-of.js";
import { usualPlatformFile } from "../settings/load-platform.js";
import { reportErrors } from "../user-error.js";

/** `osbert platform serve`: runs a platform. */
export function registerServePlatform(platform: Command): void {
  const command = platform
    .command("serve")
    .summary("run a platform")
    .description(
      "Runs a platform by its settings until SIGTERM or Ctrl-C; a second signal stops it at once. SIGHUP, or a change of a file, reloads credentials, certificates and the level of the log.",
    )
    .argument("[file]", `the settings (default: ${usualPlatformFile}, if it is there)`)
    .action(async (file: string | undefined) => {
      // Loaded only now: all other commands would wait for it, too.
      const { runPlatform } = await import("./run-platform.js");
      await reportErrors(() => runPlatform(file));
      process.exit();
    });
  withExamples(command, [
    { does: `with the settings in ./${usualPlatformFile}, or with none at all`, command: "osbert platform serve" },
    { does: "with those of another file", command: "osbert platform serve /etc/osbert/platform.yaml" },
    {
      does: "on another port and store",
      command: "OSBERT_PLATFORM_STORE=memory: PORT=9001 osbert platform serve",
    },
  ]);
}
