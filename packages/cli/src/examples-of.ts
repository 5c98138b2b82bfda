import type { Command } from "commander";

export interface Example {
  readonly command: string;
  readonly does: string;
}

const examples = new WeakMap<Command, readonly Example[]>();

/** Examples at the end of a command's help; the reference page prints them too. */
export function withExamples(command: Command, list: readonly Example[]): Command {
  examples.set(command, list);
  const lines = list.map(({ command: line, does }) => `  # ${does}\n  ${line}\n`);
  return command.addHelpText("after", `\nExamples:\n${lines.join("\n").trimEnd()}`);
}

/** The examples of a command, in their order. */
export function examplesOf(command: Command): readonly Example[] {
  return examples.get(command) ?? [];
}
