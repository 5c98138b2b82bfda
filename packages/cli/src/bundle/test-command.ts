import type { Action } from "@osbert/bundles";
import { type ActionReport, openBundleFolder, planNamed, testBundle, withLocalActions } from "@osbert/bundles/author";
import type { Command } from "commander";
import { plainText } from "../client/plain-text.js";
import { withExamples } from "../examples-of.js";
import { addRunOptions, objectOf, type RunOptions, tryOptions } from "./bundle-options.js";
import { type BundleCommand, runBundleCommand } from "./run-bundle-command.js";

interface Options extends RunOptions {
  readonly parameters?: string;
  readonly updateParameters?: string;
  readonly bindParameters?: string;
}

/** `osbert bundle test`: a whole life, every action twice. */
export function registerBundleTest(bundle: Command): void {
  const command = bundle
    .command("test")
    .summary("live the life of an instance with a bundle, every action twice")
    .description(
      "Provisions, binds, unbinds, updates and deprovisions one instance on this machine. Every action is run twice with the same idempotency key, as happens when a machine is switched off under it: the second run must end well, too, with credentials and state of the same shape. State is carried from action to action. After a failure what was begun is still removed. Ends with 1 if anything failed.",
    )
    .argument("[folder]", "of the bundle", ".")
    .option("-P, --parameters <json>", "parameters of provision as a JSON object, or @file")
    .option("--update-parameters <json>", "parameters of update as a JSON object, or @file")
    .option("--bind-parameters <json>", "parameters of bind as a JSON object, or @file");
  addRunOptions(command).action((folder: string, options: Options) =>
    runBundleCommand((context) => test(folder, options, context)),
  );
  withExamples(command, [{ does: "the bundle in this folder", command: "osbert bundle test" }]);
}

async function test(folder: string, options: Options, { signal }: BundleCommand): Promise<boolean> {
  const bundle = await openBundleFolder(folder);
  const how = await tryOptions(options);
  const life = {
    secrets: how.secrets,
    spec: bundle.spec,
    plan: planNamed(bundle.spec, options.plan),
    parameters: {
      provision: await objectOf(options.parameters, "--parameters"),
      update: await objectOf(options.updateParameters, "--update-parameters"),
      bind: await objectOf(options.bindParameters, "--bind-parameters"),
    },
  };
  const onProgress = (action: Action, text: string) => void process.stderr.write(`${action}: ${plainText(text)}\n`);
  let isWell = true;
  await withLocalActions(bundle, { ...how, onProgress }, signal, async (tryAction) => {
    for await (const report of testBundle(life, tryAction, signal)) {
      isWell &&= report.result !== "failed";
      print(report);
    }
  });
  process.stdout.write(isWell ? "the bundle passed\n" : "the bundle failed\n");
  return isWell;
}

function print({ action, result, problems, advice, log }: ActionReport): void {
  process.stdout.write(`${action}: ${result}${result === "passed" ? ", twice" : ""}\n`);
  for (const problem of problems) process.stdout.write(`  problem: ${plainText(problem)}\n`);
  for (const each of advice) process.stdout.write(`  advice: ${plainText(each)}\n`);
  if (result !== "failed") return;
  for (const line of log.split("\n").filter((text) => text !== "")) process.stdout.write(`  log: ${plainText(line)}\n`);
}
