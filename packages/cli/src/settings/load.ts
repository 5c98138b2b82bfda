import { dirname, resolve } from "node:path";
import { checkTogether } from "./check.js";
import { byPlace, type Fault, SettingsError } from "./fault.js";
import { largestYamlBytes, parseYaml } from "./parse-yaml.js";
import { read } from "./read.js";
import { recordingSystem, type System, whyUnreadable } from "./system.js";
import { type Settings, table } from "./table.js";
import type { Place } from "./value-node.js";

/** Settings that hold, and where they come from. */
export interface Loaded {
  readonly settings: Settings;
  /** As it was named; `undefined`: there is none. */
  readonly file: string | undefined;
  readonly places: ReadonlyMap<string, Place>;
  /** Every file that was read, absolute, with a digest of what was in it. */
  readonly files: ReadonlyMap<string, string>;
}

/** Looked for where no file is named. */
export const usualFile = "osbert.yaml";

/**
 * Reads the file, the environment and all files that they name. Throws a SettingsError with every fault. Without a name the usual
 * file is taken if it is there; the environment can do without one.
 */
export function loadSettings(named: string | undefined, world: System): Loaded {
  const { faults, ...loaded } = readSettings(named, world);
  if (faults.length > 0) throw new SettingsError(faults, loaded.files);
  return loaded;
}

/** What was read, with what is wrong with it. A setting with a fault has no value, whatever its type says. */
export interface SettingsRead extends Loaded {
  readonly faults: readonly Fault[];
}

/** The same for those who want to look at the rest, too. Throws only if the file cannot be read at all. */
export function readSettings(named: string | undefined, world: System): SettingsRead {
  const system = recordingSystem(world);
  const refuse = (faults: readonly Fault[]) => new SettingsError(faults, system.seen);
  const file = named ?? usualFile;
  const found = readSettingsFile(file, named === undefined, system);
  if (found.kind === "unreadable") throw refuse([{ place: { kind: "default" }, key: "", message: found.why }]);
  const { written, faults: unreadable } = found.kind === "missing" ? nothing : parseYaml(found.text, file);
  if (unreadable.length > 0) throw refuse(unreadable);
  const { value, faults, places } = read(table, written, system, found.kind === "missing" ? "." : dirname(file));
  const together = checkTogether(value, places).filter(({ key }) => !faults.some((fault) => mayFollow(key, fault.key)));
  return {
    settings: value,
    file: found.kind === "missing" ? undefined : file,
    places,
    files: system.seen,
    faults: [...faults, ...together].sort(byPlace).map((fault) => inFile(fault, file, found.kind === "missing")),
  };
}

/** Whether what is wrong at a key may be so only because something is wrong at another one: rules do not reach beyond a section, but for the names of platforms. */
function mayFollow(key: string, other: string): boolean {
  const section = (text: string) => /^\w*/.exec(text)?.[0];
  return section(key) === section(other) || (key.endsWith(".platform") && section(other) === "platforms");
}

const nothing = { written: undefined, faults: [] };

type SettingsFile =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "missing" }
  | { readonly kind: "unreadable"; readonly why: string };

function readSettingsFile(file: string, mayBeMissing: boolean, system: System): SettingsFile {
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
