import type { Command } from "commander";
import { withExamples } from "../examples-of.js";
import { migrateStore } from "../serve/migrate-command.js";
import { loadPlatformSettings, usualPlatformFile } from "../settings/load-platform.js";
import { realSystem } from "../settings/system.js";
import { reportErrors } from "../user-error.js";

/** `osbert platform migrate`: brings the store of a platform up to date. */
export function registerMigratePlatform(platform: Command): void {
  const command = platform
    .command("migrate")
    .summary("bring the tables of a platform's store up to date")
    .description(
      "Brings the tables of the store up to date. Needed only with `database.migrate: false`; otherwise `osbert platform serve` does it at start. It can be repeated.",
    )
    .argument("[file]", `the settings (default: ${usualPlatformFile}, if it is there)`)
    .action((file: string | undefined) =>
      reportErrors(() => migrateStore(loadPlatformSettings(file, realSystem()).settings)),
    );
  withExamples(command, [
    { does: "the store that these settings name", command: "osbert platform migrate /etc/osbert/platform.yaml" },
  ]);
}
