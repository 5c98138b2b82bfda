import { randomUUID } from "node:crypto";
import { type Action, actions } from "@osbert/bundles";
import {
  describeEnd,
  localInput,
  openBundleFolder,
  planNamed,
  type TriedAction,
  withLocalActions,
} from "@osbert/bundles/author";
import { Argument, type Command } from "commander";
import { plainJson, plainText } from "../client/plain-text.js";
import { withExamples } from "../examples-of.js";
import { addRunOptions, objectOf, type RunOptions, tryOptions } from "./bundle-options.js";
import { maskAddress } from "./mask-address.js";
import { maskValues } from "./mask-values.js";
import { type BundleCommand, runBundleCommand } from "./run-bundle-command.js";
import { keptAfter, nothingKept, readStateFile, writeStateFile } from "./state-file.js";

interface Options extends RunOptions {
  readonly parameters?: string;
  readonly state?: string;
  readonly bindingState?: string;
  readonly stateFile?: string;
  readonly instance: string;
  readonly binding: string;
  readonly idempotencyKey?: string;
  readonly showCredentials?: true;
}

/** `osbert bundle run`: one action, here and now. */
export function registerBundleRun(bundle: Command): void {
  const command = bundle
    .command("run")
    .summary("run an action of a bundle on this machine")
    .description(
      "Runs one action of the bundle in a folder, with what a broker would send it and shut in as a broker would. Progress and the log go to standard error; state, credentials (masked), dashboard and the end to standard output. Ends with 0 if the action is done, else with 1.",
    )
    .addArgument(new Argument("<action>", "what to do").choices(actions))
    .argument("[folder]", "of the bundle", ".")
    .option("-P, --parameters <json>", "parameters as a JSON object, or @file");
  addRunOptions(command)
    .option("--state <json>", "what earlier actions have left of the instance, as a JSON object, or @file")
    .option("--binding-state <json>", "what bind has left of the binding, as a JSON object, or @file")
    .option(
      "--state-file <file>",
      "take both from this file, if it is there, with what else a broker keeps, and write it afterwards: parameters and credentials are in it",
    )
    .option("--instance <id>", "the instance", "local-instance")
    .option("--binding <id>", "the binding", "local-binding")
    .option("--idempotency-key <key>", "the same for runs that are to be one (default: a random one)")
    .option("--show-credentials", "print the credentials, not only their names")
    .action((action: Action, folder: string, options: Options) =>
      runBundleCommand((context) => runAction(action, folder, options, context)),
    );
  withExamples(command, [
    {
      does: "an instance is made",
      command: `osbert bundle run provision -P '{"label":"books"}' --state-file /tmp/state.json`,
    },
    {
      does: "it is bound, with the state that provision has left",
      command: "osbert bundle run bind --state-file /tmp/state.json",
    },
  ]);
}

async function runAction(
  action: Action,
  folder: string,
  options: Options,
  { signal }: BundleCommand,
): Promise<boolean> {
  const bundle = await openBundleFolder(folder);
  const kept =
    options.stateFile === undefined
      ? { ...nothingKept, bindings: {} }
      : await readStateFile(options.stateFile, options.binding);
  const states = {
    state: await objectOf(options.state, "--state"),
    bindingState: await objectOf(options.bindingState, "--binding-state"),
  };
  const before = { ...kept, state: { ...kept.state, ...states.state } };
  const ofBinding = action === "bind" ? nothingKept : (kept.bindings[options.binding] ?? nothingKept);
  const bindingState = { ...ofBinding.state, ...states.bindingState };
  const given = await objectOf(options.parameters, "--parameters");
  // Nobody sends any for what takes away: a broker has kept them.
  const has = action === "deprovision" ? before.parameters : action === "unbind" ? ofBinding.parameters : {};
  const how = await tryOptions(options);
  const input = localInput(bundle.spec, {
    ...{ action, plan: planNamed(bundle.spec, options.plan), instance: options.instance, binding: options.binding },
    ...{ parameters: { ...has, ...given }, previousParameters: before.parameters },
    secrets: how.secrets,
    ...{ state: before, bindingState: { ...ofBinding, state: bindingState } },
  });
  const onProgress = (_: Action, text: string) => void process.stderr.write(`progress: ${plainText(text)}\n`);
  const key = options.idempotencyKey ?? randomUUID();
  const tried = await withLocalActions(bundle, { ...how, onProgress }, signal, (tryAction) =>
    tryAction(action, key, input),
  );
  // Also after a failure: a broker keeps what was said, whatever becomes of the action.
  const run = { action, binding: options.binding, parameters: given, tried };
  if (options.stateFile !== undefined) await writeStateFile(options.stateFile, keptAfter(before, run));
  print(action, tried, options.showCredentials === true);
  const isOfBinding = action === "bind" || action === "unbind";
  return tried.end.kind === "done" || (isOfBinding && tried.end.kind === "not known");
}

function print(action: Action, tried: TriedAction, showCredentials: boolean): void {
  const { state, credentials, dashboard } = tried.output;
  for (const line of tried.log.split("\n").filter((text) => text !== ""))
    process.stderr.write(`log: ${plainText(line)}\n`);
  const write = (name: string, text: string) => process.stdout.write(`${name}: ${text}\n`);
  if (Object.keys(state).length > 0) write("state", plainJson(state, 0));
  if (credentials !== null) write("credentials", plainJson(showCredentials ? credentials : maskValues(credentials), 0));
  if (dashboard !== null) write("dashboard", plainText(showCredentials ? dashboard : maskAddress(dashboard)));
  write(action, plainText(describeEnd(tried)));
}
