import { randomBytes } from "node:crypto";
import { readFile } from "node:fs/promises";
import {
  calls,
  type MisbehavingCatalog,
  MisbehaviourError,
  misbehavingCatalogs,
  namedMisbehaviours,
  parseRules,
  type Rule,
  startMisbehaving,
} from "@osbert/platform/testing";
import type { Json } from "@osbert/protocol";
import { type Command, InvalidArgumentError, Option } from "commander";
import { table } from "../client/table.js";
import { withExamples } from "../examples-of.js";
import { reportErrors, UserError } from "../user-error.js";

interface MisbehaveOptions {
  readonly host: string;
  readonly port: number;
  readonly credentialsFile?: string;
  readonly do: readonly Rule[];
  readonly rules?: string;
  readonly catalog: MisbehavingCatalog;
  readonly catalogFile?: string;
  readonly chaos?: number;
  readonly rate?: number;
  readonly list?: boolean;
}

/** `osbert misbehave`: a broker to try platforms with. */
export function registerMisbehave(program: Command): void {
  const command = program
    .command("misbehave")
    .helpGroup("Commands for those who write a platform:")
    .summary("run a broker that misbehaves as it is told")
    .description(
      "Runs a broker that keeps instances and bindings in memory and breaks the specification as it is told: by options, by the name of a plan, by `misbehave` in the parameters of a request, or while it runs by PUT /misbehave/rules. Ends with Ctrl-C, and forgets everything.",
    )
    .option("--host <address>", "where it listens", "127.0.0.1")
    .option("--port <number>", "0 is any that is free", parsePort, 8790)
    .option(
      "--credentials-file <file>",
      "a file with name:password (else OSBERT_MISBEHAVE_LOGIN=name:password, else a password is made and printed)",
    )
    .option(
      "--do <[call=]names>",
      "what becomes of every request, or of those of a call: one name for always, or several in turn, as in provision=500,hang,good",
      collectRule,
      [],
    )
    .option("--rules <file>", "rules in JSON, as for PUT /misbehave/rules; they come after those of --do")
    .addOption(
      new Option("--catalog <name>", "which catalog it has")
        .choices(Object.keys(misbehavingCatalogs))
        .default("usual" satisfies MisbehavingCatalog),
    )
    .option("--catalog-file <file>", "a catalog of your own, right or wrong, in JSON")
    .option("--chaos <seed>", "misbehave by chance; the same seed does the same", parseSeed)
    .option("--rate <number>", "with --chaos: how many of all requests, from 0 to 1 (default 0.3)", parseRate)
    .option("--list", "list the names of all misbehaviours, and end")
    .action((options: MisbehaveOptions) =>
      reportErrors(() => {
        if (!options.list) return run(options);
        process.stdout.write(`${listText()}\n`);
        return Promise.resolve();
      }),
    );
  withExamples(command, [
    { does: "a good broker, but for plans that are named after what they do", command: "osbert misbehave" },
    {
      does: "each first attempt to create is done and its answer lost; the next ones are good",
      command: "osbert misbehave --do provision=done-reset,good",
    },
    { does: "by chance, the same at each start", command: "osbert misbehave --chaos 7 --rate 0.5" },
    { does: "what it can do", command: "osbert misbehave --list" },
  ]);
}

async function run(options: MisbehaveOptions): Promise<void> {
  const login = await loginOf(options.credentialsFile);
  const broker = await startMisbehaving({
    host: options.host,
    port: options.port,
    credentials: login,
    rules: [...options.do, ...(options.rules === undefined ? [] : await rulesIn(options.rules))],
    catalog: options.catalogFile === undefined ? options.catalog : { value: await jsonIn(options.catalogFile) },
    ...(options.chaos !== undefined && {
      chaos: { seed: options.chaos, ...(options.rate !== undefined && { rate: options.rate }) },
    }),
  }).catch((error: NodeJS.ErrnoException) => {
    throw new UserError(`it cannot listen at ${options.host}, port ${options.port} (${error.code})`);
  });
  process.stdout.write(`${startText(broker.url, login)}\n`);
  await new Promise<void>((resolve) => {
    process.once("SIGINT", () => resolve());
    process.once("SIGTERM", () => resolve());
  });
  await broker.stop();
}

interface Login {
  readonly username: string;
  readonly password: string;
  /** It is nobody's secret yet: it is to be shown. */
  readonly made: boolean;
}

async function loginOf(file: string | undefined): Promise<Login> {
  const given = file === undefined ? (process.env.OSBERT_MISBEHAVE_LOGIN ?? "") : await textIn(file);
  if (given === "" && file === undefined)
    return { username: "osbert", password: randomBytes(12).toString("base64url"), made: true };
  const [line = ""] = given.split(/\r?\n/, 1);
  const colon = line.indexOf(":");
  if (colon < 1) throw new UserError(`${file ?? "OSBERT_MISBEHAVE_LOGIN"} must look like name:password`);
  return { username: line.slice(0, colon), password: line.slice(colon + 1), made: false };
}

function startText(url: string, { username, password, made }: Login): string {
  return [
    `a misbehaving broker answers at ${url}`,
    ...(made ? [`its name and password: ${username}:${password}`] : []),
    "",
    "what it has:        GET /misbehave/state",
    "what it was asked:  GET /misbehave/requests",
    "what it is to do:   PUT /misbehave/rules",
    "",
    "Ctrl-C ends it, and it forgets everything",
  ].join("\n");
}

function listText(): string {
  const rows = Object.entries(namedMisbehaviours).map(([name, one]) => [
    name,
    one.does,
    one.class ?? "as a good answer",
  ]);
  return table(["NAME", "WHAT IT DOES", "HOW A PLATFORM TAKES IT"], rows);
}

/** `provision=500,hang`: a rule. One name stays, several are used up. */
function collectRule(text: string, before: readonly Rule[]): readonly Rule[] {
  const [, call, names = ""] = /^(?:([a-z-]+)=)?(.*)$/.exec(text) ?? [];
  const script = names.includes(",") ? names.split(",") : names;
  try {
    return [...before, ...parseRules([{ ...(call !== undefined && { call }), do: script }])];
  } catch (error) {
    if (!(error instanceof MisbehaviourError)) throw error;
    throw new InvalidArgumentError(`It must be [CALL=]NAME[,NAME…], with a call of ${calls.join(", ")}; see --list.`);
  }
}

async function rulesIn(file: string): Promise<readonly Rule[]> {
  try {
    return parseRules(await jsonIn(file));
  } catch (error) {
    if (!(error instanceof MisbehaviourError)) throw error;
    throw new UserError(`${file}: ${error.message}`);
  }
}

async function jsonIn(file: string): Promise<Json> {
  try {
    return JSON.parse(await textIn(file)) as Json;
  } catch (error) {
    if (error instanceof UserError) throw error;
    throw new UserError(`${file} is no JSON`);
  }
}

async function textIn(file: string): Promise<string> {
  return readFile(file, "utf8").catch((error: NodeJS.ErrnoException) => {
    throw new UserError(`${file} cannot be read (${error.code})`);
  });
}

function parsePort(text: string): number {
  return parseNumber(text, 65_535, "It must be a whole number from 0 to 65535.");
}

function parseSeed(text: string): number {
  return parseNumber(text, Number.MAX_SAFE_INTEGER, "It must be a whole number.");
}

function parseNumber(text: string, most: number, fault: string): number {
  const number = Number(text);
  if (!/^[0-9]+$/.test(text) || number > most) throw new InvalidArgumentError(fault);
  return number;
}

function parseRate(text: string): number {
  const rate = Number(text);
  if (text === "" || !(rate >= 0 && rate <= 1)) throw new InvalidArgumentError("It must be a number from 0 to 1.");
  return rate;
}
