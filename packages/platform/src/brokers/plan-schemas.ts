import { hash } from "node:crypto";
import type { Json, ServicePlan } from "@osbert/protocol";
import { compileSchema, TooMuchWork, type Validate } from "@osbert/server/schemas";
import type { SchemaUse, SchemaVerdict } from "../decisions/preflight.js";

/** Compiled schemas are large, and a catalog may have tens of thousands: those that were used last are kept. */
const mostKept = 200;

type Compiled =
  | { readonly kind: "usable"; readonly validate: Validate }
  | { readonly kind: "unusable"; readonly message: string };

/** What plans' schemas say to parameters. A schema is compiled when it is first used; that it cannot be is a fault of the broker's, not of the user's. */
export class PlanSchemas {
  /** By the hash of their text: of thousands of plans, most have the same one. */
  readonly #compiled = new Map<string, Compiled>();
  /** A catalog's schemas are the same objects until it is read anew: to write one down again for each intent costs more than to check it. */
  readonly #hashes = new WeakMap<object, string>();

  /** The one at the end of those: most intents of a time are of one plan, and need not put it there again. */
  #last: { readonly key: string; readonly compiled: Compiled } | undefined;

  check(plan: ServicePlan, use: SchemaUse, parameters: Json): SchemaVerdict {
    const schema = schemaOf(plan.schemas, use);
    if (schema === undefined) return { kind: "fine" };
    const compiled = this.#compile(schema);
    if (compiled.kind === "unusable") return compiled;
    try {
      const message = compiled.validate(parameters);
      return message === null ? { kind: "fine" } : { kind: "violated", message };
    } catch (error) {
      // A schema may refer to itself without end, or double its work with each level. Advice is not worth that: the broker looks at them itself.
      if (error instanceof TooMuchWork) return { kind: "unusable", message: error.message };
      throw error;
    }
  }

  #compile(schema: object): Compiled {
    let key = this.#hashes.get(schema);
    if (key === undefined) {
      key = hash("sha256", JSON.stringify(schema), "base64");
      this.#hashes.set(schema, key);
    }
    if (this.#last?.key === key) return this.#last.compiled;
    const compiled = this.#compiled.get(key) ?? compile(schema);
    // What was used last is at the end, and what is first goes.
    this.#compiled.delete(key);
    this.#compiled.set(key, compiled);
    const [oldest] = this.#compiled.keys();
    if (this.#compiled.size > mostKept && oldest !== undefined) this.#compiled.delete(oldest);
    this.#last = { key, compiled };
    return compiled;
  }
}

function compile(schema: object): Compiled {
  try {
    // A copy: what is compiled is kept longer than the catalog that it came from.
    return { kind: "usable", validate: compileSchema(JSON.parse(JSON.stringify(schema)), "parameters") };
  } catch (error) {
    const message = error instanceof Error ? error.message.slice(0, 500) : "the plan's schema cannot be read";
    return { kind: "unusable", message };
  }
}

function schemaOf(schemas: ServicePlan["schemas"], use: SchemaUse): object | undefined {
  switch (use) {
    case "create":
      return schemas?.service_instance?.create?.parameters;
    case "update":
      return schemas?.service_instance?.update?.parameters;
    case "bind":
      return schemas?.service_binding?.create?.parameters;
  }
}
