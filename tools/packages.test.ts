import { execFile, execFileSync, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { type NodeVersion, nodeReleases, provideNode } from "./node-versions.js";
import { pack } from "./pack.js";
import { required } from "./required.js";
import { snippetsOf } from "./snippets.js";

// What `npm run pack` makes, in a project of one's own: installed by the README's command where nothing of this repository is, compiled as
// strictly as its users may, and run with every Node.js that they have.

const run = promisify(execFile);
const scratch = mkdtempSync(join(tmpdir(), "osbert-packages-"));
const readme = readFileSync(join(dirname(fileURLToPath(import.meta.url)), "..", "README.md"), "utf8");
let tarballs: readonly string[] = [];

beforeAll(() => {
  tarballs = pack(join(scratch, "osbert", "tarballs"));
}, 240_000);
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

test("every package is packed, with its licence, without maps to sources that are not there, and without what only this repository reads", () => {
  expect(tarballs.map((path) => basename(path).replace(/-[\d.]+\.tgz$/, "")).sort()).toEqual(
    [
      "create-osbert",
      "osbert",
      "osbert-broker",
      "osbert-bundles",
      "osbert-journal",
      "osbert-journal-suites",
      "osbert-kubernetes",
      "osbert-platform",
      "osbert-protocol",
      "osbert-server",
    ].sort(),
  );
  for (const tarball of tarballs) {
    const folder = mkdtempSync(join(scratch, "unpacked-"));
    execFileSync("tar", ["-xzf", tarball, "-C", folder, "--strip-components=1"]);
    const files = readdirSync(folder, { recursive: true, encoding: "utf8" });
    expect(files).toEqual(expect.arrayContaining(["LICENSE", "README.md", "package.json"]));
    expect(files.filter((file) => /\.(map|tsbuildinfo)$|^src/.test(file))).toEqual([]);
    for (const file of files.filter((name) => /\.(js|ts|json)$/.test(name)))
      expect(readFileSync(join(folder, file), "utf8"), file).not.toMatch(/sourceMappingURL|@osbert\/source/);
  }
});

test("who runs a broker does not carry the suites that test a store", () => {
  const suites = tarballs.filter((path) => path.includes("suites"));
  expect(suites.map((path) => basename(dirname(path)))).toEqual(["for-store-authors"]);
  for (const tarball of tarballs.filter((path) => !suites.includes(path))) {
    const files = execFileSync("tar", ["-tzf", tarball], { encoding: "utf8" });
    expect(files).not.toMatch(/dist\/(conformance|crash)\//);
    const manifest = execFileSync("tar", ["-xzOf", tarball, "package/package.json"], { encoding: "utf8" });
    expect(manifest).not.toContain("journal-suites");
  }
});

describe.each(Object.keys(nodeReleases).map(Number) as (keyof typeof nodeReleases)[])("on Node.js %i", (major) => {
  test("the packages install into an empty project, compile with TypeScript 5.7 and 7, and run a broker", {
    timeout: 600_000,
  }, async () => {
    const version = required(`packages on Node.js ${major}`, await provideNode(major));
    if (version === undefined) return;
    const project = join(scratch, `node-${major}`);
    mkdirSync(project);
    writeFileSync(join(project, "package.json"), JSON.stringify({ type: "module", private: true }));
    const compilers = { "typescript-5.7": "5.7.3", "typescript-7": "7.0.2" };
    const [install = ""] = /^npm install .*$/m.exec(readme) ?? [];
    await run("sh", ["-ec", `${install} --engine-strict`], { cwd: project, env: version.env });
    await npm(version, project, [
      ...["install", "--engine-strict", `@types/node@${major}`],
      ...tarballs.filter((path) => path.includes("suites")),
      ...Object.entries(compilers).map(([name, release]) => `${name}@npm:typescript@${release}`),
    ]);

    const [broker] = snippetsOf(readme).filter(({ language }) => language === "ts");
    writeFileSync(join(project, "broker.ts"), (broker?.code ?? "").replace("port: 8080", "port: 0"));
    writeFileSync(join(project, "everything.ts"), importsOfEverything(project));
    writeFileSync(join(project, "tsconfig.json"), JSON.stringify({ compilerOptions, include: ["*.ts"] }));
    for (const compiler of Object.keys(compilers)) {
      const tsc = join(project, "node_modules", compiler, "bin", "tsc");
      await run(version.node, [tsc, "-p", project], { env: version.env }).catch(({ stdout }) => {
        throw new Error(`${compiler} says:\n${stdout}`);
      });
    }
    await run(version.node, ["compiled/everything.js"], { cwd: project, env: version.env });
    expect(await greeting(version, project)).toBe("Guten Tag, b1");
    const { stdout } = await run(join(project, "node_modules/.bin/osbert"), ["--version"], { env: version.env });
    expect(stdout.trim()).toBe("0.1.0");
  });
});

test("those who install the library alone, or beside a Fastify of their own, get nothing that asks for a newer Node.js", async () => {
  const version = required("packages on Node.js 20", await provideNode(20));
  if (version === undefined) return;
  const library = tarballs.filter((path) => !/osbert-\d|for-store-authors/.test(path));
  for (const [name, more] of Object.entries({ alone: [], "beside-fastify": ["fastify@5"] })) {
    const project = join(scratch, name);
    mkdirSync(project);
    writeFileSync(join(project, "package.json"), JSON.stringify({ type: "module", private: true }));
    await npm(version, project, ["install", "--package-lock-only", "--engine-strict", ...library, ...more]);
    const lock = JSON.parse(readFileSync(join(project, "package-lock.json"), "utf8"));
    expect(lock.packages["node_modules/cookie"]?.version).toMatch(/^1\./);
    expect(Object.keys(lock.packages).filter((path) => /\/(vitest|fast-check|typescript)$/.test(path))).toEqual([]);
  }
});

const compilerOptions = {
  ...{ module: "nodenext", target: "es2022", lib: ["es2023"], types: ["node"], outDir: "compiled" },
  ...{ strict: true, exactOptionalPropertyTypes: true, noUncheckedIndexedAccess: true, skipLibCheck: false },
};

/** A program that imports every public path of the packages. */
function importsOfEverything(project: string): string {
  const names = [
    "@osbert/protocol",
    "@osbert/journal",
    "@osbert/journal-suites",
    "@osbert/server",
    "@osbert/broker",
    "@osbert/bundles",
    "osbert",
  ];
  const paths = names.flatMap((name) => {
    const manifest = readFileSync(join(project, "node_modules", name, "package.json"), "utf8");
    return Object.keys(JSON.parse(manifest).exports).map((path) => `${name}${path.slice(1)}`);
  });
  const imports = paths.map((path, at) => `import * as path${at} from "${path}";`);
  const uses = paths.map((path, at) => `if (Object.keys(path${at}).length === 0) throw new Error("${path} is empty");`);
  return [...imports, ...uses, ""].join("\n");
}

/** Runs the README's broker, makes an instance and a binding, and answers with its credentials' words. */
async function greeting({ node, env }: NodeVersion, project: string): Promise<unknown> {
  const child = spawn(node, ["compiled/broker.js"], { cwd: project, env, stdio: ["ignore", "pipe", "inherit"] });
  onTestFinished(() => void child.kill("SIGKILL"));
  let printed = "";
  for await (const line of createInterface(child.stdout)) {
    printed += line;
    if (/password: '[^']+'/.test(printed)) break;
  }
  const [, url = ""] = /(http:\S+)/.exec(printed) ?? [];
  const [, username, password] = /username: '([^']+)'[\s\S]*password: '([^']+)'/.exec(printed) ?? [];
  const ask = async (path: string, body: object) => {
    const response = await fetch(`${url}/v2/service_instances/${path}`, {
      method: "PUT",
      body: JSON.stringify({ service_id: ids, plan_id: `${ids.slice(0, -1)}1`, ...body }),
      headers: {
        authorization: `Basic ${Buffer.from(`${username}:${password}`).toString("base64")}`,
        "content-type": "application/json",
        "x-broker-api-version": "2.17",
      },
    });
    return (await response.json()) as { readonly credentials?: { readonly words?: unknown } };
  };
  await ask("i1", { organization_guid: "o", space_guid: "s", parameters: { language: "de" } });
  const bound = await ask("i1/service_bindings/b1", {});
  return bound.credentials?.words;
}

const ids = "5b1e7a0c-8d54-4a5e-9a0e-0d6e2a6a4f10";

async function npm({ env }: NodeVersion, cwd: string, args: readonly string[]): Promise<void> {
  await run("npm", args, { cwd, env }).catch(({ stderr }) => {
    throw new Error(`npm ${args.join(" ")} says:\n${stderr}`);
  });
}
