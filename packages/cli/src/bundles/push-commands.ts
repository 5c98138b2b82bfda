import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { pushLimits } from "@osbert/bundles";
import type { bundleDescriptions } from "@osbert/bundles/admin";
import { AuthorError, buildBundle, openBundleFolder, readOciArchive } from "@osbert/bundles/author";
import type { Shaped } from "@osbert/server/client";
import { type Command, InvalidArgumentError, Option } from "commander";
import { type PageChoice, withAdminOptions, withPageOptions } from "../admin/admin-command-options.js";
import type { AdminOptions } from "../admin/admin-session.js";
import { type ChangeOptions, changeCommand } from "../admin/change-command.js";
import { printList, say } from "../admin/print.js";
import { CommandError } from "../client/exit-status.js";
import type { Surroundings } from "../client/surroundings.js";
import { parseDurationMs } from "../duration.js";
import { withExamples } from "../examples-of.js";
import { runBundleCommand } from "./bundle-command.js";

type Pushed = Shaped<(typeof bundleDescriptions)["push"]["answer"]>;

interface AddOptions extends ChangeOptions {
  readonly repository?: string;
  readonly tag?: string;
  /** Milliseconds. */
  readonly ttl?: number;
  readonly image?: string;
  readonly runtime?: string;
}

interface RemoveOptions extends ChangeOptions {
  readonly all?: true;
  readonly force?: true;
}

/** The commands for bundles that no registry has: they are sent to the broker itself, whose source of type `push` offers them. */
export function registerPushCommands(bundles: Command, surroundings: Surroundings): void {
  registerAdd(bundles, surroundings);
  registerRemove(bundles, surroundings);
  registerPushed(bundles, surroundings);
}

function registerAdd(bundles: Command, surroundings: Surroundings): void {
  changeCommand(bundles, {
    name: "add",
    summary: "send a bundle to the broker",
    description: `Sends a bundle to a broker that has a source of type push, without a registry: its folder, or an archive of \`osbert bundle build\`, of at most ${pushLimits.bytes / 1_048_576} MiB. All replicas of the broker offer it at once. A classic bundle (apb.yml) is sent by the name of its image.`,
    arguments: [["<folder-or-archive>", "of the bundle"]],
    options: (command) =>
      command
        .option("--repository <name>", "what it is called there (default: the name in its description)")
        .option("--tag <tag>", "another one than latest is another service", "latest")
        .option("--ttl <time>", "how long it is offered, such as 12h or 7d (default: until it is removed)", parseTtl)
        .option("--image <image>", "of a classic bundle: HOST/REPOSITORY@sha256:…")
        .addOption(
          new Option("--runtime <number>", "of a classic bundle; those of 2 need Kubernetes")
            .choices(["1", "2"])
            .default("1"),
        ),
    examples: [
      { does: "the bundle in a folder", command: "osbert bundles add team-folder --reason 'a first try'" },
      {
        does: "for a week, beside the one that is offered",
        command: "osbert bundles add team-folder --tag next --ttl 7d --reason 'a test of the new version'",
      },
    ],
  }).action((path: string, options: AddOptions) =>
    runBundleCommand(options, surroundings, `add ${path}`, async (ask, session) => {
      const { reason, repository, tag, ttl } = options;
      const content = await contentOf(path, options).catch(authorTrouble);
      const about = { reason, repository, tag, ...(ttl !== undefined && { ttl_seconds: ttl / 1_000 }) };
      const answer = await ask("push", {}, { body: { ...about, ...content } });
      say(session, answer, lineOf(answer));
    }),
  );
}

function registerRemove(bundles: Command, surroundings: Surroundings): void {
  changeCommand(bundles, {
    name: "remove",
    summary: "take a bundle back that was sent to the broker",
    description:
      "Takes bundles out of the catalog that were added with `osbert bundles add`. While there are instances of one it is refused; with --force it leaves the catalog, and its instances stay and can be bound, updated and deleted.",
    arguments: [["[spec...]", "which ones, as `osbert bundles pushed` shows them"]],
    options: (command) => command.option("--all", "all of them").option("--force", "also while there are instances"),
    examples: [{ does: "the test is over", command: "osbert bundles remove team-folder:next --reason 'tested'" }],
  }).action((specs: readonly string[], options: RemoveOptions) =>
    runBundleCommand(options, surroundings, "remove what was pushed", async (ask, session) => {
      const { reason, force = false, all = false } = options;
      if (all === specs.length > 0) throw new CommandError("usage", "name what is to be removed, or use --all");
      const body = { reason, force };
      let removed = all ? (await ask("removeAllPushed", {}, { body })).removed : 0;
      for (const spec of specs) removed += (await ask("removePushed", { spec }, { body })).removed;
      say(session, { removed }, `${removed} ${removed === 1 ? "bundle was" : "bundles were"} removed`);
    }),
  );
}

function registerPushed(bundles: Command, surroundings: Surroundings): void {
  const command = bundles
    .command("pushed")
    .summary("list the bundles that were sent to the broker")
    .description("Lists the bundles that were added with `osbert bundles add`, with who did and how long they stay.")
    .action((options: AdminOptions & PageChoice) =>
      runBundleCommand(options, surroundings, "list what was pushed", async (ask, session) => {
        const headings = ["SPEC", "DIGEST", "ADDED", "BY", "UNTIL"];
        const row = (item: Pushed) => [item.spec, item.digest, item.pushed_at, item.by, item.expires_at ?? "-"];
        await printList(session, (query) => ask("pushed", {}, { query }), options, headings, row, "there are none");
      }),
    );
  withAdminOptions(withPageOptions(command));
  withExamples(command, [{ does: "what is there without a registry", command: "osbert bundles pushed" }]);
}

function lineOf({ spec, digest, source, expires_at: until }: Pushed): string {
  return `${spec} is offered by the source ${source}${until === null ? "" : ` until ${until}`}: ${digest}`;
}

/** The body of a push, but for what is said about it. */
async function contentOf(path: string, { image, runtime }: AddOptions): Promise<object> {
  const isFolder = (await stat(path).catch(() => null))?.isDirectory() === true;
  if (!isFolder && image === undefined) {
    const { manifest, blobs } = await readOciArchive(path, await readFileOf(path));
    return artifactOf(manifest, blobs);
  }
  if (image !== undefined) {
    const spec = isFolder ? (await openBundleFolder(path)).bytes : await readFileOf(path);
    return { image: { reference: image, spec: spec.toString("utf8"), runtime: Number(runtime) } };
  }
  const folder = await openBundleFolder(path);
  if (folder.spec.format === "apb")
    throw new CommandError(
      "usage",
      `${join(path, "apb.yml")} is of a classic bundle, which is an image: name it with --image HOST/REPOSITORY@sha256:…`,
    );
  const { manifest, blobs } = await buildBundle(folder);
  return artifactOf(
    manifest.bytes,
    blobs.map(({ bytes }) => bytes),
  );
}

function artifactOf(manifest: Buffer, blobs: readonly Buffer[]): object {
  const size = [manifest, ...blobs].reduce((sum, { length }) => sum + length, 0);
  if (size > pushLimits.bytes)
    throw new CommandError(
      "usage",
      `the bundle has ${size} bytes, and at most ${pushLimits.bytes} can be sent; push it to a registry: osbert bundle push`,
    );
  return { artifact: { manifest: manifest.toString("base64"), blobs: blobs.map((blob) => blob.toString("base64")) } };
}

/** More than an archive of the largest bundle is not read. */
async function readFileOf(path: string): Promise<Buffer> {
  const most = pushLimits.bytes + 1_048_576;
  const { size } = await stat(path).catch((error: NodeJS.ErrnoException) => {
    throw new CommandError("usage", `${path} cannot be read (${error.code})`);
  });
  if (size > most) throw new CommandError("usage", `${path} is larger than ${most} bytes; push it to a registry`);
  return readFile(path);
}

function authorTrouble(error: unknown): never {
  throw error instanceof AuthorError ? new CommandError("usage", error.message) : error;
}

function parseTtl(text: string): number {
  const ms = parseDurationMs(text);
  if (ms === undefined || ms < 1_000) throw new InvalidArgumentError("It must look like 30m, 12h or 7d.");
  return ms;
}
