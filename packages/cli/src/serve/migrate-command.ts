import type { Command } from "commander";
import { loadSettings, usualFile } from "../settings/load.js";
import { realOutside } from "../settings/outside.js";
import { telling } from "../told.js";
import { chooseStore, storeTrouble } from "./open-store.js";

/** Adds `osbert migrate`. */
export function addMigrateCommand(program: Command): void {
  program
    .command("migrate")
    .description("bring the tables of the store up to date")
    .argument("[file]", `the settings (default: ${usualFile}, if it is there)`)
    .addHelpText(
      "after",
      `
Example:
  $ osbert migrate /etc/osbert/production.yaml

Needed only with \`database.migrate: false\`; otherwise \`osbert serve\` does it at start. It can be repeated.`,
    )
    .action((file: string | undefined) => telling(() => migrate(file)));
}

async function migrate(file: string | undefined): Promise<void> {
  const { settings } = loadSettings(file, realOutside());
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
