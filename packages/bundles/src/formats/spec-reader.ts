import { isKeepable } from "@osbert/journal";
import type { Json, JsonObject } from "@osbert/protocol";
import { didYouMean, type Place, parseYaml, type ValueNode } from "@osbert/server/yaml";
import type { SpecProblem } from "./bundle-spec.js";

/** A place in an author's file, from its root. */
export type At = readonly (string | number)[];

/** F3. */
const deepest = 20;
/** Of one file: who has read these has enough to do. */
const mostProblems = 100;
const longestText = 10_000;
/** Of one map: each is compared with all that are known. */
const mostUnknown = 20;
const mostItems = 1_000;

/** Reads an author's YAML and gathers what is wrong with it. Nothing that it is given makes it throw, and no message holds a value that may be a secret. */
export class SpecReader {
  readonly #root: ValueNode | undefined;
  readonly #found: SpecProblem[] = [];

  constructor(text: string, file: string) {
    const { written, faults } = parseYaml(text, file, { deepest });
    this.#root = written;
    for (const { place, message } of faults)
      this.#found.push({ path: "", message, line: place.kind === "file" ? place.line : null, advice: false });
    if (written === undefined && faults.length === 0) this.problem([], "is empty");
  }

  get problems(): readonly SpecProblem[] {
    return this.#found.filter(({ advice }) => !advice);
  }

  get advice(): readonly SpecProblem[] {
    return this.#found.filter(({ advice }) => advice);
  }

  /** The fields of the whole file. What is not a map has none, and a problem. */
  root(): Fields {
    return this.fields(this.#root, []);
  }

  fields(node: ValueNode | undefined, at: At): Fields {
    if (node !== undefined && node.kind !== "map") this.problem(at, "must be lines of key: value");
    return new Fields(this, node?.kind === "map" ? node.entries : new Map(), at);
  }

  problem(at: At, message: string): undefined {
    this.#tell(at, message, false);
    return undefined;
  }

  advise(at: At, message: string): void {
    this.#tell(at, message, true);
  }

  /** A value as plain JSON, or a problem where it is none. */
  json(node: ValueNode, at: At): Json | undefined {
    switch (node.kind) {
      case "scalar": {
        const { value } = node;
        if (typeof value === "number" && !Number.isFinite(value)) return this.problem(at, "must be a finite number");
        if (typeof value === "string" && !isKeepable(value)) return this.problem(at, unkeepable);
        return value;
      }
      case "list":
        return node.items.map((item, index) => this.json(item, [...at, index]) ?? null);
      case "map": {
        const entries = [...node.entries].map(([name, { written }]) => {
          const inside = [...at, name];
          if (name === "__proto__" || !isKeepable(name)) this.problem(inside, "is not a name that can be used here");
          return [name, this.json(written, inside) ?? null] as const;
        });
        return Object.fromEntries(entries);
      }
    }
  }

  /** Whether something is written at a place. */
  has(at: At): boolean {
    return this.#find(at).depth === at.length;
  }

  /** What is written at a place, or the innermost around it, and how many steps that takes. */
  #find(at: At): { readonly place: Place | undefined; readonly depth: number } {
    let node = this.#root;
    let place = node?.place;
    for (const [depth, step] of at.entries()) {
      const entry: { readonly place?: Place; readonly written: ValueNode | undefined } | undefined =
        node?.kind === "map" && typeof step === "string"
          ? node.entries.get(step)
          : node?.kind === "list" && typeof step === "number"
            ? { written: node.items[step] }
            : undefined;
      if (entry?.written === undefined) return { place, depth };
      node = entry.written;
      place = entry.place ?? node.place;
    }
    return { place, depth: at.length };
  }

  #tell(at: At, message: string, advice: boolean): void {
    if (this.#found.length >= mostProblems) return;
    const { place } = this.#find(at);
    this.#found.push({ path: pathOf(at), message, line: place?.kind === "file" ? place.line : null, advice });
  }
}

/** The lines `key: value` of one map. A key without a value counts as one that is not there. */
export class Fields {
  readonly #reader: SpecReader;
  readonly #entries: ReadonlyMap<string, { readonly written: ValueNode }>;
  readonly #at: At;

  constructor(reader: SpecReader, entries: ReadonlyMap<string, { readonly written: ValueNode }>, at: At) {
    this.#reader = reader;
    this.#entries = entries;
    this.#at = at;
  }

  get names(): Iterable<string> {
    return this.#entries.keys();
  }

  at(...steps: At): At {
    return [...this.#at, ...steps];
  }

  node(name: string): ValueNode | undefined {
    const node = this.#entries.get(name)?.written;
    return node?.kind === "scalar" && node.value === null ? undefined : node;
  }

  problem(name: string, message: string): undefined {
    return this.#reader.problem(this.at(name), message);
  }

  advise(name: string, message: string): void {
    this.#reader.advise(this.at(name), message);
  }

  /** What else is written here is nothing that anyone reads. */
  only(known: readonly string[], tell: "problem" | "advise"): void {
    const unknown = [...this.#entries.keys()].filter((name) => !known.includes(name));
    for (const name of unknown.slice(0, mostUnknown)) {
      const near = didYouMean(name, known);
      this.#reader[tell](this.at(name), `is not known here${near === "" ? `; possible: ${known.join(", ")}` : near}`);
    }
  }

  /** A number or a word without quotes counts as it was typed: a version 1.10 is not 1.1. */
  text(name: string): string | undefined {
    const node = this.node(name);
    return node === undefined ? undefined : this.#text(node, this.at(name));
  }

  requiredText(name: string, example: string): string | undefined {
    if (this.node(name) === undefined) return this.problem(name, `is missing; write e.g. ${name}: ${example}`);
    return this.text(name);
  }

  texts(name: string): readonly string[] {
    return this.items(name).flatMap((node, index) => this.#text(node, this.at(name, index)) ?? []);
  }

  flag(name: string): boolean | undefined {
    const node = this.node(name);
    if (node === undefined) return undefined;
    const flag = node.kind === "scalar" ? flagOf(node.text) : undefined;
    return flag ?? this.problem(name, "must be true or false");
  }

  number(name: string): number | undefined {
    const node = this.node(name);
    if (node === undefined) return undefined;
    const number = node.kind === "scalar" && node.text.trim() !== "" ? Number(node.text) : Number.NaN;
    return Number.isFinite(number) ? number : this.problem(name, "must be a number");
  }

  choice<const Choice extends string>(name: string, choices: readonly Choice[]): Choice | undefined {
    const text = this.text(name);
    if (text === undefined) return undefined;
    const choice = choices.find((candidate) => candidate === text);
    return choice ?? this.problem(name, `must be ${choices.join(" or ")}${didYouMean(text, choices)}`);
  }

  items(name: string): readonly ValueNode[] {
    const node = this.node(name);
    if (node === undefined) return [];
    if (node.kind !== "list") return this.problem(name, "must be a list") ?? [];
    if (node.items.length > mostItems) return this.problem(name, `must have at most ${mostItems} items`) ?? [];
    return node.items;
  }

  /** A duration in milliseconds. */
  duration(name: string, { longestMs }: { readonly longestMs: number }): number | undefined {
    const text = this.text(name);
    if (text === undefined) return undefined;
    const [, count = "", unit = ""] = /^([0-9]{1,9})(ms|s|m|h|d)$/.exec(text) ?? [];
    const ms = Number(count) * (unitsMs.get(unit) ?? 0);
    if (ms > 0 && ms <= longestMs) return ms;
    return this.problem(name, `must be a number with a unit: ms, s, m, h or d, at most ${longestMs / 86_400_000}d`);
  }

  object(name: string): JsonObject | undefined {
    const node = this.node(name);
    if (node === undefined) return undefined;
    if (node.kind !== "map") return this.problem(name, "must be lines of key: value");
    return this.#reader.json(node, this.at(name)) as JsonObject | undefined;
  }

  #text(node: ValueNode, at: At): string | undefined {
    if (node.kind !== "scalar" || node.value === null) return this.#reader.problem(at, "must be a text");
    const text = typeof node.value === "string" ? node.value : node.text;
    if (text.trim() === "") return this.#reader.problem(at, "must not be empty");
    if (text.length > longestText)
      return this.#reader.problem(at, `must have at most ${longestText} characters, not ${text.length}`);
    return isKeepable(text) ? text : this.#reader.problem(at, unkeepable);
  }
}

/** `plans[0].parameters[2].type` */
export function pathOf(at: At): string {
  return at
    .map((step) => (typeof step === "number" ? `[${step}]` : `.${step}`))
    .join("")
    .replace(/^\./, "");
}

const unitsMs: ReadonlyMap<string, number> = new Map(
  Object.entries({ ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }),
);

const unkeepable = "must not hold NUL or half of a surrogate pair";

/** Authors of classic bundles wrote them as YAML 1.1 has them, and in quotes. */
export function flagOf(text: string): boolean | undefined {
  return flags.get(text.toLowerCase());
}

const flags: ReadonlyMap<string, boolean> = new Map(
  Object.entries({ true: true, yes: true, on: true, false: false, no: false, off: false }),
);
