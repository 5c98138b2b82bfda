import { faultLine } from "@osbert/server/yaml";
import type { Command } from "commander";
import { withExamples } from "../examples-of.js";
import { operatorGroup } from "../operator-group.js";
import { startFaults } from "../serve/check-start.js";
import { bundleAdviceOf } from "../serve/open-bundles.js";
import { inForce } from "../settings/in-force.js";
import { inline } from "../settings/inline.js";
import { settingsSchema } from "../settings/json-schema.js";
import { readSettings, usualFile } from "../settings/load.js";
import { settingsReference } from "../settings/reference.js";
import { SettingsError } from "../settings/settings-error.js";
import { realSystem } from "../settings/system.js";
import { table } from "../settings/table.js";
import { registerImportSpring } from "../spring/import-spring-command.js";
import { reportErrors } from "../user-error.js";

interface Options {
  readonly json?: true;
  readonly schema?: true;
  readonly reference?: true;
}

/** `osbert config`: tells what is in force. */
export function registerConfig(program: Command): void {
  const command = program
    .command("config")
    .helpGroup(operatorGroup)
    .summary("check the settings and tell what is in force")
    .description(
      "Checks the settings and prints what is in force, and where each value comes from, with secrets masked. All is checked that `osbert serve` checks before it opens the store: the module is loaded, and its services with what the settings say of them. Ends with 2 if something must be written differently.",
    )
    .argument("[file]", `the settings (default: ${usualFile}, if it is there)`)
    .option("--json", "print it as JSON")
    .option("--schema", "print the JSON Schema of the settings, for editors")
    .option("--reference", "print the reference page of all settings, as Markdown")
    .action(async (file: string | undefined, options: Options) => {
      await reportErrors(() => print(file, options));
      endOnceWritten();
    });
  withExamples(command, [
    { does: `what ${usualFile} and the environment say`, command: "osbert config" },
    { does: "the same of another file, for a program", command: "osbert config production.yaml --json" },
    {
      does: "for editors, which find it with a first line of: # yaml-language-server: $schema=osbert.schema.json",
      command: "osbert config --schema > osbert.schema.json",
    },
  ]);
  registerImportSpring(command);
}

async function print(file: string | undefined, options: Options): Promise<void> {
  if (options.schema) process.stdout.write(`${JSON.stringify(settingsSchema(), undefined, 2)}\n`);
  else if (options.reference) process.stdout.write(settingsReference());
  else process.stdout.write(await inForceAs(options.json ? "json" : "text", file));
}

/** A module may have opened what would keep the process from ending: connections, timers. */
function endOnceWritten(): void {
  process.stderr.write("", () => process.stdout.write("", () => process.exit()));
}

async function inForceAs(form: "json" | "text", file: string | undefined): Promise<string> {
  const read = readSettings(file, realSystem());
  const faults = await startFaults(read);
  if (faults.length > 0) throw new SettingsError(faults);
  const { settings, places } = read;
  // What `serve` warns of.
  for (const advice of await bundleAdviceOf(read)) process.stderr.write(`${faultLine(advice)}\n`);
  const lines = inForce(table, settings, places);
  if (form === "json") {
    const entries = lines.map(({ key, value, from }) => [key, { value, from }] as const);
    return `${JSON.stringify(Object.fromEntries(entries), undefined, 2)}\n`;
  }
  const shown = lines.map(({ key, value, from }) => ({
    key,
    value: typeof value === "string" ? value : inline(value),
    from,
  }));
  const widths = {
    key: widest(shown.map(({ key }) => key)),
    value: Math.min(60, widest(shown.map(({ value }) => value))),
  };
  return shown
    .map(({ key, value, from }) => `${key.padEnd(widths.key)}  ${value.padEnd(widths.value)}  ${from}\n`)
    .join("");
}

function widest(texts: readonly string[]): number {
  return Math.max(0, ...texts.map((text) => text.length));
}
