import type { Command, Option } from "commander";
import { withExamples } from "./examples-of.js";

const shells = ["bash", "zsh", "fish"] as const;
type Shell = (typeof shells)[number];

/** `osbert completion`: what makes a shell complete commands and options. */
export function registerCompletion(program: Command): void {
  const command = program
    .command("completion")
    .summary("print what makes a shell complete commands and options")
    .description(
      "Prints a script that makes a shell complete the commands of osbert, their options, and the names of a platform's instances, for which it asks the platform.",
    )
    .addArgument(program.createArgument("<shell>", "which one").choices([...shells]))
    .action((shell: Shell) => {
      process.stdout.write(completionScript(program, shell));
    });
  withExamples(command, [
    { does: "in this shell", command: "source <(osbert completion bash)" },
    { does: "for good", command: "osbert completion fish > ~/.config/fish/completions/osbert.fish" },
  ]);
}

/** The script, from what the program knows of itself: all words that may follow each command. */
export function completionScript(program: Command, shell: Shell): string {
  const words = wordsAfter(program, []);
  switch (shell) {
    case "bash":
      return bash(words);
    case "zsh":
      // Zsh runs bash's completions, once it is told.
      return `autoload -U +X bashcompinit && bashcompinit\n${bash(words)}`;
    case "fish":
      return fish(words);
  }
}

interface WordsAfter {
  /** The commands that stand there already, without the program's name. */
  readonly path: readonly string[];
  readonly commands: readonly string[];
  readonly options: readonly string[];
  /** The name of an instance comes first after it. */
  readonly takesInstance: boolean;
}

/** Names have nothing in them that a shell would obey: letters, digits and hyphens, as a test holds. */
function wordsAfter(command: Command, path: readonly string[]): readonly WordsAfter[] {
  const options = command.createHelp().visibleOptions(command);
  const own: WordsAfter = {
    path,
    commands: command.commands.map((child) => child.name()),
    options: options.flatMap(({ long }: Option) => (long ? [long] : [])),
    takesInstance: path[0] === "platform" && command.registeredArguments[0]?.name() === "instance",
  };
  return [own, ...command.commands.flatMap((child) => wordsAfter(child, [...path, child.name()]))];
}

/** Bash obeys the words that it is given to choose from: of what a platform tells only what can be a name gets there. */
const instanceNames = `osbert platform list --limit 100 2>/dev/null | awk "NR > 1 { print \\$1 }" | grep -xE "[A-Za-z0-9._-]+"`;

function bash(words: readonly WordsAfter[]): string {
  const cases = words.map(
    ({ path, commands, options }) => `    "${path.join(" ")}") words="${[...commands, ...options].join(" ")}" ;;\n`,
  );
  const ofInstances = words.filter(({ takesInstance }) => takesInstance).map(({ path }) => `"${path.join(" ")}"`);
  const known = words.filter(({ path }) => path.length > 0).map(({ path }) => `"${path.join(" ")}"`);
  return `_osbert() {
  local path="" word words="" next=""
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    next="\${path:+$path }$word"
    case "$next" in
      ${known.join("|")}) path="$next" ;;
    esac
  done
  case "$path" in
${cases.join("")}  esac
  if [ "$next" = "$path" ] && [[ "\${COMP_WORDS[COMP_CWORD]}" != -* ]]; then
    case "$path" in
      ${ofInstances.join("|")}) words="$words $(${instanceNames})" ;;
    esac
  fi
  COMPREPLY=($(compgen -W "$words" -- "\${COMP_WORDS[COMP_CWORD]}"))
  [ \${#COMPREPLY[@]} -gt 0 ] || compopt -o default 2>/dev/null
}
complete -F _osbert osbert
`;
}

function fish(words: readonly WordsAfter[]): string {
  return words
    .flatMap(({ path, commands, options, takesInstance }) => {
      const seen = path.map((word) => `__fish_seen_subcommand_from ${word}`);
      const open = commands.length === 0 ? [] : [`not __fish_seen_subcommand_from ${commands.join(" ")}`];
      const when = [...seen, ...open].join("; and ");
      const condition = when === "" ? "" : ` -n '${when}'`;
      return [
        ...commands.map((name) => `complete -c osbert -f${condition} -a ${name}\n`),
        ...options.map((name) => `complete -c osbert${condition} -l ${name.slice("--".length)}\n`),
        ...(takesInstance ? [`complete -c osbert -f${condition} -a '(${instanceNames})'\n`] : []),
      ];
    })
    .join("");
}
