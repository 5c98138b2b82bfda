import { randomUUID } from "node:crypto";
import { mkdir, rename, rm, stat, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { type BuiltBundle, buildBundle, ociArchive, ociLayout, openBundleFolder } from "@osbert/bundles/author";
import type { Command } from "commander";
import { withExamples } from "../examples-of.js";
import { runBundleCommand } from "./run-bundle-command.js";

/** `osbert bundle build`: an OCI artifact, without a daemon. */
export function registerBundleBuild(bundle: Command): void {
  const command = bundle
    .command("build")
    .summary("make an OCI artifact of a bundle")
    .description(
      "Makes an OCI artifact of the bundle in a folder, without a daemon, and prints its digest. The same files make the same digest, on every machine: times, owners and the order of a file system do not count. Git's own folder is left out.",
    )
    .argument("[folder]", "of the bundle", ".")
    .requiredOption(
      "--out <path>",
      "where to: a file (an OCI archive), or a folder that is there or ends with / (an OCI image layout)",
    )
    .action((folder: string, { out }: { readonly out: string }) => runBundleCommand(() => build(folder, out)));
  withExamples(command, [
    { does: "one file, which skopeo and others copy from", command: "osbert bundle build --out /tmp/team-folder.tar" },
  ]);
}

async function build(folder: string, out: string): Promise<boolean> {
  const built = await buildBundle(await openBundleFolder(folder));
  const isFolder = out.endsWith("/") || (await stat(out).catch(() => null))?.isDirectory() === true;
  if (isFolder) await writeLayout(built, out);
  else await writeWhole(out, ociArchive(built));
  process.stdout.write(`${built.manifest.digest}\n`);
  return true;
}

/** The index comes last: what it names is there. */
async function writeLayout(built: BuiltBundle, out: string): Promise<void> {
  for (const { path, bytes } of ociLayout(built)) {
    await mkdir(dirname(join(out, path)), { recursive: true });
    await writeWhole(join(out, path), bytes);
  }
}

async function writeWhole(path: string, bytes: Buffer): Promise<void> {
  const made = `${path}.${randomUUID()}`;
  try {
    await writeFile(made, bytes, { flag: "wx" });
    await rename(made, path);
  } catch (error) {
    await rm(made, { force: true });
    throw error;
  }
}
