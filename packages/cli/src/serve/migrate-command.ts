import type { Command } from "commander";
import { withExamples } from "../examples-of.js";
import { operatorGroup } from "../operator-group.js";
import { loadSettings, usualFile } from "../settings/load.js";
import { realSystem } from "../settings/system.js";
import { reportErrors } from "../user-error.js";
import { chooseStore, type StoreSettings, storeTrouble } from "./open-store.js";

/** `osbert migrate`: brings the store up to date. */
export function registerMigrate(program: Command): void {
  const command = program
    .command("migrate")
    .helpGroup(operatorGroup)
    .summary("bring the tables of the store up to date")
    .description(
      "Brings the tables of the store up to date. Needed only with `database.migrate: false`; otherwise `osbert serve` does it at start. It can be repeated.",
    )
    .argument("[file]", `the settings (default: ${usualFile}, if it is there)`)
    .action((file: string | undefined) => reportErrors(() => migrateStore(loadSettings(file, realSystem()).settings)));
  withExamples(command, [
    { does: "the store that these settings name", command: "osbert migrate /etc/osbert/production.yaml" },
  ]);
}

/** Brings the store of these settings up to date, and says so. */
export async function migrateStore(settings: StoreSettings): Promise<void> {
  const { store, address, release } = await chooseStore(settings, { migrate: true });
  try {
    await store.open();
    await store.close();
  } catch (error) {
    throw storeTrouble(error, address);
  } finally {
    await release();
  }
  process.stdout.write(`the store ${address} is up to date\n`);
}
