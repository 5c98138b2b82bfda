import { isSemanticVersion, type Json, type JsonObject } from "@osbert/protocol";
import { didYouMean } from "@osbert/server/yaml";
import { formDefinition, parametersSchema, readApbParameters } from "./apb-parameters.js";
import { actions, type BundleSpec, type ParsedBundle, type PlanSpec } from "./bundle-spec.js";
import { checkOffer, type PlanPlaces } from "./check-offer.js";
import { readName } from "./read-name.js";
import { type Fields, SpecReader } from "./spec-reader.js";

/** F3. */
export const mostPlans = 200;

const known = [
  ...["version", "name", "description", "bindable", "async", "tags", "metadata", "plans", "alpha", "bundleVersion"],
  // Older ones have them; they meant nothing then, either.
  ...["image", "id", "runtime", "delete"],
];
const knownOfPlans = [
  ...["name", "description", "free", "bindable", "metadata", "parameters", "bind_parameters", "updates_to"],
];

/**
 * Reads the apb.yml of a classic bundle. What cannot be offered or checked is a problem, with its place; what its authors were used to write
 * and the predecessor let pass is taken as it was meant, with advice. `runtime` is the image's label: 1 where there is none.
 */
export function parseApb(text: string, runtime: number | null): ParsedBundle {
  const reader = new SpecReader(text, "apb.yml");
  const spec = reader.problems.length === 0 ? readApb(reader, runtime) : undefined;
  if (spec !== undefined && reader.problems.length === 0) checkOffer(reader, spec, places);
  return spec === undefined || reader.problems.length > 0
    ? { kind: "invalid", problems: reader.problems }
    : { kind: "valid", spec, advice: reader.advice };
}

const places: PlanPlaces = {
  plan: (index) => ["plans", index],
  schemas: { provision: "parameters", update: "parameters", bind: "bind_parameters" },
};

function readApb(reader: SpecReader, runtime: number | null): BundleSpec | undefined {
  const fields = reader.root();
  fields.only(known, "advise");
  checkVersion(fields);
  if (runtime !== null && runtime !== 1 && runtime !== 2)
    reader.problem(["runtime"], "the runtime of the image's label is not supported; it must be 1 or 2");
  const name = readName(fields, "name", "postgresql-apb");
  const bundleVersion = fields.text("bundleVersion");
  if (bundleVersion !== undefined && !isSemanticVersion(bundleVersion))
    fields.problem("bundleVersion", "must be a semantic version; write e.g. bundleVersion: 1.2.0");
  const metadata = fields.object("metadata") ?? {};
  const bindable = fields.flag("bindable") ?? false;
  const plans = readPlans(reader, fields, bindable);
  const description = describe(fields, metadata, name);
  const rest = {
    tags: fields.texts("tags"),
    async: fields.choice("async", ["optional", "required", "unsupported"]) ?? "optional",
  } as const;
  if (name === undefined || description === undefined) return undefined;
  return {
    format: "apb",
    runtime: runtime === 2 ? 2 : 1,
    ...{ name, id: null, description, bindable, metadata, plans, actions, ...rest },
    bundleVersion: bundleVersion ?? null,
    ...{ command: null, network: true, timeoutMs: null },
  };
}

function checkVersion(fields: Fields): void {
  const version = fields.requiredText("version", "'1.0'");
  if (version !== undefined && version !== "1.0" && version !== "1.0.0")
    fields.problem("version", "is a version of the format that is not supported; it must be 1.0");
}

/** The catalog must have one. The predecessor did not ask for it. */
function describe(fields: Fields, metadata: JsonObject, name: string | undefined): string | undefined {
  const node = fields.node("description");
  if (node !== undefined && !(node.kind === "scalar" && node.text.trim() === "")) return fields.text("description");
  const { longDescription, displayName } = metadata;
  const instead = [longDescription, displayName, name].find(
    (text): text is string => typeof text === "string" && text.trim() !== "",
  );
  if (name !== undefined) fields.advise("description", "is missing; say in a sentence what users get");
  return instead;
}

function readPlans(reader: SpecReader, fields: Fields, bindable: boolean): readonly PlanSpec[] {
  const items = fields.items("plans");
  // F5-44: without a plan there is nothing to offer.
  if (items.length === 0) return fields.problem("plans", "must have at least one plan") ?? [];
  if (items.length > mostPlans) return fields.problem("plans", `must have at most ${mostPlans} plans`) ?? [];
  const all = items.map((node, index) => reader.fields(node, fields.at("plans", index)));
  const names = all.map((plan) => readName(plan, "name", "default"));
  names.forEach((name, index) => {
    if (name !== undefined && names.indexOf(name) < index)
      all[index]?.problem("name", "is there twice; give one of them another name");
  });
  return all.flatMap((plan, index) => {
    const name = names[index];
    return readPlan(reader, plan, name, bindable, new Set(names.flatMap((other) => other ?? []))) ?? [];
  });
}

function readPlan(
  reader: SpecReader,
  fields: Fields,
  name: string | undefined,
  serviceBindable: boolean,
  names: ReadonlySet<string>,
): PlanSpec | undefined {
  fields.only(knownOfPlans, "advise");
  const metadata = fields.object("metadata") ?? {};
  const bindable = fields.flag("bindable") ?? serviceBindable;
  const free = fields.flag("free") ?? true;
  const parameters = readApbParameters(reader, fields, "parameters");
  const bindParameters = readApbParameters(reader, fields, "bind_parameters");
  const updatable = parameters.filter((parameter) => parameter.updatable);
  const updatesTo = fields.texts("updates_to").flatMap((written, index) => {
    const target = written.normalize("NFC");
    if (names.has(target)) return [target];
    reader.advise(fields.at("updates_to", index), `is none of the plans; it is left out${didYouMean(target, names)}`);
    return [];
  });
  const description = describe(fields, metadata, name);
  if (name === undefined || description === undefined) return undefined;
  const forms = formsOf({
    "service_instance.create": formDefinition(parameters),
    "service_instance.update": formDefinition(updatable),
    "service_binding.create": bindable ? formDefinition(bindParameters) : [],
  });
  return {
    ...{ name, id: null, previousNames: [], description, free, bindable },
    metadata: Object.keys(forms).length === 0 ? metadata : { ...metadata, schemas: forms },
    updatesTo: [...new Set(updatesTo)],
    schemas: {
      provision: parametersSchema(parameters, { isUpdate: false }),
      update: parametersSchema(updatable, { isUpdate: true }),
      bind: bindable ? parametersSchema(bindParameters, { isUpdate: false }) : null,
    },
  };
}

/** Where the web console of OpenShift looks for them. */
function formsOf(forms: Readonly<Record<string, readonly Json[]>>): JsonObject {
  const found: Record<string, Record<string, Json>> = {};
  for (const [place, form] of Object.entries(forms)) {
    const [owner = "", action = ""] = place.split(".");
    if (form.length > 0) found[owner] = { ...found[owner], [action]: { openshift_form_definition: form } };
  }
  return found;
}
