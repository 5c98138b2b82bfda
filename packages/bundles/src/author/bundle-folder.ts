import { constants } from "node:fs";
import { access, stat } from "node:fs/promises";
import { join, resolve } from "node:path";
import type { BundleSpec, SpecProblem } from "../formats/bundle-spec.js";
import { parseBundle } from "../formats/parse-bundle.js";
import { findLinkOut } from "../sources/extract-files.js";
import { decodeUtf8 } from "../sources/label-bundle.js";
import { readFolder } from "../sources/read-folder.js";
import type { Artifact } from "../sources/source.js";
import { defaultSourceLimits } from "../sources/source-limits.js";
import { AuthorError } from "./author-error.js";
import { lintBundle } from "./lint-bundle.js";

/** The folder of a bundle that can be used. */
export interface BundleFolder {
  /** Absolute. */
  readonly folder: string;
  /** The bytes of osbert.yaml, or of apb.yml. */
  readonly bytes: Buffer;
  readonly spec: BundleSpec;
  readonly artifact: Extract<Artifact, { readonly kind: "files" }>;
}

/** What is to be said of a folder, with the name of the file that the lines are of. */
export interface FolderLint {
  readonly file: string;
  readonly problems: readonly SpecProblem[];
}

/** All that is wrong with the folder of a bundle: its file, its program and its links. */
export async function lintFolder(folder: string): Promise<FolderLint> {
  const { file, text, parsed } = await readBundleFile(folder);
  const problems = lintBundle(text, file);
  if (parsed.kind === "invalid") return { file, problems };
  return { file, problems: [...problems, ...(await fileProblems(folder, parsed.spec))] };
}

/** Opens the folder of a bundle. One that could not be used is thrown as an AuthorError with all its problems. */
export async function openBundleFolder(folder: string): Promise<BundleFolder> {
  const { file, bytes, digest, parsed } = await readBundleFile(folder);
  const problems = parsed.kind === "invalid" ? parsed.problems : await fileProblems(folder, parsed.spec);
  const [found] = problems.filter(({ advice }) => !advice);
  if (parsed.kind === "invalid" || found !== undefined)
    throw new AuthorError(
      `${join(folder, file)}: ${problems.map(({ path, message }) => `${path} ${message}`.trim()).join("; ")}`,
    );
  const { spec } = parsed;
  return { folder: resolve(folder), bytes, spec, artifact: { kind: "files", repository: spec.name, digest } };
}

async function readBundleFile(folder: string) {
  const status = await stat(folder).catch(() => null);
  if (status?.isDirectory() !== true) throw new AuthorError(`${folder} is not a folder`);
  const { spec, digest } = await readFolder(folder, defaultSourceLimits, folder, new AbortController().signal);
  if (spec === null)
    throw new AuthorError(`${folder} has neither osbert.yaml nor apb.yml; \`osbert bundle new\` makes a bundle`);
  const { format, bytes } = spec;
  const file = format === "apb" ? "apb.yml" : "osbert.yaml";
  if (bytes.length > defaultSourceLimits.specBytes)
    throw new AuthorError(`${file} is larger than ${defaultSourceLimits.specBytes} bytes`);
  const text = decodeUtf8(bytes);
  if (text === undefined) throw new AuthorError(`${file} is not UTF-8`);
  // As a folder's source reads it: without an image, credentials come by a file.
  const parsed = parseBundle({ format, text, runtime: format === "apb" ? 2 : null });
  return { file, text, bytes, digest, parsed };
}

/** What the file cannot tell: a program of the bundle's own must be there and may be run, and links must stay inside. */
async function fileProblems(folder: string, { command }: BundleSpec): Promise<readonly SpecProblem[]> {
  const problems: SpecProblem[] = [];
  const problem = (path: string, message: string) => problems.push({ path, message, line: null, advice: false });
  const program = command?.[0];
  if (program?.startsWith("./") === true) {
    const path = join(folder, program);
    if ((await stat(path).catch(() => null))?.isFile() !== true)
      problem("command", `names ${program}, which is no file of the bundle`);
    else if (!(await canRun(path))) problem("command", `names ${program}, which may not be run; chmod +x ${program}`);
  }
  const link = await findLinkOut(folder);
  if (link !== null) problem("", `the link ${link} leads out of the folder, or to nothing`);
  return problems;
}

async function canRun(path: string): Promise<boolean> {
  return access(path, constants.X_OK).then(
    () => true,
    () => false,
  );
}
