import { isSemanticVersion, type JsonObject } from "@osbert/protocol";
import { didYouMean, type ValueNode } from "@osbert/server/yaml";
import { type Action, actions, type BundleSpec, type ParsedBundle, type PlanSpec } from "./bundle-spec.js";
import { checkOffer } from "./check-offer.js";
import { mostPlans } from "./parse-apb.js";
import { checkName, readName } from "./read-name.js";
import { type At, type Fields, SpecReader } from "./spec-reader.js";

/** What an osbert.yaml may have, and what a plan in it may. */
export const bundleFields: readonly string[] = [
  ...["osbert", "name", "id", "version", "description", "tags", "metadata", "bindable", "async", "network", "timeout"],
  ...["command", "actions", "plans"],
];
export const planFields: readonly string[] = [
  ...["name", "id", "previousNames", "description", "free", "bindable", "metadata", "updatesTo"],
  ...["provision", "update", "bind"],
];

const longestTimeoutMs = 7 * 86_400_000;
const mostArguments = 100;

/**
 * Reads the osbert.yaml of a bundle: docs/reference/bundle-contract.md. A key that is not known is a problem, because what its author meant by it would
 * not happen; so is a schema that cannot be checked in bounded time.
 */
export function parseOsbertYaml(text: string): ParsedBundle {
  const reader = new SpecReader(text, "osbert.yaml");
  const read = reader.problems.length === 0 ? readBundle(reader) : undefined;
  if (read !== undefined && reader.problems.length === 0)
    checkOffer(reader, read.spec, {
      plan: (index) => read.planPlaces[index] ?? ["plans"],
      schemas: { provision: "provision", update: "update", bind: "bind" },
    });
  return read === undefined || reader.problems.length > 0
    ? { kind: "invalid", problems: reader.problems }
    : { kind: "valid", spec: read.spec, advice: reader.advice };
}

interface ReadSpec {
  readonly spec: BundleSpec;
  /** By their order in the spec. */
  readonly planPlaces: readonly At[];
}

function readBundle(reader: SpecReader): ReadSpec | undefined {
  const fields = reader.root();
  if (!checkFormat(fields)) return undefined;
  fields.only(bundleFields, "problem");
  const name = readName(fields, "name", "postgres-database");
  const description = fields.requiredText("description", "One PostgreSQL database per instance");
  const version = fields.text("version");
  if (version === undefined)
    fields.advise("version", "is missing; with one, platforms can offer upgrades: write e.g. version: 1.0.0");
  else if (!isSemanticVersion(version))
    fields.problem("version", "must be a semantic version; write e.g. version: 1.2.0");
  const knows = readActions(reader, fields);
  const bindable = fields.flag("bindable") ?? knows.includes("bind");
  const plans = readPlans(reader, fields, bindable, knows);
  const command = readCommand(fields);
  const rest = {
    id: readId(fields),
    tags: fields.texts("tags"),
    metadata: fields.object("metadata") ?? {},
    async: fields.choice("async", ["optional", "required", "unsupported"]) ?? "optional",
    network: fields.flag("network") ?? false,
    timeoutMs: fields.duration("timeout", { longestMs: longestTimeoutMs }) ?? null,
  } as const;
  if (name === undefined || description === undefined) return undefined;
  const spec: BundleSpec = {
    ...{ format: "osbert", runtime: null, name, description, bindable, bundleVersion: version ?? null },
    ...{ actions: knows, plans: plans.map(({ plan }) => plan), command, ...rest },
  };
  return { spec, planPlaces: plans.map(({ at }) => at) };
}

/** Tells it from the file of the same name that has the program's settings. */
function checkFormat(fields: Fields): boolean {
  const format = fields.text("osbert");
  if (format === "1") return true;
  if (format === undefined && (fields.node("module") ?? fields.node("listen")) !== undefined)
    fields.problem(
      "osbert",
      "is missing: this looks like settings of the program; a bundle's file begins with osbert: 1",
    );
  else if (fields.node("osbert") === undefined) fields.problem("osbert", "is missing; begin with osbert: 1");
  else fields.problem("osbert", "is a version of the format that is not supported; it must be 1");
  return false;
}

function readId(fields: Fields): string | null {
  const id = fields.text("id")?.toLowerCase();
  if (id === undefined) return null;
  if (uuid.test(id)) return id;
  return fields.problem("id", "must be a UUID, such as 5b1e7a0c-8d54-4a5e-9a0e-0d6e2a6a4f10") ?? null;
}

const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** One word is the program, a list is the program and its arguments; no shell reads either. */
function readCommand(fields: Fields): readonly string[] | null {
  const node = fields.node("command");
  if (node === undefined) return null;
  const words = node.kind === "list" ? fields.texts("command") : [fields.text("command") ?? []].flat();
  if (words.length > mostArguments) fields.problem("command", `must have at most ${mostArguments} words`);
  if (node.kind === "scalar" && /\s/.test(words[0] ?? ""))
    fields.problem("command", "must be a list if it has arguments; write e.g. command: [node, bundle.js]");
  if (node.kind === "list" && node.items.length === 0) fields.problem("command", "must name a program");
  return words;
}

function readActions(reader: SpecReader, fields: Fields): readonly Action[] {
  if (fields.node("actions") === undefined) return actions;
  const written = fields.texts("actions");
  written.forEach((name, index) => {
    if (!(actions as readonly string[]).includes(name))
      reader.problem(fields.at("actions", index), `is no action: ${actions.join(", ")}${didYouMean(name, actions)}`);
  });
  // In their own order: the same meaning is the same text.
  return actions.filter((action) => written.includes(action));
}

interface ReadPlan {
  readonly plan: PlanSpec;
  readonly at: At;
}

/** A map of plans by their names, or a list of plans with names. */
function readPlans(
  reader: SpecReader,
  fields: Fields,
  bindable: boolean,
  knows: readonly Action[],
): readonly ReadPlan[] {
  const written = writtenPlans(reader, fields);
  // F5-44: without a plan there is nothing to offer.
  if (written.length === 0 && reader.problems.length === 0) fields.problem("plans", "must have at least one plan");
  if (written.length > mostPlans) return fields.problem("plans", `must have at most ${mostPlans} plans`) ?? [];
  const owners = new Map<string, string>();
  for (const { name, at } of written) {
    if (owners.has(name)) reader.problem(at, `the name ${name} is there twice; give one of them another name`);
    owners.set(name, name);
  }
  return written.flatMap(({ name, node, at }) => {
    const plan = readPlan(reader, reader.fields(node, at), name, { bindable, knows, owners });
    return plan === undefined ? [] : [{ plan, at }];
  });
}

interface WrittenPlan {
  readonly name: string;
  readonly node: ValueNode;
  readonly at: At;
}

function writtenPlans(reader: SpecReader, fields: Fields): readonly WrittenPlan[] {
  const node = fields.node("plans");
  if (node?.kind !== "map")
    return fields.items("plans").flatMap((item, index) => {
      const at = fields.at("plans", index);
      const name = readName(reader.fields(item, at), "name", "small");
      return name === undefined ? [] : [{ name, node: item, at }];
    });
  return [...node.entries].slice(0, mostPlans + 1).flatMap(([key, { written }]) => {
    const at = fields.at("plans", key);
    const name = checkName(key.normalize("NFC"), (message) => reader.problem(at, `as a name it ${message}`));
    return name === undefined ? [] : [{ name, node: written, at }];
  });
}

interface Around {
  readonly bindable: boolean;
  readonly knows: readonly Action[];
  /** All names that plans have, or had, and which plan's they are. */
  readonly owners: Map<string, string>;
}

function readPlan(reader: SpecReader, fields: Fields, name: string, around: Around): PlanSpec | undefined {
  const { knows, owners } = around;
  fields.only(planFields, "problem");
  if (fields.at().at(-1) === name && fields.node("name") !== undefined && fields.text("name") !== name)
    fields.problem("name", "must be the key under which the plan stands; leave it out");
  const description = fields.requiredText("description", "A database on a shared host");
  const bindable = fields.flag("bindable") ?? around.bindable;
  const updatesTo = fields.texts("updatesTo").map((written, index) => {
    const target = written.normalize("NFC");
    if (owners.get(target) !== target)
      reader.problem(fields.at("updatesTo", index), `is none of the plans${didYouMean(target, owners.keys())}`);
    return target;
  });
  const previousNames = fields.texts("previousNames").map((written, index) => {
    const previous = written.normalize("NFC");
    const owner = owners.get(previous);
    if (owner !== undefined) reader.problem(fields.at("previousNames", index), `is a name of plan ${owner}`);
    else owners.set(previous, name);
    return previous;
  });
  const schemas = {
    provision: fields.object("provision") ?? null,
    update: fields.object("update") ?? null,
    bind: fields.object("bind") ?? null,
  };
  for (const [field, schema] of Object.entries(schemas)) checkTakesObjects(fields, field, schema);
  if (!knows.includes("update")) {
    if (updatesTo.length > 0) fields.problem("updatesTo", "needs the action update, which is not among actions");
    if (schemas.update !== null) fields.problem("update", "needs the action update, which is not among actions");
  }
  const rest = { id: readId(fields), free: fields.flag("free") ?? true, metadata: fields.object("metadata") ?? {} };
  if (description === undefined) return undefined;
  return { name, previousNames, description, bindable, updatesTo: [...new Set(updatesTo)], schemas, ...rest };
}

/** Parameters are always an object; a schema of anything else would refuse them all. */
function checkTakesObjects(fields: Fields, field: string, schema: JsonObject | null): void {
  const type = schema?.type;
  if (type !== undefined && type !== "object" && !(Array.isArray(type) && type.includes("object")))
    fields.problem(field, "must be a schema of an object; write type: object");
}
