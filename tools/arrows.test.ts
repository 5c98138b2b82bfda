import { spawnSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { type Room, rooms } from "./arrows.js";
import { holdsArrows, lintArrows } from "./lint-arrows.js";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const here = Object.entries(rooms).filter(([name]) => existsSync(join(root, "packages", name)));

test("biome.json holds the arrows of the table; npm run arrows writes them", () => {
  const { overrides } = JSON.parse(readFileSync(join(root, "biome.json"), "utf8"));
  expect(overrides.filter(holdsArrows)).toEqual(lintArrows(rooms));
});

test("every room and every folder has its line, and every name in the table is one of a room or of a folder", () => {
  expect(Object.keys(rooms)).toEqual(expect.arrayContaining(readdirSync(join(root, "packages"))));
  for (const [name, room] of here) {
    expect(Object.keys(rooms), name).toEqual(expect.arrayContaining([...room.imports, ...(room.testsImport ?? [])]));
    const inside = readdirSync(join(root, "packages", name, "src"), { withFileTypes: true });
    const folders = inside.filter((entry) => entry.isDirectory()).map((entry) => entry.name);
    const lines = room.folders ?? {};
    expect(Object.keys(lines), `packages/${name}`).toEqual(expect.arrayContaining(folders));
    expect(inside.map((entry) => entry.name)).toEqual(expect.arrayContaining(Object.keys(lines)));
    expect(Object.keys(lines)).toEqual(expect.arrayContaining([...new Set(Object.values(lines).flat())]));
  }
});

test("no room leads back to itself", () => {
  expect(circle(Object.fromEntries(Object.entries(rooms).map(([name, { imports }]) => [name, imports])))).toEqual([]);
});

test.each(here)("no folder of %s leads back to itself", (_, { folders = {} }) => {
  expect(circle(folders)).toEqual([]);
});

describe("lint", () => {
  const attempts = here.flatMap(([name, room]) => [
    ...attemptsOfRoom(name, room),
    ...Object.entries(room.folders ?? {}).flatMap(([folder, allowed]) => attemptsOfFolder(name, room, folder, allowed)),
  ]);

  test("refuses every wrong import between rooms and between folders, and no other", () => {
    const refused = lint(new Map(attempts.map(({ file, right, wrong }) => [file, [...right, ...wrong]])));
    for (const { file, wrong } of attempts) expect(refused.get(file) ?? [], file).toEqual(wrong);
    expect(attempts.flatMap(({ wrong }) => wrong).length).toBeGreaterThan(100);
  });
});

/** A file, with imports that its room and its folder may make, and with such as they may not. */
interface Attempt {
  readonly file: string;
  readonly right: readonly string[];
  readonly wrong: readonly string[];
}

function attemptsOfRoom(name: string, room: Room): readonly Attempt[] {
  const others = Object.entries(rooms).filter(([other]) => other !== name);
  const past = [...others.map(([other]) => `../../${other}/src/anything.js`), "@osbert/journal/dist/anything.js"];
  const attempt = (file: string, allowed: readonly string[], own: readonly string[]): Attempt => {
    const namesOf = (may: boolean) =>
      others.filter(([other]) => allowed.includes(other) === may).flatMap(([, { npm }]) => [npm, `${npm}/anything`]);
    return { file, right: [...namesOf(true), ...own], wrong: [...namesOf(false), ...past] };
  };
  const { imports, testsImport = [] } = room;
  return [
    attempt(`packages/${name}/src/a.ts`, imports, ["./b.js"]),
    attempt(`packages/${name}/test/a.test.ts`, [...imports, ...testsImport], [room.npm, "../src/b.js"]),
  ];
}

/** Of a file in the folder, and of one in a folder inside it. */
function attemptsOfFolder(name: string, room: Room, folder: string, allowed: readonly string[]): readonly Attempt[] {
  const src = `packages/${name}/src`;
  const isFile = folder.endsWith(".ts");
  const places = isFile ? [["", "./"] as const] : [["/a.ts", "../"] as const, ["/b/a.ts", "../../"] as const];
  const others = Object.keys(room.folders ?? {}).filter((other) => other !== folder);
  const banned = (room.never?.[folder] ?? []).flatMap(({ group }) => group.map((path) => path.replace(/\*+/, "any")));
  return places.map(([file, up]) => {
    const pathsTo = (may: boolean) =>
      others.filter((other) => allowed.includes(other) === may).map((other) => up + pathOf(other));
    const wrong = [...pathsTo(false), ...banned, room.npm, `${room.npm}/anything`];
    return {
      file: `${src}/${folder}${file}`,
      right: [...pathsTo(true), `${up}ground.js`, "./neighbour.js"],
      wrong: isFile ? wrong : [...wrong, `${up}../src/b.js`],
    };
  });
}

function pathOf(folder: string): string {
  return folder.endsWith(".ts") ? folder.replace(/\.ts$/, ".js") : `${folder}/anything.js`;
}

/** Lints files with these imports by the rules of biome.json, in a folder of their own, and answers the imports that were refused. */
function lint(files: ReadonlyMap<string, readonly string[]>): ReadonlyMap<string, readonly string[]> {
  const scratch = realpathSync(mkdtempSync(join(tmpdir(), "osbert-arrows-")));
  try {
    const { vcs: _, ...config } = JSON.parse(readFileSync(join(root, "biome.json"), "utf8"));
    writeFileSync(join(scratch, "biome.json"), JSON.stringify(config));
    for (const [file, imports] of files) {
      mkdirSync(dirname(join(scratch, file)), { recursive: true });
      writeFileSync(join(scratch, file), imports.map((path, at) => `import * as a${at} from "${path}";\n`).join(""));
    }
    const { stdout } = spawnSync(
      join(root, "node_modules", ".bin", "biome"),
      ["lint", "--only=style/noRestrictedImports", "--max-diagnostics=none", "--reporter=github", "."],
      { cwd: scratch, encoding: "utf8", maxBuffer: 2 ** 26 },
    );
    const told = [...stdout.matchAll(/file=([^,]+),line=(\d+)/g)].map(
      ([, file = "", line]) => [file, Number(line)] as const,
    );
    return new Map(
      [...files].map(([file, imports]) => [
        file,
        imports.filter((_, at) => told.some(([path, line]) => path === join(scratch, file) && line === at + 1)),
      ]),
    );
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

/** The names of a circle of arrows, if there is one. */
function circle(arrows: Readonly<Record<string, readonly string[]>>): readonly string[] {
  const left = new Map(Object.entries(arrows));
  for (let leaf: string | undefined = ""; leaf !== undefined; ) {
    left.delete(leaf);
    leaf = [...left].find(([, imports]) => !imports.some((name) => left.has(name)))?.[0];
  }
  return [...left.keys()];
}
