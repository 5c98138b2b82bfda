import { constants } from "node:fs";
import { access, readFile } from "node:fs/promises";
import { delimiter, join } from "node:path";
import type { TryOptions, TryRunner } from "@osbert/bundles/author";
import type { JsonObject } from "@osbert/protocol";
import { type Command, InvalidArgumentError, Option } from "commander";
import { parseDocument } from "../client/parameters.js";
import { readBounded } from "../client/read-bounded.js";
import { UserError } from "../user-error.js";

/** Options of the commands that run a bundle. */
export interface RunOptions {
  readonly plan?: string;
  readonly unsandboxed?: true;
  readonly network?: true;
  readonly runner: "process" | "container";
  readonly image?: string;
  readonly engine?: string;
  readonly secret: ReadonlyMap<string, string>;
}

export function addRunOptions(command: Command): Command {
  return command
    .option("--plan <name>", "the plan (default: the first of the bundle)")
    .option("--network", "let a bundle that asks for the network have it")
    .option("--unsandboxed", "run it without bubblewrap: it can do all that you can")
    .addOption(
      new Option("--runner <kind>", "what runs it").choices(["process", "container"]).default("process" as const),
    )
    .option(
      "--image <image>",
      "for containers: the bundle's own image, or for a bundle with a command what its files are run in",
    )
    .option("--engine <program>", "for containers: podman, docker, or a path to one (default: podman, or else docker)")
    .addOption(
      new Option("--secret <key=file>", "what an operator would give it, from a file; for each key once more")
        .argParser(addSecret)
        .default(new Map(), "none"),
    );
}

/** Files by keys. The text itself is never on a command line, which every user of the machine can read. */
function addSecret(text: string, before: ReadonlyMap<string, string>): ReadonlyMap<string, string> {
  const [, key, file] = /^([A-Za-z_][A-Za-z0-9_.-]{0,99})=(.+)$/.exec(text) ?? [];
  if (key === undefined || file === undefined)
    throw new InvalidArgumentError("It must be a key, = and the name of a file, such as password=./password.txt.");
  return new Map([...before, [key, file]]);
}

export async function tryOptions(
  options: RunOptions,
): Promise<Pick<TryOptions, "runner" | "network"> & Required<Pick<TryOptions, "secrets">>> {
  return {
    runner: await runnerOf(options),
    network: options.network === true,
    secrets: options.secret.size === 0 ? {} : { [localSecret]: await readSecrets(options.secret) },
  };
}

/** A classic bundle finds it as apb-local. */
const localSecret = "local";

async function readSecrets(files: ReadonlyMap<string, string>): Promise<Readonly<Record<string, string>>> {
  const read = async ([key, file]: readonly [string, string]) =>
    // Editors and `echo` end a file with a line break that is no part of the secret.
    [key, (await readFile(file, "utf8")).replace(/\r?\n$/, "")] as const;
  return Object.fromEntries(await Promise.all(Array.from(files, read)));
}

async function runnerOf({ runner, unsandboxed, image, engine }: RunOptions): Promise<TryRunner> {
  if (runner === "process") {
    if (image !== undefined || engine !== undefined)
      throw new UserError("--image and --engine are for containers; add --runner container");
    return { kind: "process", unsandboxed: unsandboxed === true };
  }
  if (unsandboxed === true) throw new UserError("--unsandboxed is for processes; a container is always shut in");
  if (image === undefined)
    throw new UserError("--runner container needs --image: the bundle's own, or one that its program can run in");
  return { kind: "container", engine: engine ?? (await findEngine()), image };
}

async function findEngine(): Promise<string> {
  for (const name of ["podman", "docker"])
    for (const folder of (process.env.PATH ?? "").split(delimiter))
      if (await isProgram(join(folder, name))) return name;
  throw new UserError("neither podman nor docker is here; install one, or name another program with --engine");
}

function isProgram(path: string): Promise<boolean> {
  return access(path, constants.X_OK).then(
    () => true,
    () => false,
  );
}

/** The object of an option that takes JSON or `@file`; an empty one where it is not given. */
export async function objectOf(text: string | undefined, option: string): Promise<JsonObject> {
  if (text === undefined) return {};
  return parseDocument(text, (file) => readBounded(file, { stdin: process.stdin }), option);
}
