import { join } from "node:path";
import { lintFolder } from "@osbert/bundles/author";
import type { Command } from "commander";
import { plainText } from "../client/plain-text.js";
import { withExamples } from "../examples-of.js";
import { runBundleCommand } from "./run-bundle-command.js";

/** `osbert bundle lint`: what is wrong with a bundle, and what could be better. */
export function registerBundleLint(bundle: Command): void {
  const command = bundle
    .command("lint")
    .summary("say what is wrong with a bundle")
    .description(
      "Prints what is wrong with the osbert.yaml (or the classic apb.yml) of a folder and with its files, each with its line, and what could be better. Ends with 1 if the bundle could not be used, and with 0 if there is only advice.",
    )
    .argument("[folder]", "of the bundle", ".")
    .action((folder: string) => runBundleCommand(() => lint(folder)));
  withExamples(command, [{ does: "the bundle in this folder", command: "osbert bundle lint" }]);
}

async function lint(folder: string): Promise<boolean> {
  const { file, problems } = await lintFolder(folder);
  for (const { line, path, message, advice } of problems) {
    const place = `${join(folder, file)}${line === null ? "" : `:${line}`}`;
    process.stdout.write(`${place} ${advice ? "advice" : "problem"}: ${plainText(`${path} ${message}`)}\n`);
  }
  const faults = problems.filter(({ advice }) => !advice).length;
  process.stderr.write(`problems: ${faults}, advice: ${problems.length - faults}\n`);
  return faults === 0;
}
