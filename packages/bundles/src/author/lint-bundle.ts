import { isJsonObject, type Json, type JsonObject } from "@osbert/protocol";
import type { BundleSpec, PlanSpec, SpecProblem } from "../formats/bundle-spec.js";
import { parseBundle } from "../formats/parse-bundle.js";
import { type At, SpecReader } from "../formats/spec-reader.js";
import type { BundleFormat } from "../sources/source.js";

/**
 * All that is wrong with an author's file, and what could be better, in the order of its lines. The name of the file says what it is: `apb.yml` is of a
 * classic bundle, every other one of Osbert's own. A problem keeps the bundle from being used, advice does not.
 */
export function lintBundle(text: string, file: string): readonly SpecProblem[] {
  const format: BundleFormat = /(^|[/\\])apb\.ya?ml$/.test(file) ? "apb" : "osbert";
  const parsed = parseBundle({ format, text, runtime: null });
  if (parsed.kind === "invalid") return inOrder(parsed.problems);
  // Read once more, for the lines of what is said here.
  const reader = new SpecReader(text, file);
  new Lint(reader, parsed.spec).run();
  return inOrder([...parsed.advice, ...reader.advice]);
}

function inOrder(problems: readonly SpecProblem[]): readonly SpecProblem[] {
  return [...problems].sort((one, other) => (one.line ?? 0) - (other.line ?? 0));
}

class Lint {
  readonly #reader: SpecReader;
  readonly #spec: BundleSpec;

  constructor(reader: SpecReader, spec: BundleSpec) {
    this.#reader = reader;
    this.#spec = spec;
  }

  run(): void {
    const { format, plans, bundleVersion } = this.#spec;
    if (format === "apb" && bundleVersion === null)
      this.#advise(
        ["bundleVersion"],
        "is missing; with one, platforms can offer upgrades: write e.g. bundleVersion: 1.0.0",
      );
    if (format === "osbert") this.#actions();
    plans.forEach((plan, index) => this.#plan(plan, this.#planAt(plan, index)));
  }

  /** A classic bundle says only when it is asked which actions it has. */
  #actions(): void {
    const { actions, bindable, plans, command } = this.#spec;
    const has = (action: BundleSpec["actions"][number]) => actions.includes(action);
    if ((bindable || plans.some((plan) => plan.bindable)) && !has("bind"))
      this.#advise(["bindable"], "is true, but bind is not among actions: applications would get no credentials");
    if (has("bind") && !has("unbind"))
      this.#advise(["actions"], "has bind without unbind: credentials stay valid after they were given back");
    if (has("provision") && !has("deprovision"))
      this.#advise(["actions"], "has provision without deprovision: what was made is never removed");
    if (has("provision") && !has("update"))
      this.#advise(
        ["actions"],
        "has no update: parameters and plans of instances stay, and nothing runs at an upgrade",
      );
    if (command === null)
      this.#advise(["command"], "is missing; only an image with an entry point of its own can be run without one");
  }

  #planAt({ name }: PlanSpec, index: number): At {
    const list: At = ["plans", index];
    return this.#reader.has(list) ? list : ["plans", name];
  }

  #plan(plan: PlanSpec, at: At): void {
    const { format, actions } = this.#spec;
    const { provision, update, bind } = plan.schemas;
    if (format === "osbert") {
      if (provision === null && actions.includes("provision"))
        this.#advise(
          at,
          "has no schema for provision: whatever users send is handed to the bundle; write provision: { type: object, additionalProperties: false } if it takes nothing",
        );
      this.#schema(provision, [...at, "provision"]);
      this.#schema(update, [...at, "update"]);
      this.#schema(bind, [...at, "bind"]);
      return;
    }
    this.#apbParameters(provision, [...at, "parameters"]);
    this.#apbParameters(bind, [...at, "bind_parameters"]);
  }

  #schema(schema: JsonObject | null, at: At): void {
    if (schema === null) return;
    if (
      schema.additionalProperties === undefined &&
      schema.unevaluatedProperties === undefined &&
      schema.$ref === undefined
    )
      this.#advise(
        at,
        "lets parameters pass that it does not name, misspelt ones too; write additionalProperties: false",
      );
    this.#walk(schema, at);
  }

  #walk(value: Json | undefined, at: At): void {
    if (Array.isArray(value)) value.forEach((item, index) => this.#walk(item, [...at, index]));
    if (!isJsonObject(value)) return;
    this.#pattern(value, [...at, "pattern"]);
    for (const [keyword, inside] of Object.entries(value)) {
      if (keyword === "properties" && isJsonObject(inside))
        for (const [name, schema] of Object.entries(inside)) {
          this.#secret(name, schema, [...at, keyword, name, "default"]);
          this.#walk(schema, [...at, keyword, name]);
        }
      // What stands there is a value and no schema.
      else if (!["default", "enum", "const", "examples"].includes(keyword)) this.#walk(inside, [...at, keyword]);
    }
  }

  /** The schema has the parameters in their order. */
  #apbParameters(schema: JsonObject | null, at: At): void {
    Object.entries(isJsonObject(schema?.properties) ? schema.properties : {}).forEach(([name, property], index) => {
      this.#secret(name, property, [...at, index, "default"]);
      if (isJsonObject(property)) this.#pattern(property, [...at, index, "pattern"]);
    });
  }

  #secret(name: string, schema: Json, at: At): void {
    if (!isJsonObject(schema) || typeof schema.default !== "string" || schema.default === "") return;
    if (secretNames.test(name) || schema.format === "password" || schema.writeOnly === true)
      this.#advise(
        at,
        "is a secret that everyone who sees the catalog knows; leave it out, and make one in the bundle",
      );
  }

  #pattern({ pattern }: JsonObject, at: At): void {
    if (typeof pattern !== "string" || (/^(\^|\\A)/.test(pattern) && /(\$|\\z)$/.test(pattern))) return;
    this.#advise(at, "matches a part of the text, too; write ^ before and $ after it if all of it is meant");
  }

  #advise(at: At, message: string): void {
    this.#reader.advise(at, message);
  }
}

const secretNames = /passw(or)?d|passphrase|secret|token|credential|(api|access|private|auth)[-_]?key/i;
