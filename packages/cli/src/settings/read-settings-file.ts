import { dirname, resolve } from "node:path";
import { byPlace, type Fault, largestYamlBytes, type Place, parseYaml } from "@osbert/server/yaml";
import { read } from "./read.js";
import { SettingsError } from "./settings-error.js";
import type { Fields, GroupOf } from "./shape.js";
import { recordingSystem, type System, whyUnreadable } from "./system.js";

/** Settings that hold, and where they come from. */
export interface LoadedSettings<Values> {
  readonly settings: Values;
  /** As it was named; `undefined`: there is none. */
  readonly file: string | undefined;
  readonly places: ReadonlyMap<string, Place>;
  /** Every file that was read, absolute, with a digest of what was in it. */
  readonly files: ReadonlyMap<string, string>;
}

/** What was read, with what is wrong with it. A setting with a fault has no value, whatever its type says. */
export interface ReadSettings<Values> extends LoadedSettings<Values> {
  readonly faults: readonly Fault[];
}

/** The settings of a program: what there is, where it is looked for, and what no single one of them can tell. */
export interface SettingsKind<Table extends Fields> {
  readonly table: Table;
  /** Looked for where no file is named. */
  readonly usualFile: string;
  /** What variables of the environment begin with. */
  readonly prefix: string;
  /** Rules between settings. One that may be broken only because another setting is wrong is left out. */
  checkTogether(settings: GroupOf<Table>, places: ReadonlyMap<string, Place>): readonly Fault[];
  /** What else is wrong, whatever else is. */
  checkAlone?(settings: GroupOf<Table>, places: ReadonlyMap<string, Place>): readonly Fault[];
}

/**
 * Reads the file, the environment and all files that they name. Without a name the usual file is taken if it is there; the environment can do
 * without one. Throws only if the file cannot be read at all.
 */
export function readSettingsFile<const Table extends Fields>(
  kind: SettingsKind<Table>,
  named: string | undefined,
  world: System,
): ReadSettings<GroupOf<Table>> {
  const system = recordingSystem(world);
  const refuse = (faults: readonly Fault[]) => new SettingsError(faults, system.seen);
  const file = named ?? kind.usualFile;
  const found = readText(file, named === undefined, system);
  if (found.kind === "unreadable") throw refuse([{ place: { kind: "default" }, key: "", message: found.why }]);
  const { written, faults: unreadable } = found.kind === "missing" ? nothing : parseYaml(found.text, file);
  if (unreadable.length > 0) throw refuse(unreadable);
  const folder = found.kind === "missing" ? "." : dirname(file);
  const { value, faults, places } = read(kind.table, written, system, folder, kind.prefix);
  const together = kind
    .checkTogether(value, places)
    .filter(({ key }) => !faults.some((fault) => mayFollow(key, fault.key)));
  return {
    settings: value,
    file: found.kind === "missing" ? undefined : file,
    places,
    files: system.seen,
    faults: [...faults, ...together, ...(kind.checkAlone?.(value, places) ?? [])]
      .sort(byPlace)
      .map((fault) => inFile(fault, file, found.kind === "missing")),
  };
}

/** The same for those who cannot do with less. Throws a SettingsError with every fault. */
export function loadSettingsFile<const Table extends Fields>(
  kind: SettingsKind<Table>,
  named: string | undefined,
  world: System,
): LoadedSettings<GroupOf<Table>> {
  const { faults, ...loaded } = readSettingsFile(kind, named, world);
  if (faults.length > 0) throw new SettingsError(faults, loaded.files);
  return loaded;
}

/** Whether what is wrong at a key may be so only because something is wrong at another one: rules do not reach beyond a section, but for the names of platforms. */
function mayFollow(key: string, other: string): boolean {
  const section = (text: string) => /^\w*/.exec(text)?.[0];
  return section(key) === section(other) || (key.endsWith(".platform") && section(other) === "platforms");
}

const nothing = { written: undefined, faults: [] };

type SettingsText =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "missing" }
  | { readonly kind: "unreadable"; readonly why: string };

function readText(file: string, mayBeMissing: boolean, system: System): SettingsText {
  try {
    const bytes = system.readFile(resolve(system.folder, file), largestYamlBytes);
    return { kind: "text", text: new TextDecoder("utf-8", { fatal: true }).decode(bytes) };
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" && mayBeMissing) return { kind: "missing" };
    const why = error instanceof TypeError ? "is not UTF-8; save it as UTF-8" : whyUnreadable(error);
    return { kind: "unreadable", why: `${file} ${why}` };
  }
}

/** What is missing as a whole stands nowhere: it belongs into the file. */
function inFile(fault: Fault, file: string, isMissing: boolean): Fault {
  if (fault.place.kind !== "default") return fault;
  return { ...fault, message: `${fault.message} in ${file}${isMissing ? ", which is not there" : ""}` };
}
