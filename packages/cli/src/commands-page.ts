import type { Argument, Command, Option } from "commander";
import { exitStatuses } from "./client/exit-status.js";
import { examplesOf } from "./examples-of.js";

/** The reference page of all commands, in Markdown, from what the program itself knows of them. */
export function commandsPage(program: Command): string {
  const commands = leavesOf(program);
  return [
    "# Commands",
    "",
    `What \`${program.name()} --help\` and \`${program.name()} help COMMAND\` print, on one page. It is generated from the program; a test compares them.`,
    "",
    "| command | does |",
    "|---|---|",
    ...commands.map(
      (command) =>
        `| [\`${pathOf(command)}\`](#${anchorOf(command)}) | ${cell(command.summary() || command.description())} |`,
    ),
    "",
    ...commands.flatMap(section),
    "## Exit status of the client commands",
    "",
    "| status | meaning |",
    "|---|---|",
    ...Object.values(exitStatuses).map(({ status, meaning }) => `| ${status} | ${cell(meaning)} |`),
    "",
  ].join("\n");
}

/** Commands that do something. One with commands of its own is their heading, unless it takes arguments. */
function leavesOf(command: Command): readonly Command[] {
  return command.commands.flatMap((child) => {
    const does = child.commands.length === 0 || child.registeredArguments.length > 0;
    return [...(does ? [child] : []), ...leavesOf(child)];
  });
}

function section(command: Command): string[] {
  const help = command.createHelp();
  const args = help.visibleArguments(command);
  const options = help.visibleOptions(command).filter((option) => option.long !== "--help");
  const examples = examplesOf(command).map(({ does, command: line }) => `# ${does}\n${line}`);
  return [
    `## ${pathOf(command)}`,
    "",
    "```",
    help.commandUsage(command),
    "```",
    "",
    command.description(),
    "",
    ...rows("argument", args, (argument: Argument) => [
      help.argumentTerm(argument),
      help.argumentDescription(argument),
    ]),
    ...rows("option", options, (option: Option) => [help.optionTerm(option), help.optionDescription(option)]),
    ...(examples.length === 0 ? [] : ["```sh", examples.join("\n\n"), "```", ""]),
  ];
}

function rows<T>(heading: string, items: readonly T[], describe: (item: T) => readonly [string, string]): string[] {
  if (items.length === 0) return [];
  const lines = items.map(describe).map(([term, meaning]) => `| \`${cell(term)}\` | ${cell(meaning)} |`);
  return [`| ${heading} | meaning |`, "|---|---|", ...lines, ""];
}

function pathOf(command: Command): string {
  const parent = command.parent === null ? "" : `${pathOf(command.parent)} `;
  return `${parent}${command.name()}`;
}

function anchorOf(command: Command): string {
  return pathOf(command).replaceAll(" ", "-");
}

function cell(text: string): string {
  return text.replaceAll("|", "\\|").replaceAll("\n", " ");
}
