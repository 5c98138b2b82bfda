import { Command } from "commander";
import { registerClientCommands } from "./client/register-client-commands.js";
import { endQuietlyWhenNobodyReads } from "./client/surroundings.js";
import { usageErrorsHaveTheirStatus } from "./usage-status.js";

/** The program `osbert` with all its commands, not yet run. */
export function osbertProgram(): Command {
  const program = new Command("osbert").description("The Open Service Broker stack for TypeScript");
  usageErrorsHaveTheirStatus(program);
  registerClientCommands(program);
  return program;
}

/** Runs the program. Ends the process with a status of its own where a command fails. */
export async function main(argv: readonly string[]): Promise<void> {
  endQuietlyWhenNobodyReads(process.stdout);
  await osbertProgram().parseAsync(argv);
}
