import type { Command } from "commander";
import type { Surroundings } from "../client/surroundings.js";
import { withExamples } from "../examples-of.js";
import { type PageOptions, withPageOptions } from "./platform-options.js";
import { printPage } from "./print-page.js";
import { runPlatformCommand } from "./run-platform-command.js";

/** `osbert platform rotations`: which bindings are renewed next. */
export function registerRotations(platform: Command, surroundings: Surroundings): void {
  const command = platform
    .command("rotations")
    .summary("list bindings that are due to be renewed")
    .description(
      "Lists bindings that are to be renewed, or are being renewed: when, where they are in it, and what is in the way.",
    )
    .option("--all-spaces", "of all spaces; for operators")
    .action((options: PageOptions & { readonly allSpaces?: boolean }) =>
      runPlatformCommand(options, surroundings, "list the rotations", (session) =>
        printPage(
          session,
          (query) =>
            options.allSpaces
              ? session.ask("allRotations", {}, { query })
              : session.ask("rotations", { space: session.space }, { query }),
          options,
          ["SPACE", "INSTANCE", "BINDING", "STATE", "RENEWED AT", "EXPIRES", "SUCCESSOR", ""],
          (one) => [
            one.space,
            one.instance,
            one.binding,
            one.state,
            one.renew_at,
            one.expires_at ?? "-",
            one.successor ?? "-",
            one.message ?? "",
          ],
          "none is due",
        ),
      ),
    );
  withPageOptions(command);
  withExamples(command, [{ does: "which credentials change next?", command: "osbert platform rotations" }]);
}
