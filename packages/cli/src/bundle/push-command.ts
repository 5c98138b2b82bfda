import { readFile } from "node:fs/promises";
import { type CredentialsPlace, SourceError } from "@osbert/bundles";
import { buildBundle, openBundleFolder, parsePushTarget, pushBundle } from "@osbert/bundles/author";
import type { Command } from "commander";
import { withExamples } from "../examples-of.js";
import { UserError } from "../user-error.js";
import { type BundleCommand, runBundleCommand } from "./run-bundle-command.js";

interface Options {
  readonly credentialsFile?: string;
  readonly tokenHost?: readonly string[];
  readonly ca?: string;
  readonly plainHttp?: true;
}

/** `osbert bundle push`: a bundle into a registry. */
export function registerBundlePush(bundle: Command): void {
  const command = bundle
    .command("push")
    .summary("push a bundle to a registry")
    .description(
      "Builds the bundle in a folder and pushes it to a registry, without a daemon, and prints the target with its digest. A source offers the tag latest, unless its settings name others. Credentials come from OSBERT_REGISTRY_USERNAME and OSBERT_REGISTRY_PASSWORD, from OSBERT_REGISTRY_TOKEN, or from a file; never from the command line, which every user of the machine can read.",
    )
    .argument("<folder-or-target>", "of the bundle; left out, it is this folder")
    .argument("[target]", "REGISTRY/REPO:TAG")
    .option("--credentials-file <file>", "a file in YAML with username and password, or with token")
    .option("--token-host <host...>", "another host that may be given the credentials for a token of the registry")
    .option("--ca <file>", "authorities in PEM that are trusted besides the usual ones")
    .option("--plain-http", "without TLS, for a registry on this machine")
    .action((first: string, second: string | undefined, options: Options) =>
      runBundleCommand((context) => push(second === undefined ? "." : first, second ?? first, options, context)),
    );
  withExamples(command, [
    {
      does: "the bundle in this folder, where sources look for it",
      command: "osbert bundle push registry.example/team/team-folder:latest",
    },
    {
      does: "the same under its version, for sources with a range of versions",
      command: "osbert bundle push registry.example/team/team-folder:0.1.0",
    },
    {
      does: "with credentials from a file",
      command: "osbert bundle push team-folder registry.example/team/team-folder:latest --credentials-file login.yaml",
    },
  ]);
}

async function push(folder: string, target: string, options: Options, { signal }: BundleCommand): Promise<boolean> {
  const { host, repository, tag } = parsePushTarget(target);
  const built = await buildBundle(await openBundleFolder(folder));
  const digest = await pushBundle(
    built,
    { host, repository, tag },
    {
      ...{ plainHttp: options.plainHttp === true, credentials: credentialsPlace(options.credentialsFile, process.env) },
      ...{ tokenHosts: options.tokenHost ?? [], tls: { ca: options.ca ?? null, verify: true } },
    },
    { readFile: (path) => readFile(path, "utf8"), environment: (name) => process.env[name], folder: process.cwd() },
    signal,
  ).catch((error: unknown) => {
    if (!(error instanceof SourceError) || error.failure !== "no tls") throw error;
    throw new UserError(`${host} does not speak TLS; add --plain-http if it is a registry of yours`, { cause: error });
  });
  process.stdout.write(`${host}/${repository}:${tag}@${digest}\n`);
  return true;
}

/** A file that is named counts before the environment. */
function credentialsPlace(
  file: string | undefined,
  env: Readonly<Record<string, string | undefined>>,
): CredentialsPlace {
  if (file !== undefined) return { kind: "file", path: file };
  const has = (name: string) => (env[name] ?? "") !== "";
  const [username, password, token] = ["OSBERT_REGISTRY_USERNAME", "OSBERT_REGISTRY_PASSWORD", "OSBERT_REGISTRY_TOKEN"];
  if (has(token) && (has(username) || has(password)))
    throw new UserError(`both ${token} and ${username} or ${password} are set; unset one of them`);
  if (has(token)) return { kind: "token", token: { kind: "environment", name: token } };
  if (!has(username) && !has(password)) return { kind: "anonymous" };
  return {
    kind: "basic",
    username: { kind: "environment", name: username },
    password: { kind: "environment", name: password },
  };
}
