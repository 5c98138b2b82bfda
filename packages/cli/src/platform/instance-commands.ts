import { type Command, Option } from "commander";
import { confirm } from "../admin/confirm.js";
import { type ParameterChoice, withParameterOptions } from "../client/command-options.js";
import { exitStatuses } from "../client/exit-status.js";
import type { Surroundings } from "../client/surroundings.js";
import { withExamples } from "../examples-of.js";
import { carryOutIntent } from "./carry-out-intent.js";
import { instanceText, queueText, withExactNumbers } from "./instance-text.js";
import {
  type IntentOptions,
  type PageOptions,
  type PlatformOptions,
  withIntentOptions,
  withPageOptions,
  withPlatformOptions,
} from "./platform-options.js";
import { printPage } from "./print-page.js";
import { readParametersText } from "./read-parameters-text.js";
import { runPlatformCommand } from "./run-platform-command.js";

const theInstance = "the name of the instance";

/** The commands about instances: list, show, queue, create, update, upgrade, delete, restore. */
export function registerInstanceCommands(platform: Command, surroundings: Surroundings): void {
  registerList(platform, surroundings);
  registerShow(platform, surroundings);
  registerQueue(platform, surroundings);
  registerCreate(platform, surroundings);
  registerUpdate(platform, surroundings);
  registerUpgrade(platform, surroundings);
  registerDelete(platform, surroundings);
  registerRestore(platform, surroundings);
}

function registerList(platform: Command, surroundings: Surroundings): void {
  const command = platform
    .command("list")
    .summary("list the instances of a space")
    .description("Lists the instances of a space, with what is open on each.")
    .option("--phase <phase>", "only those in this phase")
    .option("--broker <name>", "only those of this broker")
    .action((options: PageOptions & { readonly phase?: string; readonly broker?: string }) =>
      runPlatformCommand(options, surroundings, "list the instances", (session) =>
        printPage(
          session,
          (page) =>
            session.ask(
              "instances",
              { space: session.space },
              { query: { ...page, phase: options.phase, broker: options.broker } },
            ),
          options,
          ["NAME", "SERVICE", "PLAN", "PHASE", "OPEN", "BINDINGS", "BROKER"],
          (one) => [
            one.name,
            one.offering.name,
            one.plan?.name ?? "-",
            one.usable ? one.phase : `${one.phase} (unusable)`,
            String(one.open),
            String(one.bindings),
            one.broker,
          ],
          `there are none in space ${session.space}`,
        ),
      ),
    );
  withPageOptions(command);
  withExamples(command, [{ does: "what is halted", command: "osbert platform list --phase halted" }]);
}

function registerShow(platform: Command, surroundings: Surroundings): void {
  const command = platform
    .command("show")
    .summary("show an instance: what is, what is under way, what will be")
    .description("Shows everything about an instance in one look: what it is, what is under way, and what it will be.")
    .argument("<instance>", theInstance)
    .action((name: string, options: PlatformOptions) =>
      runPlatformCommand(options, surroundings, `show ${name}`, async (session) => {
        const { ask, text } = session.askWith({});
        const instance = await ask("instance", { space: session.space, instance: name });
        surroundings.stdout.write(session.json ? `${text()}\n` : instanceText(withExactNumbers(instance, text())));
        return exitStatuses.succeeded.status;
      }),
    );
  withPlatformOptions(command);
  withExamples(command, [{ does: "how is it?", command: "osbert platform show my-db" }]);
}

function registerQueue(platform: Command, surroundings: Surroundings): void {
  const command = platform
    .command("queue")
    .summary("show what is wanted of an instance, in order")
    .description(
      "Shows what is wanted of an instance in the order in which it will be done: by whom, since when, why it waits.",
    )
    .argument("<instance>", theInstance)
    .action((name: string, options: PlatformOptions) =>
      runPlatformCommand(options, surroundings, `show the queue of ${name}`, async (session) => {
        const { ask, text } = session.askWith({});
        const { items } = await ask("queue", { space: session.space, instance: name });
        surroundings.stdout.write(session.json ? `${text()}\n` : queueText(items));
        return exitStatuses.succeeded.status;
      }),
    );
  withPlatformOptions(command);
  withExamples(command, [{ does: "what comes next", command: "osbert platform queue my-db" }]);
}

interface CreateOptions extends IntentOptions, ParameterChoice {
  readonly broker?: string;
  readonly onFailure?: string;
  readonly concurrency?: string;
}

function registerCreate(platform: Command, surroundings: Surroundings): void {
  const command = platform
    .command("create")
    .summary("want an instance")
    .description("Wants an instance, and waits until it is there.")
    .argument("<instance>", "how you call it")
    .argument("<service>", "the name of the service, as in the marketplace")
    .argument("<plan>", "the name of the plan")
    .option("--broker <name>", "whose, where several brokers offer it")
    .addOption(
      new Option("--on-failure <policy>", "what becomes of later changes when one fails").choices([
        "auto",
        "halt",
        "continue",
      ]),
    )
    .addOption(
      new Option("--concurrency <policy>", "what becomes of a change while another is open").choices([
        "queue",
        "reject",
        "replace",
      ]),
    )
    .action((instance: string, offering: string, plan: string, options: CreateOptions) =>
      runPlatformCommand(options, surroundings, `create ${instance}`, async (session) => {
        const { broker, onFailure, concurrency } = options;
        const policy = { on_failure: onFailure, concurrency };
        const body = {
          ...{ broker, offering, plan },
          parameters: await readParametersText(session, options.parameters),
          policy: onFailure === undefined && concurrency === undefined ? undefined : policy,
        };
        return carryOutIntent(session, options, {
          instance,
          what: `creating ${instance}`,
          done: `${instance} is created`,
          ask: ({ ask }, query) => ask("createInstance", { space: session.space, instance }, { query, body }),
        });
      }),
    );
  withIntentOptions(withParameterOptions(command));
  withExamples(command, [
    { does: "a small database", command: "osbert platform create my-db database small" },
    {
      does: "with parameters; would it be accepted?",
      command: "osbert platform create my-db database small -p size:=3 --dry-run",
    },
  ]);
}

interface UpdateOptions extends IntentOptions, ParameterChoice {
  readonly plan?: string;
  readonly afterOperation?: readonly string[];
}

function registerUpdate(platform: Command, surroundings: Surroundings): void {
  const command = platform
    .command("update")
    .summary("want another plan, or other parameters")
    .description(
      "Wants another plan, or other parameters, and waits until it is so. What is not said stays. It is queued behind what is open.",
    )
    .argument("<instance>", theInstance)
    .option("-l, --plan <name>", "the plan that it is to have")
    .option("--after-operation <id...>", "only if these have succeeded")
    .action((instance: string, options: UpdateOptions) =>
      runPlatformCommand(options, surroundings, `update ${instance}`, async (session) => {
        const parameters = await readParametersText(session, options.parameters);
        const body = { plan: options.plan, parameters, after: options.afterOperation };
        return carryOutIntent(session, options, {
          instance,
          what: `updating ${instance}`,
          done: `${instance} is updated`,
          ask: ({ ask }, query) => ask("updateInstance", { space: session.space, instance }, { query, body }),
        });
      }),
    );
  withIntentOptions(withParameterOptions(command));
  withExamples(command, [
    { does: "a larger plan", command: "osbert platform update my-db --plan large" },
    { does: "one parameter, without waiting", command: "osbert platform update my-db -p size:=5 --no-wait" },
  ]);
}

function registerUpgrade(platform: Command, surroundings: Surroundings): void {
  const command = platform
    .command("upgrade")
    .summary("want the new maintenance version of its plan")
    .description("Wants the maintenance version that the plan of an instance has now, or the one that is named.")
    .argument("<instance>", theInstance)
    .argument("[version]", "only if the plan has this one")
    .action((instance: string, version: string | undefined, options: IntentOptions) =>
      runPlatformCommand(options, surroundings, `upgrade ${instance}`, (session) =>
        carryOutIntent(session, options, {
          instance,
          what: `upgrading ${instance}`,
          done: `${instance} is upgraded`,
          ask: ({ ask }, query) =>
            ask("upgradeInstance", { space: session.space, instance }, { query, body: { version } }),
        }),
      ),
    );
  withIntentOptions(command);
  withExamples(command, [{ does: "to the newest", command: "osbert platform upgrade my-db" }]);
}

interface DeleteOptions extends IntentOptions {
  readonly mode: string;
  readonly afterOperation?: string;
  readonly cascade?: boolean;
  readonly now?: boolean;
  readonly reason?: string;
  readonly yes?: boolean;
}

function registerDelete(platform: Command, surroundings: Surroundings): void {
  const command = platform
    .command("delete")
    .summary("want an instance gone")
    .description(
      "Wants an instance gone, and waits until its broker has deleted it. What is queued is held meanwhile, and goes on if the broker refuses.",
    )
    .argument("<instance>", theInstance)
    .addOption(
      new Option(
        "--mode <mode>",
        "before all that is queued, after it, after one operation, or forget it without its broker",
      )
        .choices(["preempt", "drain", "after", "abandon"])
        .default("preempt"),
    )
    .option("--after-operation <id>", "with --mode after: which one")
    .option("--cascade", "its bindings, too")
    .option("--now", "also beside an update that is under way")
    .option("--reason <text>", "why, for the journal; --mode abandon needs it")
    .option("--yes", "do not ask; needed where nobody can be asked")
    .action((instance: string, options: DeleteOptions) =>
      runPlatformCommand(options, surroundings, `delete ${instance}`, async (session) => {
        const { mode, reason, afterOperation } = options;
        const what = mode === "abandon" ? `forgets ${instance}, which lives on at its broker` : `deletes ${instance}`;
        if (!options.dryRun) await confirm(surroundings, { what, name: instance, yes: options.yes ?? false });
        return carryOutIntent(session, options, {
          instance,
          what: `deleting ${instance}`,
          done: mode === "abandon" ? `${instance} is abandoned` : `${instance} is deleted`,
          ask: ({ ask }, { dry_run }) => {
            const query = {
              ...{ mode, reason, dry_run },
              after: afterOperation,
              cascade: options.cascade ? "true" : undefined,
              now: options.now ? "true" : undefined,
            };
            return ask("deleteInstance", { space: session.space, instance }, { query });
          },
        });
      }),
    );
  withIntentOptions(command);
  withExamples(command, [
    { does: "with its bindings", command: "osbert platform delete my-db --cascade --yes" },
    { does: "when all that is queued is done", command: "osbert platform delete my-db --mode drain --no-wait --yes" },
  ]);
}

function registerRestore(platform: Command, surroundings: Surroundings): void {
  const command = platform
    .command("restore")
    .summary("undo a delete that was not sent, or was refused")
    .description("Undoes a delete, as long as its broker has not accepted it. What it held back goes on.")
    .argument("<instance>", theInstance)
    .action((name: string, options: PlatformOptions) =>
      runPlatformCommand(options, surroundings, `restore ${name}`, async (session) => {
        const { ask, text } = session.askWith({});
        const values = { space: session.space, instance: name };
        const instance = await ask("restoreInstance", values, { body: {} });
        surroundings.stdout.write(session.json ? `${text()}\n` : `${name} is ${instance.phase} again\n`);
        return exitStatuses.succeeded.status;
      }),
    );
  withPlatformOptions(command);
  withExamples(command, [{ does: "keep it after all", command: "osbert platform restore my-db" }]);
}
