import { parseArgs } from "node:util";
import { CannotCreate, createProject } from "./create-project.js";

const usage = `Usage: npm create osbert FOLDER

Makes a project in a new folder: a broker with one service, its test, a Dockerfile and a README.

  --tarballs FOLDER   take Osbert's packages from this folder, which npm run pack has filled
  --help              show this
`;

/** The program: makes a project and tells what to do next. Ends with 2 if it was called wrongly, with 1 if it cannot be made. */
export function main(args: readonly string[]): void {
  const asked = read(args);
  if (asked === undefined) {
    process.stderr.write(usage);
    process.exitCode = 2;
    return;
  }
  if (asked.help) {
    process.stdout.write(usage);
    return;
  }
  try {
    createProject(asked.folder, asked);
    process.stdout.write(nextSteps(asked.folder, asked.tarballs !== undefined));
  } catch (error) {
    if (!(error instanceof CannotCreate)) throw error;
    process.stderr.write(`error: ${error.message}\n`);
    process.exitCode = 1;
  }
}

/** Without its own copies of the packages, a project cannot be installed for as long as no registry has them. */
function nextSteps(folder: string, hasPackages: boolean): string {
  const install = hasPackages ? "npm install" : "npm install OSBERT/tarballs/osbert-*.tgz";
  const where = "Osbert's packages are not published yet. OSBERT is a checkout of it, in which npm run pack was run.\n";
  const steps = [`cd ${folder}`, install, "npm test", "npm start"].map((step) => `  ${step}\n`);
  return `${folder} is made. Next:\n\n${steps.join("")}${hasPackages ? "" : `\n${where}`}`;
}

type Asked = { readonly help: true } | { readonly help: false; readonly folder: string; readonly tarballs?: string };

function read(args: readonly string[]): Asked | undefined {
  try {
    const { values, positionals } = parseArgs({
      args: [...args],
      options: { tarballs: { type: "string" }, help: { type: "boolean", short: "h" } },
      allowPositionals: true,
    });
    if (values.help) return { help: true };
    const [folder, ...more] = positionals;
    if (folder === undefined || more.length > 0) return undefined;
    return { help: false, folder, ...(values.tarballs !== undefined && { tarballs: values.tarballs }) };
  } catch {
    return undefined;
  }
}
