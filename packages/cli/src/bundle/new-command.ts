import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { isBundleName, type Language, languages, newBundle } from "@osbert/bundles/author";
import { type Command, Option } from "commander";
import { withExamples } from "../examples-of.js";
import { UserError } from "../user-error.js";
import { runBundleCommand } from "./run-bundle-command.js";

/** `osbert bundle new`: a small bundle that works, to begin with. */
export function registerBundleNew(bundle: Command): void {
  const command = bundle
    .command("new")
    .summary("begin a bundle")
    .description(
      "Writes a small bundle that works into a new folder of that name: osbert.yaml and a program. A folder or file that is there already is never written over.",
    )
    .argument("<name>", "of the service and of the folder: lower case letters, digits and dashes")
    .addOption(new Option("--language <language>", "what the program is written in").choices(languages).default("sh"))
    .action((name: string, { language }: { readonly language: Language }) =>
      runBundleCommand(() => writeBundle(name, language)),
    );
  withExamples(command, [
    { does: "a program in sh", command: "osbert bundle new team-folder" },
    { does: "a program for Node", command: "osbert bundle new team-folder --language node" },
  ]);
}

async function writeBundle(name: string, language: Language): Promise<boolean> {
  if (!isBundleName(name))
    throw new UserError("the name must be of lower case letters, digits and dashes, such as team-folder");
  try {
    await mkdir(name);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST")
      throw new UserError(`${name} is there already; choose another name`);
    throw error;
  }
  try {
    for (const { name: file, text, executable } of newBundle(name, language))
      await writeFile(join(name, file), text, { flag: "wx", mode: executable ? 0o755 : 0o644 });
  } catch (error) {
    // Half a bundle would stand in the way of the next try.
    await rm(name, { recursive: true, force: true });
    throw error;
  }
  process.stdout.write(`${name} is begun; next: osbert bundle lint ${name}, osbert bundle test ${name}\n`);
  return true;
}
