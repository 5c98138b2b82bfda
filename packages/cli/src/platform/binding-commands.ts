import type { Command } from "commander";
import { type ParameterChoice, withParameterOptions } from "../client/command-options.js";
import { exitStatuses } from "../client/exit-status.js";
import type { Surroundings } from "../client/surroundings.js";
import { withExamples } from "../examples-of.js";
import { carryOutIntent } from "./carry-out-intent.js";
import { type CredentialsOptions, putCredentials, withCredentialsOptions } from "./credentials-output.js";
import {
  type IntentOptions,
  type PlatformOptions,
  theBinding,
  theInstance,
  withIntentOptions,
  withPlatformOptions,
} from "./platform-options.js";
import { readParametersText } from "./read-parameters-text.js";
import { runPlatformCommand } from "./run-platform-command.js";

/** The commands about bindings: bind, credentials, rotate, unbind. */
export function registerBindingCommands(platform: Command, surroundings: Surroundings): void {
  registerBind(platform, surroundings);
  registerCredentials(platform, surroundings);
  registerRotate(platform, surroundings);
  registerUnbind(platform, surroundings);
}

interface BindOptions extends IntentOptions, ParameterChoice, CredentialsOptions {
  readonly app?: string;
}

function registerBind(platform: Command, surroundings: Surroundings): void {
  const command = platform
    .command("bind")
    .summary("want a binding, and print its credentials")
    .description("Wants a binding to an instance, waits until it is there and prints its credentials.")
    .argument("<instance>", theInstance)
    .argument("<binding>", "how you call the binding")
    .option("--app <id>", "app_guid, for services that bind to an application")
    .action((instance: string, binding: string, options: BindOptions) =>
      runPlatformCommand(options, surroundings, `bind ${binding} to ${instance}`, async (session) => {
        const parameters = await readParametersText(session, options.parameters);
        return carryOutIntent(session, options, {
          instance,
          binding,
          what: `binding ${binding} to ${instance}`,
          done: `${binding} is bound to ${instance}`,
          ask: ({ ask }, query) =>
            ask(
              "bind",
              { space: session.space, instance, binding },
              { query, body: { parameters, app_guid: options.app } },
            ),
          // One document on the standard output: with --json it says what became of the bind.
          ...((!session.json || options.output !== undefined) && {
            finish: () => putCredentials(session, instance, binding, options),
          }),
        });
      }),
    );
  withIntentOptions(withCredentialsOptions(withParameterOptions(command)));
  withExamples(command, [
    {
      does: "credentials as variables of this shell: MY_DB_URI and so on",
      command: 'eval "$(osbert platform bind my-db my-app --format env)"',
    },
    { does: "into a cluster", command: "osbert platform bind my-db my-app --format secret | kubectl apply -f -" },
  ]);
}

function registerCredentials(platform: Command, surroundings: Surroundings): void {
  const command = platform
    .command("credentials")
    .summary("print the credentials of a binding")
    .description("Prints the credentials of a binding, or writes them to a file that only you can read.")
    .argument("<instance>", theInstance)
    .argument("<binding>", theBinding)
    .action((instance: string, binding: string, options: PlatformOptions & CredentialsOptions) =>
      runPlatformCommand(options, surroundings, `read the credentials of ${binding}`, async (session) => {
        await putCredentials(session, instance, binding, options);
        return exitStatuses.succeeded.status;
      }),
    );
  withPlatformOptions(withCredentialsOptions(command));
  withExamples(command, [
    { does: "into a file", command: "osbert platform credentials my-db my-app --output credentials.json" },
  ]);
}

interface RotateOptions extends IntentOptions {
  readonly successor?: string;
}

function registerRotate(platform: Command, surroundings: Surroundings): void {
  const command = platform
    .command("rotate")
    .summary("want new credentials: a successor of a binding")
    .description(
      "Wants a binding with new credentials, and waits until it is there. The old one stays beside it for the overlap, an hour unless the platform is set otherwise, and is then unbound.",
    )
    .argument("<instance>", theInstance)
    .argument("<binding>", theBinding)
    .option("--successor <name>", "how you call the new one (default: the old name, counted on)")
    .action((instance: string, binding: string, options: RotateOptions) =>
      runPlatformCommand(options, surroundings, `rotate ${binding}`, (session) => {
        let successor = options.successor ?? "its successor";
        return carryOutIntent(session, options, {
          instance,
          what: `rotating ${binding}`,
          get done() {
            return `${successor} follows ${binding}; osbert platform credentials ${instance} ${successor} prints what is new`;
          },
          ask: async ({ ask }, query) => {
            const body = { successor: options.successor };
            const admitted = await ask("rotate", { space: session.space, instance, binding }, { query, body });
            successor = admitted.instance?.bindings.find(({ name }) => name === binding)?.successor ?? successor;
            return admitted;
          },
        });
      }),
    );
  withIntentOptions(command);
  withExamples(command, [{ does: "a new password", command: "osbert platform rotate my-db my-app" }]);
}

function registerUnbind(platform: Command, surroundings: Surroundings): void {
  const command = platform
    .command("unbind")
    .summary("want a binding gone")
    .description("Wants a binding gone, and waits until its broker has deleted it. Its credentials stay until then.")
    .argument("<instance>", theInstance)
    .argument("<binding>", theBinding)
    .action((instance: string, binding: string, options: IntentOptions) =>
      runPlatformCommand(options, surroundings, `unbind ${binding}`, (session) =>
        carryOutIntent(session, options, {
          instance,
          binding,
          what: `unbinding ${binding} from ${instance}`,
          done: `${binding} is unbound from ${instance}`,
          ask: ({ ask }, query) => ask("unbind", { space: session.space, instance, binding }, { query }),
        }),
      ),
    );
  withIntentOptions(command);
  withExamples(command, [{ does: "one application less", command: "osbert platform unbind my-db my-app" }]);
}
