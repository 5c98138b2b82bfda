import { dirname, isAbsolute, resolve } from "node:path";
import {
  byPlace,
  didYouMean,
  type Fault,
  type ListNode,
  type Place,
  Secret,
  toValueNode,
  type ValueNode,
} from "@osbert/server/yaml";
import { formatDurationMs, parseDurationMs } from "../duration.js";
import { advice, mustHave, not, oneOf } from "./advice.js";
import { fileVariableOf, variableOf } from "./environment.js";
import { imageDataUri, largestImageBytes } from "./image.js";
import type { Field, Fields, GroupOf, GroupShape, SecretShape, Shape, TextShape } from "./shape.js";
import { type System, whyUnreadable } from "./system.js";

export interface Reading<F> {
  /** To be used only if there are no faults. */
  readonly value: GroupOf<F>;
  readonly faults: readonly Fault[];
  /** Where each value comes from, by key; also of groups and names that were written. */
  readonly places: ReadonlyMap<string, Place>;
}

/** Makes values of what was written: environment first, then the file, then defaults. Finds all faults there are. */
export function read<const F extends Fields>(
  fields: F,
  written: ValueNode | undefined,
  system: System,
  /** Of the file, from where the program was started. */
  folder = ".",
  /** What variables of the environment begin with. */
  prefix = "OSBERT",
): Reading<F> {
  const reader = new Reader(system, folder, prefix);
  const value = reader.group(fields, written, "", { place: { kind: "default" }, overridable: true });
  const faults = [...reader.faults].sort(byPlace);
  return { value: value as GroupOf<F>, faults, places: reader.places };
}

const largestSecretBytes = 65_536;
const largestContentsBytes = 1_048_576;
const longestText = 10_000;
const mostItems = 1_000;

/** What a group inherits from where it stands. */
interface Standing {
  readonly place: Place;
  /** Not inside a list or under a name: the environment can speak of it. */
  readonly overridable: boolean;
}

class Reader {
  readonly faults: Fault[] = [];
  readonly places = new Map<string, Place>();
  readonly #system: System;
  readonly #folder: string;
  readonly #prefix: string;

  constructor(system: System, folder: string, prefix: string) {
    this.#system = system;
    this.#folder = folder;
    this.#prefix = prefix;
  }

  group(fields: Fields, written: ValueNode | undefined, key: string, standing: Standing): Record<string, unknown> {
    const given = written === undefined || isNull(written) ? undefined : written;
    if (given !== undefined && given.kind !== "map") {
      this.#fault(given.place, key, key === "" ? "must be settings: lines of key: value" : mustHave(fields));
    }
    const entries = given?.kind === "map" ? given.entries : new Map<string, never>();
    for (const [name, { place }] of entries) {
      if (!Object.hasOwn(fields, name)) this.#unknown(place, join(key, name), name, Object.keys(fields));
    }
    const values = Object.entries(fields).map(([name, field]) => {
      const inner = { place: given?.place ?? standing.place, overridable: standing.overridable };
      return [name, this.#field(field, entries.get(name)?.written, join(key, name), inner)] as const;
    });
    return Object.fromEntries(values);
  }

  #field(field: Field, inFile: ValueNode | undefined, key: string, standing: Standing): unknown {
    const fromEnvironment = standing.overridable ? this.#fromEnvironment(field, key) : undefined;
    if (fromEnvironment !== undefined && inFile !== undefined && !isNull(inFile) && field.inOnePlace !== undefined)
      this.#fault(
        fromEnvironment.place,
        key,
        `would replace the list in the file; unset one of them. ${field.inOnePlace}`,
      );
    const written = fromEnvironment ?? inFile;
    const given = written === undefined || isNull(written) ? undefined : written;
    if (given !== undefined) {
      this.places.set(key, given.place);
      return this.#value(field.shape, given, key, field, standing.overridable);
    }
    if (field.required) {
      this.#fault(standing.place, key, `is missing; ${advice(key, field)}`);
      return undefined;
    }
    if (field.default !== undefined) {
      this.places.set(key, { kind: "default" });
      return this.#value(field.shape, toValueNode(field.default, { kind: "default" }), key, field, false);
    }
    if (field.optional) return undefined;
    if (field.shape.kind === "group") return this.group(field.shape.fields, undefined, key, standing);
    return field.shape.kind === "map" ? new Map() : undefined;
  }

  #fromEnvironment({ shape, environment = [] }: Field, key: string): ValueNode | undefined {
    if (["group", "map", "json", "documents"].includes(shape.kind)) return undefined;
    if (shape.kind === "list" && shape.fromText === undefined) return undefined;
    for (const name of [variableOf(key, this.#prefix), ...environment]) {
      const text = this.#system.environment[name];
      const place: Place = { kind: "environment", name };
      if (text !== undefined && text !== "") {
        const items = shape.kind === "list" ? shape.fromText?.parse(text) : text;
        if (items !== undefined) return toValueNode(items, place);
        // The list stays what it was without the variable: nothing is used while there is a fault.
        return this.#fault(place, key, `must be ${shape.kind === "list" ? shape.fromText?.mustBe : "a text"}`);
      }
      const fileName = fileVariableOf(name);
      const file = shape.kind === "secret" ? this.#system.environment[fileName] : undefined;
      if (file !== undefined && file !== "") return toValueNode({ file }, { kind: "environment", name: fileName });
    }
    return undefined;
  }

  #value(shape: Shape, written: ValueNode, key: string, field: Field, overridable: boolean): unknown {
    const wrong = (message: string) => this.#fault(written.place, key, `${message}; ${advice(key, field)}`);
    switch (shape.kind) {
      case "text":
        return this.#text(shape, written, wrong);
      case "number": {
        const number = numberIn(written);
        const fits = number !== undefined && number >= shape.from && number <= shape.to;
        if (fits && (shape.fractions || Number.isInteger(number))) return number;
        return wrong(
          `must be a ${shape.fractions ? "" : "whole "}number from ${shape.from} to ${shape.to}${not(written)}`,
        );
      }
      case "flag": {
        const flag = flagIn(written);
        return flag ?? wrong(`must be true or false${not(written)}`);
      }
      case "choice": {
        const text = textIn(written);
        if (text !== undefined && shape.of.includes(text)) return text;
        const near = didYouMean(text ?? "", shape.of);
        if (near !== "") return this.#fault(written.place, key, `must be ${oneOf(shape.of)}${not(written)}${near}`);
        return wrong(`must be ${oneOf(shape.of)}${not(written)}`);
      }
      case "duration": {
        const text = textIn(written) ?? "";
        if (shape.forever && text === "forever") return null;
        const ms = parseDurationMs(text);
        if (ms === undefined)
          return wrong(
            `must be a number with a unit: ms, s, m, h or d${shape.forever ? ", or forever" : ""}${not(written)}`,
          );
        return ms <= (shape.to ?? longestMs) ? ms : wrong(`must be at most ${formatDurationMs(shape.to ?? longestMs)}`);
      }
      case "path": {
        const text = this.#text({ kind: "text", longest: 4_096 }, written, wrong);
        return text === undefined ? undefined : this.#absolute(text, written.place);
      }
      case "contents": {
        const found = this.#file(written, largestContentsBytes, wrong);
        return found && { path: found.path, text: found.bytes.toString("utf8") };
      }
      case "image": {
        const found = this.#file(written, largestImageBytes, wrong);
        if (found === undefined) return undefined;
        const dataUri = imageDataUri(found.bytes);
        return dataUri === undefined
          ? wrong("must be the path of a picture: PNG, JPEG, GIF, WebP or SVG")
          : { path: found.path, dataUri };
      }
      case "secret":
        return this.#secret(shape, written, key, wrong);
      case "json":
        return written.kind === "map" ? plain(written) : wrong("must be an object");
      case "documents":
        if (written.kind !== "list") return wrong("must be a list");
        this.#placesBelow(written, key);
        return plain(written);
      case "list":
        return this.#list(shape.of, written, key, field, wrong);
      case "map": {
        if (written.kind === "list" && shape.of.kind === "group") return this.#named(shape.of, written, key, wrong);
        if (written.kind !== "map")
          return wrong(`must have a ${shape.name}'s name on each line, with a colon after it`);
        const entries = [...written.entries].map(([name, entry]) => {
          const at = join(key, name);
          this.places.set(at, entry.place);
          return [name, this.#inner(shape.of, entry.written, at, field)] as const;
        });
        return new Map(entries);
      }
      case "group":
        return this.group(shape.fields, written, key, { place: written.place, overridable });
    }
  }

  #list(of: Shape, written: ValueNode, key: string, field: Field, wrong: Wrong): unknown {
    if (written.kind !== "list") return wrong("must be a list");
    if (written.items.length > mostItems) return wrong(`must have at most ${mostItems} items`);
    const items = written.items.map((item, index) => {
      const at = `${key}[${index}]`;
      this.places.set(at, item.place);
      return this.#inner(of, item, at, field);
    });
    return items.includes(undefined) ? undefined : items;
  }

  /** So that whoever checks it can say where. */
  #placesBelow(written: ValueNode, key: string): void {
    const inner =
      written.kind === "list"
        ? written.items.map((item, index) => [`${key}[${index}]`, item.place, item] as const)
        : written.kind === "map"
          ? [...written.entries].map(([name, entry]) => [join(key, name), entry.place, entry.written] as const)
          : [];
    for (const [at, place, item] of inner) {
      this.places.set(at, place);
      this.#placesBelow(item, at);
    }
  }

  /** A list whose items have a `name` is another way to write a map of groups. Keys are the same for both. */
  #named({ fields }: GroupShape, written: ListNode, key: string, wrong: Wrong): unknown {
    if (written.items.length > mostItems) return wrong(`must have at most ${mostItems} items`);
    const values = new Map<string, unknown>();
    written.items.forEach((item, index) => {
      const entry = item.kind === "map" ? item.entries.get("name") : undefined;
      const name = entry === undefined ? undefined : textIn(entry.written);
      if (item.kind !== "map" || name === undefined || name === "") {
        this.#fault(item.place, `${key}[${index}]`, "must have a name; write e.g. - name: small");
        return;
      }
      const at = join(key, name);
      if (values.has(name)) {
        this.#fault(entry?.place ?? item.place, at, "is there twice; give one of them another name");
        return;
      }
      this.places.set(at, item.place);
      const rest = { ...item, entries: new Map([...item.entries].filter(([other]) => other !== "name")) };
      values.set(name, this.group(fields, rest, at, { place: item.place, overridable: false }));
    });
    return values;
  }

  #inner(shape: Shape, written: ValueNode, key: string, field: Field): unknown {
    return shape.kind === "group"
      ? this.group(shape.fields, written, key, { place: written.place, overridable: false })
      : this.#value(shape, written, key, field, false);
  }

  #text(shape: TextShape, written: ValueNode, wrong: Wrong): string | undefined {
    const text = textIn(written);
    if (text === undefined) return wrong("must be a text");
    if (text.length > (shape.longest ?? longestText))
      return wrong(`must have at most ${shape.longest ?? longestText} characters`);
    if (!fitsPattern(shape, text)) return wrong(`must be ${shape.mustBe ?? "as the pattern says"}${not(written)}`);
    return text === "" ? wrong("must not be empty") : text;
  }

  /** Nothing of what was written may be in a message. */
  #secret(shape: SecretShape, written: ValueNode, key: string, wrong: Wrong): Secret | undefined {
    const text = written.kind === "map" ? this.#referred(written, key, wrong) : textIn(written);
    if (text === undefined) {
      if (written.kind !== "map") wrong("must be a text, or { file: path } or { env: NAME }");
      return undefined;
    }
    if (text === "") return wrong("must not be empty");
    if (!fitsPattern(shape, text)) return wrong(`must be ${shape.mustBe ?? "as the pattern says"}`);
    return new Secret(text, shape.show?.(text));
  }

  /** `{ file }` or `{ env }`. */
  #referred(written: ValueNode & { kind: "map" }, key: string, wrong: Wrong): string | undefined {
    const [[name, entry] = ["", undefined], ...others] = written.entries;
    const given = entry === undefined ? undefined : textIn(entry.written);
    if (others.length > 0 || given === undefined || !["file", "env"].includes(name)) {
      return wrong("must be a text, or { file: path } or { env: NAME }");
    }
    if (name === "env") {
      const text = this.#system.environment[given];
      if (text === undefined) this.#fault(written.place, key, `the environment variable ${given} is not set`);
      return text;
    }
    const path = this.#absolute(given, entry?.written.place ?? written.place);
    try {
      // Editors and `echo` end a file with a line break that is no part of the secret.
      return this.#system
        .readFile(path, largestSecretBytes)
        .toString("utf8")
        .replace(/\r?\n$/, "");
    } catch (error) {
      this.#fault(written.place, key, `the file ${path} ${whyUnreadable(error)}`);
      return undefined;
    }
  }

  #file(written: ValueNode, mostBytes: number, wrong: Wrong): { path: string; bytes: Buffer } | undefined {
    const text = textIn(written);
    if (text === undefined || text === "") return wrong("must be the path of a file");
    const path = this.#absolute(text, written.place);
    try {
      return { path, bytes: this.#system.readFile(path, mostBytes) };
    } catch (error) {
      return wrong(`the file ${path} ${whyUnreadable(error)}`);
    }
  }

  /** From the folder of the file that says it, and so are defaults; what the environment says, from where the program was started. */
  #absolute(path: string, place: Place): string {
    if (isAbsolute(path)) return path;
    const folder = place.kind === "file" ? dirname(place.file) : place.kind === "default" ? this.#folder : ".";
    return resolve(this.#system.folder, folder, path);
  }

  #unknown(place: Place, key: string, name: string, known: readonly string[]): void {
    const near = didYouMean(name, known);
    this.#fault(place, key, `is not a setting${near === "" ? `; possible here: ${known.join(", ")}` : near}`);
  }

  #fault(place: Place, key: string, message: string): undefined {
    this.faults.push({ place, key, message });
    return undefined;
  }
}

type Wrong = (message: string) => undefined;

const longestMs = 36_500 * 86_400_000;

function join(key: string, name: string): string {
  return key === "" ? name : `${key}.${name}`;
}

function isNull(written: ValueNode): boolean {
  return written.kind === "scalar" && written.value === null;
}

function textIn(written: ValueNode): string | undefined {
  if (written.kind !== "scalar" || written.value === null) return undefined;
  return typeof written.value === "string" ? written.value : written.text;
}

/** A variable is always a text. */
function numberIn(written: ValueNode): number | undefined {
  if (written.kind !== "scalar") return undefined;
  if (typeof written.value === "number") return written.value;
  const isNumber = written.place.kind === "environment" && /^[0-9]{1,15}(\.[0-9]{1,6})?$/.test(written.text);
  return isNumber ? Number(written.text) : undefined;
}

function flagIn(written: ValueNode): boolean | undefined {
  if (written.kind !== "scalar") return undefined;
  if (typeof written.value === "boolean") return written.value;
  if (written.place.kind !== "environment") return undefined;
  return written.text === "true" ? true : written.text === "false" ? false : undefined;
}

function fitsPattern({ pattern }: { readonly pattern?: string }, text: string): boolean {
  return pattern === undefined || new RegExp(pattern, "u").test(text);
}

/** As JSON would have it. `Object.fromEntries` makes own properties of all names, `__proto__` included. */
function plain(written: ValueNode): unknown {
  if (written.kind === "scalar") return written.value;
  if (written.kind === "list") return written.items.map(plain);
  return Object.fromEntries([...written.entries].map(([name, entry]) => [name, plain(entry.written)]));
}
