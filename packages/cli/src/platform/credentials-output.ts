import { chmod, rename, writeFile } from "node:fs/promises";
import { isJsonObject, type JsonObject } from "@osbert/protocol";
import { type Command, InvalidArgumentError, Option } from "commander";
import { credentialsAsEnv, prefixOf } from "../client/credentials-as-env.js";
import { CommandError } from "../client/exit-status.js";
import { numberMark, numbersAsTexts, numbersBack } from "./number-texts.js";
import type { PlatformSession } from "./platform-session.js";

const formats = ["json", "env", "secret"] as const;

export interface CredentialsOptions {
  readonly format: (typeof formats)[number];
  readonly prefix?: string;
  readonly output?: string;
  readonly secretName?: string;
}

/** Of the commands that give credentials away. */
export function withCredentialsOptions(command: Command): Command {
  return command
    .addOption(
      new Option("--format <format>", "as JSON, as variables of a shell, or as the manifest of a Kubernetes Secret")
        .choices([...formats])
        .default("json"),
    )
    .option("--prefix <text>", "what the names of --format env begin with (default: the instance's name)", parsePrefix)
    .option("--secret-name <name>", "of --format secret (default: INSTANCE-BINDING)", parseSecretName)
    .option("-o, --output <file>", "write them to a file that only you can read, instead of the standard output");
}

/** Asks for the credentials of a binding, and prints or writes them. */
export async function putCredentials(
  session: PlatformSession,
  instance: string,
  binding: string,
  options: CredentialsOptions,
): Promise<void> {
  const asking = session.askWith({});
  await asking.ask("credentials", { space: session.space, instance, binding });
  const text = credentialsText(asking.text(), { instance, binding }, options);
  if (options.output === undefined) {
    session.surroundings.stdout.write(text);
    return;
  }
  const unfinished = `${options.output}.${process.pid}`;
  try {
    await writeFile(unfinished, text, { mode: 0o600 });
    await chmod(unfinished, 0o600);
    await rename(unfinished, options.output);
  } catch (error) {
    throw new CommandError("usage", `${options.output} cannot be written (${(error as NodeJS.ErrnoException).code})`);
  }
  session.surroundings.stderr.write(`the credentials are in ${options.output}\n`);
}

/**
 * What the broker answered to the bind (JSON), in the wanted form. As JSON it is all of it, as it was written; as variables or as a Secret it is
 * the credentials, in which every number is as it was written, too: `JSON.parse` would round one beyond 2^53.
 */
export function credentialsText(
  answer: string,
  { instance, binding }: { readonly instance: string; readonly binding: string },
  options: CredentialsOptions,
): string {
  if (options.format === "json") return `${harmless(answer)}\n`;
  const { credentials = {} } = JSON.parse(
    numbersAsTexts(answer, options.format === "env" ? "" : numberMark),
  ) as JsonObject;
  if (!isJsonObject(credentials)) throw new CommandError("failed", "the credentials are no JSON object");
  if (options.format === "env") return credentialsAsEnv(credentials, options.prefix ?? prefixOf(instance));
  const name = options.secretName ?? secretNameOf(`${instance}-${binding}`);
  return secretManifest(name, credentials);
}

/** In base64, as Kubernetes keeps them: whatever stands in a value, the manifest is plain. */
function secretManifest(name: string, credentials: JsonObject): string {
  const entries = Object.entries(credentials);
  const wrong = entries.find(([key]) => !/^[-._a-zA-Z0-9]{1,253}$/.test(key));
  if (wrong !== undefined)
    throw new CommandError("failed", `a Secret cannot have the key ${JSON.stringify(wrong[0])}; use --format json`);
  const lines = entries.map(([key, value]) => {
    const text = typeof value === "string" ? value.replace(numberMark, "") : numbersBack(JSON.stringify(value));
    return `  ${JSON.stringify(key)}: ${Buffer.from(text).toString("base64")}\n`;
  });
  const data = lines.length === 0 ? "data: {}\n" : `data:\n${lines.join("")}`;
  return `apiVersion: v1\nkind: Secret\nmetadata:\n  name: ${name}\ntype: Opaque\n${data}`;
}

/** Characters that a terminal might obey stand only in texts of JSON, where an escape means the same. */
function harmless(json: string): string {
  return json.replaceAll(
    /[\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

/** The nearest name that Kubernetes takes. */
function secretNameOf(text: string): string {
  const name = text
    .toLowerCase()
    .replaceAll(/[^a-z0-9.-]+/g, "-")
    .slice(0, 253)
    .replaceAll(/^[^a-z0-9]+|[^a-z0-9]+$/g, "");
  return name === "" ? "credentials" : name;
}

function parseSecretName(text: string): string {
  if (!/^[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?$/.test(text))
    throw new InvalidArgumentError("It must consist of small letters, digits, dots and hyphens.");
  return text;
}

function parsePrefix(text: string): string {
  if (!/^[A-Za-z0-9_]*$/.test(text))
    throw new InvalidArgumentError("It must consist of letters, digits and underscores.");
  return text;
}
