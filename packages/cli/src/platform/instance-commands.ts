import { type Command, Option } from "commander";
import { confirm } from "../admin/confirm.js";
import { type ParameterChoice, withParameterOptions } from "../client/command-options.js";
import type { ExitStatus } from "../client/exit-status.js";
import type { Surroundings } from "../client/surroundings.js";
import { withExamples } from "../examples-of.js";
import { carryOutIntent } from "./carry-out-intent.js";
import {
  type IntentOptions,
  type PlatformOptions,
  theInstance,
  withIntentOptions,
  withPlatformOptions,
} from "./platform-options.js";
import type { PlatformSession } from "./platform-session.js";
import { type PolicyChoice, policyBody, withPolicyOptions } from "./policy-command.js";
import { readParametersText } from "./read-parameters-text.js";
import { runPlatformCommand } from "./run-platform-command.js";
import { showAnswer } from "./show-answer.js";

/** The commands that change instances: create, adopt, update, refresh, upgrade, delete, abandon, restore. */
export function registerInstanceCommands(platform: Command, surroundings: Surroundings): void {
  registerCreate(platform, surroundings);
  registerAdopt(platform, surroundings);
  registerUpdate(platform, surroundings);
  registerRefresh(platform, surroundings);
  registerUpgrade(platform, surroundings);
  registerDelete(platform, surroundings);
  registerAbandon(platform, surroundings);
  registerRestore(platform, surroundings);
}

interface CreateOptions extends IntentOptions, ParameterChoice, PolicyChoice {
  readonly broker?: string;
}

function withCreateOptions(command: Command): Command {
  return withIntentOptions(
    withParameterOptions(withPolicyOptions(command.option("--broker <name>", "whose, where several brokers offer it"))),
  );
}

async function createBody(session: PlatformSession, offering: string, plan: string, options: CreateOptions) {
  const parameters = await readParametersText(session, options.parameters);
  return { broker: options.broker, offering, plan, parameters, policy: policyBody(options) };
}

function registerCreate(platform: Command, surroundings: Surroundings): void {
  const command = platform
    .command("create")
    .summary("want an instance")
    .description("Wants an instance, and waits until it is there.")
    .argument("<instance>", "how you call it")
    .argument("<service>", "the name of the service, as in the marketplace")
    .argument("<plan>", "the name of the plan")
    .action((instance: string, offering: string, plan: string, options: CreateOptions) =>
      runPlatformCommand(options, surroundings, `create ${instance}`, async (session) => {
        const body = await createBody(session, offering, plan, options);
        return carryOutIntent(session, options, {
          instance,
          what: `creating ${instance}`,
          done: `${instance} is created`,
          ask: ({ ask }, query) => ask("createInstance", { space: session.space, instance }, { query, body }),
        });
      }),
    );
  withCreateOptions(command);
  withExamples(command, [
    { does: "a small database", command: "osbert platform create my-db database small" },
    {
      does: "with parameters; would it be accepted?",
      command: "osbert platform create my-db database small -p size:=3 --dry-run",
    },
  ]);
}

function registerAdopt(platform: Command, surroundings: Surroundings): void {
  const command = platform
    .command("adopt")
    .summary("take over what a broker has already")
    .description(
      "Takes over an instance that a broker has already, by its id there: one that is unmanaged, was abandoned, or was made by another platform. Nothing new is made. For operators.",
    )
    .argument("<instance>", "how it is called here")
    .argument("<service>", "the name of its service, as in the marketplace")
    .argument("<plan>", "the name of the plan that it has")
    .argument("<id>", "its id at the broker")
    .action((instance: string, offering: string, plan: string, id: string, options: CreateOptions) =>
      runPlatformCommand(options, surroundings, `adopt ${instance}`, async (session) => {
        const body = { ...(await createBody(session, offering, plan, options)), osb_id: id };
        return carryOutIntent(session, options, {
          instance,
          what: `adopting ${instance}`,
          done: `${instance} is adopted`,
          ask: ({ ask }, query) => ask("adoptInstance", { space: session.space, instance }, { query, body }),
        });
      }),
    );
  withCreateOptions(command);
  withExamples(command, [
    {
      does: "its broker was removed and is registered again",
      command: "osbert platform adopt my-db database small 5f6b1c1e-3d0f-4b57-9d0a-7d1b0b6f6a01",
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

function registerRefresh(platform: Command, surroundings: Surroundings): void {
  const command = platform
    .command("refresh")
    .summary("send the parameters of an instance again")
    .description(
      "Sends the parameters of an instance to its broker again, although they are the same, and waits until it has taken them.",
    )
    .argument("<instance>", theInstance)
    .action((instance: string, options: IntentOptions) =>
      runPlatformCommand(options, surroundings, `refresh ${instance}`, (session) =>
        carryOutIntent(session, options, {
          instance,
          what: `refreshing ${instance}`,
          done: `${instance} is refreshed`,
          ask: ({ ask }, query) => ask("refreshInstance", { space: session.space, instance }, { query, body: {} }),
        }),
      ),
    );
  withIntentOptions(command);
  withExamples(command, [{ does: "somebody has changed it by hand", command: "osbert platform refresh my-db" }]);
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
      runPlatformCommand(options, surroundings, `delete ${instance}`, (session) =>
        deleteInstance(session, instance, options),
      ),
    );
  withIntentOptions(command);
  withExamples(command, [
    { does: "with its bindings", command: "osbert platform delete my-db --cascade --yes" },
    { does: "when all that is queued is done", command: "osbert platform delete my-db --mode drain --no-wait --yes" },
  ]);
}

function registerAbandon(platform: Command, surroundings: Surroundings): void {
  const command = platform
    .command("abandon")
    .summary("forget an instance without its broker")
    .description(
      "Forgets an instance without asking its broker, which may keep it and charge for it: it stands in the list of orphans from then on. For operators. The same as delete --mode abandon.",
    )
    .argument("<instance>", theInstance)
    .requiredOption("--reason <text>", "why, for the journal")
    .option("--yes", "do not ask; needed where nobody can be asked")
    .action((instance: string, options: IntentOptions & { readonly reason: string; readonly yes?: boolean }) =>
      runPlatformCommand(options, surroundings, `abandon ${instance}`, (session) =>
        deleteInstance(session, instance, { ...options, mode: "abandon" }),
      ),
    );
  withIntentOptions(command);
  withExamples(command, [
    { does: "its broker is no more", command: "osbert platform abandon my-db --reason 'the broker is gone' --yes" },
  ]);
}

async function deleteInstance(session: PlatformSession, instance: string, options: DeleteOptions): Promise<ExitStatus> {
  const { mode, reason, afterOperation } = options;
  const isAbandoned = mode === "abandon";
  const what = isAbandoned ? `forgets ${instance}, which lives on at its broker` : `deletes ${instance}`;
  if (!options.dryRun) await confirm(session.surroundings, { what, name: instance, yes: options.yes ?? false });
  return carryOutIntent(session, options, {
    instance,
    what: isAbandoned ? `abandoning ${instance}` : `deleting ${instance}`,
    done: isAbandoned ? `${instance} is abandoned` : `${instance} is deleted`,
    ask: ({ ask }, { dry_run }) => {
      const query = {
        ...{ mode, reason, dry_run },
        after: afterOperation,
        cascade: options.cascade ? "true" : undefined,
        now: options.now ? "true" : undefined,
      };
      return ask("deleteInstance", { space: session.space, instance }, { query });
    },
    async explain(operation) {
      const { last_delete } = await session.ask("instance", { space: session.space, instance });
      return last_delete?.operation === operation ? `the broker refuses: ${last_delete.message}` : undefined;
    },
  });
}

function registerRestore(platform: Command, surroundings: Surroundings): void {
  const command = platform
    .command("restore")
    .summary("undo a delete that was not sent, or was refused")
    .description(
      "Undoes a delete that was not sent to its broker yet: what it held back goes on. Of one that was refused, it clears the memory.",
    )
    .argument("<instance>", theInstance)
    .action((name: string, options: PlatformOptions) =>
      runPlatformCommand(options, surroundings, `restore ${name}`, (session) => {
        let before = 0;
        return showAnswer(
          session,
          async (ask) => {
            const values = { space: session.space, instance: name };
            before = (await ask("instance", values)).revision;
            return ask("restoreInstance", values, { body: {} });
          },
          ({ phase, revision }) =>
            revision === before
              ? `there is no delete of ${name} to undo; it is ${phase}\n`
              : `${name} is ${phase} again\n`,
        );
      }),
    );
  withPlatformOptions(command);
  withExamples(command, [{ does: "keep it after all", command: "osbert platform restore my-db" }]);
}
