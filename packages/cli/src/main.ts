import { Command } from "commander";

/** The program `osbert`. Ends the process with a status of its own where a command fails. */
export async function main(argv: readonly string[]): Promise<void> {
  const program = new Command("osbert").description("The Open Service Broker stack for TypeScript");
  await program.parseAsync(argv);
}
