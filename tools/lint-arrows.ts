import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Ban, type Room, rooms } from "./arrows.js";

/** One override of biome.json that holds arrows. */
export interface ArrowOverride {
  readonly includes: readonly string[];
  readonly linter: {
    readonly rules: {
      readonly style: {
        readonly noRestrictedImports: {
          readonly level: "error";
          readonly options: { readonly patterns: readonly Ban[] };
        };
      };
    };
  };
}

const root = join(dirname(fileURLToPath(import.meta.url)), "..");

/** The overrides of biome.json that hold the arrows of the table. Of several that match a file Biome takes the last one, so each says all. */
export function lintArrows(table: Readonly<Record<string, Room>>): readonly ArrowOverride[] {
  const inside: Ban = {
    group: [
      ...["@osbert/*/src/**", "@osbert/*/dist/**", "**/packages/**"],
      ...Object.keys(table).map((name) => `../**/${name}/src/**`),
    ],
    message: "Import another room by its package name and a public subpath.",
  };
  const ofRooms = Object.entries(table).map(([name, room]) =>
    // A template is a program of its own, written for whoever copies it.
    override([`packages/${name}/**`, "!packages/*/template/**"], bansOfRoom(table, name, room, inside)),
  );
  const ofTests = Object.entries(table).flatMap(([name, { testsImport = [], ...room }]) =>
    testsImport.length === 0
      ? []
      : override(
          [`packages/${name}/test/**`],
          bansOfRoom(table, name, { ...room, imports: [...room.imports, ...testsImport] }, inside),
        ),
  );
  const ofFolders = Object.entries(table).flatMap(([name, room]) =>
    Object.entries(room.folders ?? {}).map(([folder, allowed]) =>
      override(
        [`packages/${name}/src/${folder.endsWith(".ts") ? folder : `${folder}/**`}`],
        [
          ...bansOfRoom(table, name, room, inside),
          ...bansOfFolder(name, room, folder, allowed),
          ...(room.never?.[folder] ?? []),
        ],
      ),
    ),
  );
  return [...ofRooms, ...ofTests, ...ofFolders];
}

function bansOfRoom(table: Readonly<Record<string, Room>>, name: string, room: Room, inside: Ban): readonly Ban[] {
  const others = Object.entries(table).filter(([other]) => other !== name && !room.imports.includes(other));
  return [
    { group: others.flatMap(([, { npm }]) => [npm, `${npm}/**`]), message: `ARCHITECTURE.md: ${room.rule}` },
    inside,
    ...(room.never?.[""] ?? []),
  ];
}

/** A file in a folder reaches another by going up once for every folder that it lies in. */
function bansOfFolder(name: string, room: Room, folder: string, allowed: readonly string[]): readonly Ban[] {
  const others = Object.keys(room.folders ?? {}).filter((other) => other !== folder && !allowed.includes(other));
  const ups = folder.endsWith(".ts") ? ["./"] : ["../", "../../", "../../../"];
  const may = allowed.length === 0 ? "none of its neighbours" : `${allowed.join(", ")} alone`;
  return [
    {
      group: [
        ...others.flatMap((other) =>
          ups.map((up) => up + (other.endsWith(".ts") ? other.replace(/\.ts$/, ".js") : `${other}/**`)),
        ),
        // Neither around by the room's own name nor by way of `src`.
        ...[room.npm, `${room.npm}/**`, "../**/src/**"],
      ],
      message: `tools/arrows.ts: in ${name}, ${folder} points at ${may}.`,
    },
  ];
}

function override(includes: readonly string[], patterns: readonly Ban[]): ArrowOverride {
  return {
    includes,
    linter: { rules: { style: { noRestrictedImports: { level: "error", options: { patterns } } } } },
  };
}

/** True of an override that `npm run arrows` writes. All others in biome.json are written by hand. */
export function holdsArrows(override: unknown): boolean {
  const { linter } = override as { linter?: { rules?: { style?: Record<string, unknown> } } };
  return linter?.rules?.style?.noRestrictedImports !== undefined;
}

// `npm run arrows`
if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const path = join(root, "biome.json");
  const config = JSON.parse(readFileSync(path, "utf8")) as { overrides: readonly unknown[] };
  const byHand = config.overrides.filter((override) => !holdsArrows(override));
  writeFileSync(path, JSON.stringify({ ...config, overrides: [...lintArrows(rooms), ...byHand] }, null, 2));
  execFileSync(join(root, "node_modules", ".bin", "biome"), ["format", "--write", path], { stdio: "inherit" });
}
