import { execFile } from "node:child_process";
import { chmodSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { findProgram } from "../server-process.js";
import type { LeftOut } from "../servers.js";

const run = promisify(execFile);

/** The Go that builds the programs. */
export interface Go {
  /** Runs a command in a folder; answers with what it printed. */
  readonly go: (folder: string, ...args: readonly string[]) => Promise<string>;
  /** Where a module is, checked against its sum. */
  readonly module: (module: GoModule) => Promise<string>;
}

export interface GoModule {
  readonly path: string;
  readonly version: string;
  /** Of its content. Go's own database of sums says the same, where it can be asked. */
  readonly sum: string;
}

/** What the programs are written for. An older Go since 1.21 fetches this one as a module; so is one fetched for those that are older yet. */
const needed = { version: "1.24.6", minor: 24 };
const knowsToolchains = 21;

/** This machine's Go, or one that it fetches as it fetches modules: from where Go's settings say. */
export async function findGo(): Promise<Go | LeftOut> {
  const program = findProgram("go");
  if (program === undefined) return { leftOut: "no Go found; apt-get install golang-go" };
  const { stdout } = await run(program, ["version"], { env: { ...process.env, GOTOOLCHAIN: "local" } });
  const minor = Number(/go1\.(\d+)/.exec(stdout)?.[1]);
  if (minor >= needed.minor) return goAt(program, "local");
  if (minor >= knowsToolchains) return goAt(program, `go${needed.version}`);
  return goAt(await fetchToolchain(goAt(program, "local")), "local");
}

function goAt(program: string, toolchain: string): Go {
  const go: Go["go"] = async (folder, ...args) => {
    // A build takes minutes and every core: what else this machine does goes first, and it ends with who wanted it.
    const guard = findProgram("setpriv") === undefined ? [] : ["setpriv", "--pdeathsig", "KILL"];
    const command = ["-n", "19", ...guard, program, ...args];
    const env = { ...process.env, CGO_ENABLED: "0", GOFLAGS: "-buildvcs=false", GOTOOLCHAIN: toolchain, GOWORK: "off" };
    const { stdout } = await run("nice", command, { cwd: folder, env, maxBuffer: 2 ** 26 });
    return stdout;
  };
  return {
    go,
    async module({ path, version, sum }) {
      const found = await download(go, `${path}@${version}`);
      if (found.Sum !== sum) throw new Error(`${path}@${version} is not what it was: ${found.Sum}`);
      return found.Dir;
    },
  };
}

async function download(go: Go["go"], module: string): Promise<{ readonly Dir: string; readonly Sum: string }> {
  return JSON.parse(await go("/", "mod", "download", "-json", module));
}

async function fetchToolchain({ go }: Go): Promise<string> {
  const arch = (await go("/", "env", "GOARCH")).trim();
  const { Dir: folder } = await download(go, `golang.org/toolchain@v0.0.1-go${needed.version}.linux-${arch}`);
  // Modules carry no modes.
  for (const programs of [join(folder, "bin"), join(folder, "pkg", "tool", `linux_${arch}`)]) {
    for (const name of readdirSync(programs)) chmodSync(join(programs, name), 0o755);
  }
  return join(folder, "bin", "go");
}
