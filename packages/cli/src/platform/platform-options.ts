import { type Command, InvalidArgumentError } from "commander";
import { type PageChoice, withPageOptions as withPage } from "../admin/admin-command-options.js";
import { statusHelp } from "../client/exit-status.js";
import { parseSecondsOption } from "../client/seconds-option.js";

/** The options that every command has which talks to a platform. */
export interface PlatformOptions {
  readonly target?: string;
  readonly url?: string;
  readonly space?: string;
  readonly credentialsFile?: string;
  readonly ca?: string;
  /** Seconds. */
  readonly requestTimeout?: number;
  readonly json?: boolean;
}

export function withPlatformOptions(command: Command): Command {
  return command
    .option("-t, --target <name>", "a saved target (else OSBERT_PLATFORM_TARGET, else the current one)")
    .option("--url <url>", "where the platform is, instead of a target (else OSBERT_PLATFORM_URL)")
    .option("-S, --space <name>", "the space (else OSBERT_PLATFORM_SPACE, else the target's, else default)")
    .option(
      "--credentials-file <file>",
      "a file with name:password, or with Bearer and a token (else OSBERT_PLATFORM_LOGIN=name:password or OSBERT_PLATFORM_TOKEN, else the target's)",
    )
    .option("--ca <file>", "the certificate (PEM) of the authority to trust for https")
    .option("--request-timeout <time>", "how long one request may take (default 60s)", parseSecondsOption)
    .option("--json", "one JSON document on the standard output, also when it fails")
    .addHelpText("after", statusHelp("platform"));
}

/** What arguments are, in the help of every command that has them. */
export const theInstance = "the name of the instance";
export const theBinding = "the name of the binding";
export const theOperation = "the operation's id, as show and queue tell it";

export interface WaitOptions {
  readonly wait: boolean;
  /** Seconds. */
  readonly timeout?: number;
}

/** Of the commands that wait for the end of what they asked for. */
export function withWaitOptions(command: Command): Command {
  return withTimeoutOption(command.option("--no-wait", "end as soon as the platform has accepted it"));
}

export function withTimeoutOption(command: Command): Command {
  return command.option(
    "--timeout <time>",
    "wait no longer than this, such as 90s or 10m; it goes on",
    parseSecondsOption,
  );
}

export interface IntentOptions extends PlatformOptions, WaitOptions {
  readonly dryRun?: boolean;
  readonly ifRevision?: string;
  readonly idempotencyKey?: string;
}

/** Of the commands that want a change. */
export function withIntentOptions(command: Command): Command {
  return withPlatformOptions(
    withWaitOptions(command)
      .option("--dry-run", "say what would become of it, and change nothing")
      .option("--if-revision <number>", "only if nothing was changed since that revision", parseRevision)
      .option("--idempotency-key <text>", "the same key again finds what the first request began"),
  );
}

export interface PageOptions extends PlatformOptions, PageChoice {}

export function withPageOptions(command: Command): Command {
  return withPlatformOptions(withPage(command));
}

function parseRevision(text: string): string {
  if (!/^[0-9]{1,15}$/.test(text)) throw new InvalidArgumentError("It must be a number, as show tells it.");
  return text;
}
