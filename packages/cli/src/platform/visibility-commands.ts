import type { Command } from "commander";
import { CommandError, exitStatuses } from "../client/exit-status.js";
import { plainJson } from "../client/plain-text.js";
import type { Surroundings } from "../client/surroundings.js";
import { withExamples } from "../examples-of.js";
import { type NamedOffer, offeredIds, offeredNames } from "./offered-ids.js";
import { type PlatformOptions, withPlatformOptions } from "./platform-options.js";
import { printPage } from "./print-page.js";
import { runPlatformCommand } from "./run-platform-command.js";
import { showAnswer } from "./show-answer.js";

/** `osbert platform visibilities …`: in which spaces a service or a plan is offered. */
export function registerVisibilityCommands(platform: Command, surroundings: Surroundings): void {
  const visibilities = platform
    .command("visibilities")
    .summary("list and set where services and plans are offered")
    .description(
      "In which spaces services and plans are offered; for operators. What no rule names is offered everywhere.",
    );

  const list = visibilities
    .command("list")
    .summary("list what is offered in some spaces only")
    .description("Lists what is offered in some spaces only.")
    .action((options: PlatformOptions) =>
      runPlatformCommand(options, surroundings, "list the visibilities", async (session) => {
        const names = session.json ? new Map<string, string>() : await offeredNames(session);
        return printPage(
          session,
          () => session.ask("visibilities", {}),
          { limit: 500 },
          ["NAME", "BROKER", "SERVICE", "PLAN", "SPACES", "BY"],
          (one) => [
            one.name,
            one.broker,
            names.get(one.offering) ?? one.offering,
            one.plan === null ? "all" : (names.get(one.plan) ?? one.plan),
            one.spaces.length === 0 ? "none" : one.spaces.join(", "),
            one.by,
          ],
          "everything is offered everywhere",
        );
      }),
    );
  withPlatformOptions(list);
  withExamples(list, [{ does: "why is a plan not offered there?", command: "osbert platform visibilities list" }]);

  interface SetOptions extends PlatformOptions, NamedOffer {
    readonly service: string;
    readonly in?: readonly string[];
    readonly nowhere?: boolean;
  }
  const set = visibilities
    .command("set")
    .summary("offer a service or a plan in some spaces only")
    .description("Offers a service, or one of its plans, in these spaces only. Instances that are there stay.")
    .argument("<visibility>", "the name of the rule")
    .requiredOption("--service <name>", "what is offered")
    .option("--plan <name>", "only this plan of it (else all that have no rule of their own)")
    .option("--broker <name>", "whose service it is, where several have one of that name")
    .option("--in <space...>", "in these spaces")
    .option("--nowhere", "in no space at all")
    .action((visibility: string, options: SetOptions) =>
      runPlatformCommand(options, surroundings, `set the visibility ${visibility}`, async (session) => {
        // A command line that forgot where is not one that means nowhere.
        if ((options.in === undefined) === (options.nowhere !== true))
          throw new CommandError("usage", "offered where? Say --in with the spaces, or --nowhere");
        const { broker = "", offering = "", plan } = await offeredIds(session, options);
        const body = { broker, offering, plan, spaces: options.in ?? [] };
        return showAnswer(
          session,
          (ask) => ask("setVisibility", { visibility }, { body }),
          ({ name, spaces }) => `${name} is set: offered in ${spaces.length === 0 ? "no space" : spaces.join(", ")}\n`,
        );
      }),
    );
  withPlatformOptions(set);
  withExamples(set, [
    {
      does: "a plan for one team",
      command: "osbert platform visibilities set large-for-shop --service database --plan large --in shop",
    },
    {
      does: "a service that is being taken back",
      command: "osbert platform visibilities set no-queues --service queue --nowhere",
    },
  ]);

  const remove = visibilities
    .command("remove")
    .summary("remove a rule")
    .description("Removes a rule. What no rule names is offered everywhere.")
    .argument("<visibility>", "the name of the rule")
    .action((visibility: string, options: PlatformOptions) =>
      runPlatformCommand(options, surroundings, `remove the visibility ${visibility}`, async (session) => {
        await session.ask("removeVisibility", { visibility });
        const told = session.json ? plainJson({ removed: visibility }) : `${visibility} is removed`;
        surroundings.stdout.write(`${told}\n`);
        return exitStatuses.succeeded.status;
      }),
    );
  withPlatformOptions(remove);
  withExamples(remove, [{ does: "for everybody", command: "osbert platform visibilities remove large-for-shop" }]);
}
