import type { Command } from "commander";
import { readLogin } from "../client/credentials.js";
import { CommandError, type ExitStatus, exitStatuses } from "../client/exit-status.js";
import { plainJson } from "../client/plain-text.js";
import { readBounded } from "../client/read-bounded.js";
import type { Surroundings } from "../client/surroundings.js";
import { table } from "../client/table.js";
import { withExamples } from "../examples-of.js";
import { ofPlatform, platformUrl } from "./platform-session.js";
import { reportFailure } from "./run-platform-command.js";
import { readTargets, removeTarget, saveTarget, targetsFolder, useTarget } from "./targets.js";

interface AddOptions {
  readonly space?: string;
  readonly credentialsFile?: string;
  readonly ca?: string;
}

/** `osbert platform target …`: platforms by name, so that no command has to say where and who. */
export function registerTargetCommands(platform: Command, surroundings: Surroundings): void {
  const target = platform
    .command("target")
    .summary("save where platforms are, and who you are there")
    .description("Targets are platforms by name. Logins are kept in files that only you can read.");
  const folder = () => targetsFolder(surroundings.env);

  const add = target
    .command("add")
    .summary("save a platform, and use it from now on")
    .description("Saves a platform under a name, with your login, and makes it the current one.")
    .argument("<name>", "how you call it")
    .argument("<url>", "where it is")
    .option("-S, --space <name>", "the space that commands are about, unless they say another")
    .option(
      "--credentials-file <file>",
      "a file with name:password, or with Bearer and a token; - is the standard input (else OSBERT_PLATFORM_LOGIN or OSBERT_PLATFORM_TOKEN)",
    )
    .option("--ca <file>", "the certificate (PEM) of the authority to trust for https")
    .action((name: string, url: string, options: AddOptions) =>
      run(surroundings, `save ${name}`, async () => {
        const login = await loginText(options.credentialsFile, surroundings);
        const saved = { url: platformUrl(url), space: options.space ?? null, ca: options.ca ?? null };
        await saveTarget(folder(), name, saved, login);
        surroundings.stdout.write(`${name} is saved, and is the current target\n`);
        return exitStatuses.succeeded.status;
      }),
    );
  withExamples(add, [
    {
      does: "with a password from a file",
      command: "osbert platform target add work https://platform.example --space team --credentials-file login.txt",
    },
  ]);

  const use = target
    .command("use")
    .summary("make a saved platform the current one")
    .description("Makes a saved platform the one that commands are about.")
    .argument("<name>", "how you call it")
    .action((name: string) =>
      run(surroundings, `use ${name}`, async () => {
        await useTarget(folder(), name);
        surroundings.stdout.write(`${name} is the current target\n`);
        return exitStatuses.succeeded.status;
      }),
    );
  withExamples(use, [{ does: "another one", command: "osbert platform target use work" }]);

  const list = target
    .command("list")
    .summary("list saved platforms")
    .description("Lists saved platforms. The current one has a star.")
    .option("--json", "one JSON document on the standard output")
    .action((options: { readonly json?: boolean }) =>
      run(surroundings, "list the targets", async () => {
        const { current, targets } = await readTargets(folder());
        const rows = Object.entries(targets).map(([name, { url, space }]) => [
          name === current ? "*" : "",
          name,
          url,
          space ?? "-",
        ]);
        const shown = rows.length === 0 ? "there are none" : table(["", "NAME", "URL", "SPACE"], rows);
        surroundings.stdout.write(`${options.json ? plainJson({ current, targets }) : shown}\n`);
        return exitStatuses.succeeded.status;
      }),
    );
  withExamples(list, [{ does: "which one is it?", command: "osbert platform target list" }]);

  const remove = target
    .command("remove")
    .summary("forget a saved platform and your login there")
    .description("Forgets a saved platform, and removes the file with your login.")
    .argument("<name>", "how you call it")
    .action((name: string) =>
      run(surroundings, `remove ${name}`, async () => {
        await removeTarget(folder(), name);
        surroundings.stdout.write(`${name} is forgotten\n`);
        return exitStatuses.succeeded.status;
      }),
    );
  withExamples(remove, [{ does: "one that is no more", command: "osbert platform target remove work" }]);
}

/** Looked at before it is saved: a login that cannot be one is not found out by the next command. */
async function loginText(file: string | undefined, surroundings: Surroundings): Promise<string> {
  const { OSBERT_PLATFORM_LOGIN: pair, OSBERT_PLATFORM_TOKEN: token } = surroundings.env;
  try {
    const login = await readLogin({ OSBERT_LOGIN: pair, OSBERT_TOKEN: token }, file, (name) =>
      readBounded(name, surroundings),
    );
    if (login === undefined)
      throw new CommandError("usage", "set OSBERT_LOGIN=name:password or OSBERT_TOKEN, or use --credentials-file");
    const { credentials } = login;
    return typeof credentials === "string" ? credentials : `${credentials.username}:${credentials.password}`;
  } catch (error) {
    if (!(error instanceof CommandError)) throw error;
    throw new CommandError("usage", ofPlatform(error.message));
  }
}

async function run(surroundings: Surroundings, doing: string, work: () => Promise<ExitStatus>): Promise<void> {
  try {
    surroundings.endWith(await work());
  } catch (error) {
    reportFailure(error, false, surroundings, doing);
  }
}
