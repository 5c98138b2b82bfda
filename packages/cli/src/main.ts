import { readFileSync } from "node:fs";
import { Command } from "commander";
import { registerAdminCommands } from "./admin/register-admin-commands.js";
import { registerBundleCommands } from "./bundle/register-bundle-commands.js";
import { registerBundlesCommands } from "./bundles/register-bundles-commands.js";
import { registerClientCommands } from "./client/register-client-commands.js";
import { endQuietlyWhenNobodyReads } from "./client/surroundings.js";
import { registerCompletion } from "./completion-command.js";
import { registerConfig } from "./config/config-command.js";
import { eventsGroup } from "./events/events-group.js";
import { registerEventsCommands } from "./events/register-events-commands.js";
import { registerHashPassword } from "./hash-password-command.js";
import { registerKeys } from "./keys/keys-command.js";
import { registerMisbehave } from "./misbehave/misbehave-command.js";
import { platformGroup } from "./platform/platform-group.js";
import { registerPlatformCommands } from "./platform/register-platform-commands.js";
import { registerEventsAccess } from "./serve/events-access-command.js";
import { registerMigrate } from "./serve/migrate-command.js";
import { registerServe } from "./serve/serve-command.js";
import { registerServeEvents } from "./serve/serve-events-command.js";
import { registerMigratePlatform } from "./serve-platform/migrate-platform-command.js";
import { registerServePlatform } from "./serve-platform/serve-platform-command.js";
import { usageErrorsHaveTheirStatus } from "./usage-status.js";

/** The program `osbert` with all its commands, not yet run. */
export function osbertProgram(): Command {
  const program = new Command("osbert")
    .description("The Open Service Broker stack for TypeScript")
    .version(version(), "-V, --version");
  usageErrorsHaveTheirStatus(program);
  registerServe(program);
  registerServePlatform(platformGroup(program));
  registerMigratePlatform(platformGroup(program));
  registerConfig(program);
  registerMigrate(program);
  registerKeys(program);
  registerHashPassword(program);
  registerClientCommands(program);
  registerAdminCommands(program);
  registerBundlesCommands(program);
  registerServeEvents(eventsGroup(program));
  registerEventsAccess(eventsGroup(program));
  registerEventsCommands(program);
  registerBundleCommands(program);
  registerPlatformCommands(program);
  registerMisbehave(program);
  registerCompletion(program);
  return program;
}

/** Runs the program. Ends the process with a status of its own where a command fails. */
export async function main(argv: readonly string[]): Promise<void> {
  endQuietlyWhenNobodyReads(process.stdout);
  await osbertProgram().parseAsync(argv);
}

/** Sources and what they are compiled to are both one folder below the package. */
function version(): string {
  const text = readFileSync(new URL("../package.json", import.meta.url), "utf8");
  return (JSON.parse(text) as { readonly version: string }).version;
}
