import { type Command, InvalidArgumentError, Option } from "commander";
import { defaultUrl } from "./broker-url.js";
import { statusHelp } from "./exit-status.js";
import type { ParameterSource } from "./parameters.js";
import { parseSecondsOption } from "./seconds-option.js";

/** The options of every client command, and what its status means. */
export function withBrokerOptions(command: Command): Command {
  return command
    .option("--url <url>", `where the broker is, without /v2 (else OSBERT_URL, else ${defaultUrl})`)
    .option("--platform <name>", "the platform's prefix in the broker's URLs, where it serves several")
    .option(
      "--credentials-file <file>",
      "a file with name:password, or with Bearer and a token (else OSBERT_LOGIN=name:password or OSBERT_TOKEN)",
    )
    .option("--ca <file>", "the certificate (PEM) of the authority to trust for https")
    .option("--request-timeout <time>", "how long one request may take (default 60s)", parseSecondsOption)
    .option("--originating-identity <platform:json>", "on whose behalf, as the broker is told")
    .option("--json", "one JSON document on the standard output, also when it fails")
    .addHelpText("after", statusHelp("broker"));
}

/** Of the commands that begin an operation. */
export function withWaitOptions(command: Command): Command {
  return command
    .option("--no-wait", "end as soon as the broker has taken the order")
    .option(
      "--timeout <time>",
      "wait no longer than this, such as 90s or 10m; the operation goes on",
      parseSecondsOption,
    )
    .option("--sync", "ask the broker to finish before it answers");
}

export interface WaitChoice {
  readonly wait: boolean;
  /** Seconds. */
  readonly timeout?: number;
  readonly sync?: boolean;
}

/** Of the commands that name a service and a plan. */
export function withPlanOptions(command: Command, whose: { readonly service: string; readonly plan: string }): Command {
  return command.option("-s, --service <name>", whose.service).option("-l, --plan <name>", whose.plan);
}

/** For an instance that exists the broker knows both, and mostly tells. */
export const ofExistingInstance = {
  service: "its service, by name or id, where the broker does not tell",
  plan: "its plan, by name or id, where the broker does not tell",
};

/** `-P` and `-p` fill one list, so that their order counts. */
export function withParameterOptions(command: Command): Command {
  return command
    .addOption(
      new ParameterOption("-P, --params <json>", "parameters as JSON, @file or @- for the standard input").argParser(
        collect("document"),
      ),
    )
    .addOption(
      new ParameterOption("-p, --param <name=text>", "one parameter: a.b=text, or a.b:=JSON; later ones win").argParser(
        collect("pair"),
      ),
    );
}

export interface ParameterChoice {
  readonly parameters?: readonly ParameterSource[];
}

/** Of the commands that print the credentials of a binding. */
export function withFormatOptions(command: Command): Command {
  return command
    .addOption(new Option("--format <format>", "how to print the credentials").choices(["json", "env"]).default("json"))
    .option(
      "--prefix <text>",
      "what the names of --format env begin with (default: the instance's name, as in MY_DB_)",
      parsePrefix,
    );
}

export interface FormatChoice {
  readonly format: "json" | "env";
  readonly prefix?: string;
}

function parsePrefix(text: string): string {
  if (!/^[A-Za-z0-9_]*$/.test(text))
    throw new InvalidArgumentError("It must consist of letters, digits and underscores.");
  return text;
}

class ParameterOption extends Option {
  override attributeName(): string {
    return "parameters";
  }
}

function collect(kind: ParameterSource["kind"]) {
  return (text: string, before: readonly ParameterSource[] = []): readonly ParameterSource[] => [
    ...before,
    { kind, text },
  ];
}
