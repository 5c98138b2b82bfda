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
    process.stdout.write(
      `${asked.folder} is made. Next:\n\n  cd ${asked.folder}\n  npm install\n  npm test\n  npm start\n`,
    );
  } catch (error) {
    if (!(error instanceof CannotCreate)) throw error;
    process.stderr.write(`error: ${error.message}\n`);
    process.exitCode = 1;
  }
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
