import { type Command, InvalidArgumentError } from "commander";
import { defaultUrl } from "../client/broker-url.js";
import { statusHelp } from "../client/exit-status.js";
import { parseSecondsOption } from "../client/seconds-option.js";

/** The options of every admin command, and what its status means. */
export function withAdminOptions(command: Command): Command {
  return command
    .option("--url <url>", `where the broker is, without /admin (else OSBERT_ADMIN_URL, else ${defaultUrl})`)
    .option(
      "--credentials-file <file>",
      "a file with the admin API's name:password (else OSBERT_ADMIN_LOGIN=name:password)",
    )
    .option("--ca <file>", "the certificate (PEM) of the authority to trust for https")
    .option("--request-timeout <time>", "how long one request may take (default 60s)", parseSecondsOption)
    .option("--json", "one JSON document on the standard output, also when it fails")
    .addHelpText("after", statusHelp("broker"));
}

/** Of the commands about one instance, or about instances of one platform. */
export function withPlatformOption(command: Command): Command {
  return command.option("--platform <name>", "the platform whose instance it is, where the broker serves several");
}

export interface PageChoice {
  readonly limit: number;
  readonly after?: string;
}

export function withPageOptions(command: Command): Command {
  return command
    .option("--limit <number>", "how many to show, at most 500", parseLimit, 100)
    .option("--after <text>", "go on where an earlier list ended, as it said");
}

export interface ReasonChoice {
  readonly reason: string;
}

/** Of the commands that change something. */
export function withReason(command: Command, whereItStands = "; it stands in the journal beside your name"): Command {
  return command.requiredOption("--reason <text>", `why, in your words${whereItStands}`);
}

export function parseLimit(text: string): number {
  const limit = Number(text);
  if (!Number.isInteger(limit) || limit < 1 || limit > 500)
    throw new InvalidArgumentError("It must be a whole number from 1 to 500.");
  return limit;
}
