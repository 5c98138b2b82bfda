import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import { createProject, packed as packages } from "../src/create-project.js";
import { main } from "../src/main.js";

const packed = packages.map((name) => name.replace(/^@osbert\//, "osbert-"));

test("every package that a project needs of Osbert's is in the list of those that are copied", () => {
  const rooms = new URL("../../", import.meta.url);
  const manifests = new Map(
    readdirSync(rooms).map((room) => {
      const manifest = JSON.parse(readFileSync(new URL(`${room}/package.json`, rooms), "utf8"));
      return [manifest.name as string, Object.keys(manifest.dependencies ?? {})] as const;
    }),
  );
  const needed = new Set(["@osbert/broker", "osbert"]);
  for (const name of needed) for (const each of manifests.get(name) ?? []) if (manifests.has(each)) needed.add(each);
  expect([...packages].sort()).toEqual([...needed].sort());
});

test("a project has the folder's name, the release's packages and ids of its own", () => {
  const folder = scratch();
  createProject(join(folder, "first"));
  createProject(join(folder, "second"));
  expect(readdirSync(join(folder, "first")).sort()).toEqual(
    [
      ".dockerignore",
      ".gitignore",
      "Dockerfile",
      "README.md",
      "osbert.yaml",
      "package.json",
      "src",
      "tsconfig.json",
    ].sort(),
  );
  const manifest = JSON.parse(readFileSync(join(folder, "first/package.json"), "utf8"));
  expect(manifest).toMatchObject({ name: "first", dependencies: { "@osbert/broker": "^0.1.0", osbert: "^0.1.0" } });
  expect(readFileSync(join(folder, "first/README.md"), "utf8")).toMatch(/^# first\n/);

  const ids = (name: string) => readFileSync(join(folder, name, "src/services.ts"), "utf8").match(/[0-9a-f-]{36}/g);
  expect(ids("first")).toHaveLength(2);
  expect(new Set([...(ids("first") ?? []), ...(ids("second") ?? [])]).size).toBe(4);
});

test("with tarballs, the project has its own copies of all packages that it needs", () => {
  const folder = scratch();
  for (const name of packed) writeFileSync(join(folder, `${name}-0.1.0.tgz`), name);
  createProject(join(folder, "mine"), { tarballs: folder });
  expect(readFileSync(join(folder, "mine/vendor/osbert-journal-0.1.0.tgz"), "utf8")).toBe("osbert-journal");
  const { dependencies } = JSON.parse(readFileSync(join(folder, "mine/package.json"), "utf8"));
  expect(dependencies["@osbert/protocol"]).toBe("file:vendor/osbert-protocol-0.1.0.tgz");
});

test("what cannot be made is told, and nothing is written", () => {
  const folder = scratch();
  mkdirSync(join(folder, "full"));
  writeFileSync(join(folder, "full", "precious"), "");
  expect(() => createProject(join(folder, "full"))).toThrow(/is there already, and is not empty/);
  expect(readdirSync(join(folder, "full"))).toEqual(["precious"]);
  expect(() => createProject(join(folder, "My Broker"))).toThrow(/lower-case letters, digits and dashes/);
  expect(() => createProject(join(folder, "mine"), { tarballs: folder })).toThrow(/has no osbert-broker-0.1.0.tgz/);
  expect(existsSync(join(folder, "mine"))).toBe(false);
});

test("without tarballs, the next step is not an npm install that finds nothing", () => {
  const written = vi.spyOn(process.stdout, "write").mockReturnValue(true);
  onTestFinished(() => written.mockRestore());
  const folder = scratch();
  main([join(folder, "mine")]);
  for (const name of packed) writeFileSync(join(folder, `${name}-0.1.0.tgz`), name);
  main([join(folder, "other"), "--tarballs", folder]);
  const [without, with_] = written.mock.calls.map(([text]) => String(text));
  expect(without).toMatch(/^ {2}npm install OSBERT\/tarballs\/osbert-\*\.tgz$/m);
  expect(without).toContain("not published yet");
  expect(with_).toMatch(/^ {2}npm install$/m);
  expect(with_).not.toContain("published");
});

function scratch(): string {
  const folder = mkdtempSync(join(tmpdir(), "osbert-create-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}
