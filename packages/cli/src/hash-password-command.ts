import { hashPassword } from "@osbert/broker/http";
import type { Command } from "commander";
import { withExamples } from "./examples-of.js";
import { operatorGroup } from "./operator-group.js";
import { reportErrors, UserError } from "./user-error.js";

const longestPassword = 1_024;

/** `osbert hash-password`: what can be written into settings instead of a password. */
export function registerHashPassword(program: Command): void {
  const command = program
    .command("hash-password")
    .helpGroup(operatorGroup)
    .summary("make a passwordHash of a password")
    .description("Reads a password from standard input, and prints its hash for a `passwordHash` of the settings.")
    .action(() => reportErrors(hashInput));
  withExamples(command, [
    { does: "of a password in a file", command: "osbert hash-password < password.txt > password-hash.txt" },
  ]);
}

async function hashInput(): Promise<void> {
  if (process.stdin.isTTY) process.stderr.write("password (it is shown as you type; Ctrl-D ends it): ");
  let text = "";
  for await (const chunk of process.stdin.setEncoding("utf8")) {
    text += String(chunk);
    if (text.length > longestPassword)
      throw new UserError(`a password must have at most ${longestPassword} characters`);
  }
  // The line's end is no part of it.
  const password = text.replace(/\r?\n$/, "");
  if (password === "") throw new UserError("there is no password on standard input");
  process.stdout.write(`${await hashPassword(password)}\n`);
}
