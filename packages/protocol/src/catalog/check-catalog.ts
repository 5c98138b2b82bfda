import { isJsonObject, type JsonObject } from "../json.js";
import { Check, type Finding } from "./check.js";
import { isSemanticVersion } from "./semantic-version.js";

/**
 * Every rule of the specification on a catalog, as findings with the path of the fault. `error`: the specification forbids it.
 * `warning`: it is advised against. An empty list: nothing to say.
 */
export function checkCatalog(catalog: unknown): readonly Finding[] {
  const check = new Check();
  const root = check.object("", catalog);
  if (root === undefined) return check.findings;
  const seen: Seen = { ids: new Map(), serviceNames: new Map() };
  for (const [path, service] of check.objects("services", root.services, { required: true })) {
    checkService(check, path, service, seen);
  }
  return check.findings;
}

/**
 * Of those rules, the ones on a service by itself; the paths of what is found go behind the service's own. Together with `checkUnique` they are
 * all of them: whoever makes one catalog after the other looks at each service once.
 */
export function checkOffering(offering: unknown): readonly Finding[] {
  const check = new Check();
  const service = check.object("", offering);
  if (service !== undefined) checkService(check, "", service, null);
  return check.findings;
}

/** Of those rules, the ones on what no two services of a catalog may have in common. */
export function checkUnique(offerings: readonly OfferingIds[]): readonly Finding[] {
  if (areUnique(offerings)) return [];
  const check = new Check();
  const seen: Seen = { ids: new Map(), serviceNames: new Map() };
  for (const [index, { id, name, planIds }] of offerings.entries()) {
    const path = `services[${index}]`;
    check.unique(seen.ids, `${path}.id`, id, "id");
    check.unique(seen.serviceNames, `${path}.name`, name, "service name");
    for (const [at, plan] of planIds.entries()) check.unique(seen.ids, `${path}.plans[${at}].id`, plan, "id");
  }
  return check.findings;
}

/** Whether there is nothing to say, told with less: no catalog of thousands of services says where everything stands in it. */
function areUnique(offerings: readonly OfferingIds[]): boolean {
  const [ids, names] = [new Set<string>(), new Set<string>()];
  let count = 0;
  for (const { id, name, planIds } of offerings) {
    ids.add(id);
    names.add(name);
    for (const plan of planIds) ids.add(plan);
    count += 1 + planIds.length;
  }
  return ids.size === count && names.size === offerings.length;
}

/** What tells a service from others. */
export interface OfferingIds {
  readonly id: string;
  readonly name: string;
  readonly planIds: readonly string[];
}

interface Seen {
  /** Of services and plans. */
  readonly ids: Map<string, string>;
  readonly serviceNames: Map<string, string>;
}

const requirements = ["syslog_drain", "route_forwarding", "volume_mount"];
const advisedLength = 255;
const largestSchemaBytes = 65_536;

/** `null`: whatever others have. */
function checkService(check: Check, path: string, service: JsonObject, seen: Seen | null): void {
  checkNaming(check, path, service);
  if (seen !== null) {
    check.unique(seen.ids, `${path}.id`, service.id, "id");
    check.unique(seen.serviceNames, `${path}.name`, service.name, "service name");
  }
  check.strings(`${path}.tags`, service.tags);
  for (const [at, requirement] of check.strings(`${path}.requires`, service.requires)) {
    if (!requirements.includes(requirement))
      check.error(at, `must be one of ${requirements.join(", ")}, not ${JSON.stringify(requirement)}`);
  }
  check.boolean(`${path}.bindable`, service.bindable, { required: true });
  for (const flag of ["instances_retrievable", "bindings_retrievable", "allow_context_updates", "plan_updateable"]) {
    check.boolean(`${path}.${flag}`, service[flag]);
  }
  checkServiceMetadata(check, `${path}.metadata`, service.metadata);
  checkDashboardClient(check, `${path}.dashboard_client`, service.dashboard_client);
  const names = new Map<string, string>();
  const plans = check.objects(`${path}.plans`, service.plans, { required: true, notEmpty: true });
  for (const [at, plan] of plans) {
    if (seen !== null) check.unique(seen.ids, `${at}.id`, plan.id, "id");
    check.unique(names, `${at}.name`, plan.name, "plan name");
    checkPlan(check, at, plan, service.bindable === true);
  }
}

function checkPlan(check: Check, path: string, plan: JsonObject, serviceBindable: boolean): void {
  checkNaming(check, path, plan);
  for (const flag of ["free", "bindable", "binding_rotatable", "plan_updateable"])
    check.boolean(`${path}.${flag}`, plan[flag]);
  const duration = plan.maximum_polling_duration;
  if (duration !== undefined && !(Number.isInteger(duration) && (duration as number) >= 0)) {
    check.error(`${path}.maximum_polling_duration`, "must be a whole number of seconds");
  }
  checkMaintenanceInfo(check, `${path}.maintenance_info`, plan.maintenance_info);
  checkPlanMetadata(check, `${path}.metadata`, plan.metadata);
  const bindable = typeof plan.bindable === "boolean" ? plan.bindable : serviceBindable;
  checkSchemas(check, `${path}.schemas`, plan.schemas, bindable);
}

function checkNaming(check: Check, path: string, item: JsonObject): void {
  for (const field of ["name", "id", "description"]) {
    const text = check.text(`${path}.${field}`, item[field], { required: true });
    if (text !== undefined && text.length > advisedLength)
      check.warning(`${path}.${field}`, `is longer than ${advisedLength} characters; platforms may refuse it`);
  }
  const { name } = item;
  if (typeof name === "string" && name !== "" && !/^[A-Za-z0-9][A-Za-z0-9.-]*$/.test(name)) {
    check.warning(
      `${path}.name`,
      "should have only letters, digits, dots and dashes, so that it can be typed at a command line",
    );
  }
}

function checkMaintenanceInfo(check: Check, path: string, value: unknown): void {
  if (value === undefined) return;
  const info = check.object(path, value);
  if (info === undefined) return;
  const version = check.text(`${path}.version`, info.version, { required: true });
  if (version !== undefined && !isSemanticVersion(version))
    check.error(`${path}.version`, `must be a semantic version such as "1.2.3", not ${JSON.stringify(version)}`);
  check.text(`${path}.description`, info.description);
}

function checkDashboardClient(check: Check, path: string, value: unknown): void {
  // An empty object is what some brokers send for "none"; Cloud Foundry takes it so.
  if (value === undefined || (isJsonObject(value) && Object.keys(value).length === 0)) return;
  const client = check.object(path, value);
  if (client === undefined) return;
  check.text(`${path}.id`, client.id, { required: true });
  check.text(`${path}.secret`, client.secret, { required: true });
  check.text(`${path}.redirect_uri`, client.redirect_uri);
}

const serviceTexts = [
  "displayName",
  "imageUrl",
  "longDescription",
  "providerDisplayName",
  "documentationUrl",
  "supportUrl",
];

/** PROF-09, PROF-12: advice, because metadata is the broker's own. */
function checkServiceMetadata(check: Check, path: string, value: unknown): void {
  if (value === undefined) return;
  const metadata = check.object(path, value);
  if (metadata === undefined) return;
  for (const name of serviceTexts) {
    if (metadata[name] !== undefined && typeof metadata[name] !== "string")
      check.warning(`${path}.${name}`, "should be a text");
  }
  if (metadata.shareable !== undefined && typeof metadata.shareable !== "boolean")
    check.warning(`${path}.shareable`, "should be true or false");
}

function checkPlanMetadata(check: Check, path: string, value: unknown): void {
  if (value === undefined) return;
  const metadata = check.object(path, value);
  if (metadata === undefined) return;
  const { bullets, costs, displayName } = metadata;
  if (displayName !== undefined && typeof displayName !== "string")
    check.warning(`${path}.displayName`, "should be a text");
  if (bullets !== undefined && !(Array.isArray(bullets) && bullets.every((bullet) => typeof bullet === "string"))) {
    check.warning(`${path}.bullets`, "should be a list of texts");
  }
  if (costs === undefined) return;
  for (const [at, cost] of check.objects(`${path}.costs`, costs)) {
    const amount = check.object(`${at}.amount`, cost.amount);
    for (const [currency, price] of Object.entries(amount ?? {})) {
      if (typeof price !== "number") check.error(`${at}.amount.${currency}`, "must be a number");
    }
    check.text(`${at}.unit`, cost.unit, { required: true });
  }
}

function checkSchemas(check: Check, path: string, value: unknown, bindable: boolean): void {
  if (value === undefined) return;
  const schemas = check.object(path, value);
  if (schemas === undefined) return;
  const places = { service_instance: ["create", "update"], service_binding: ["create"] };
  for (const [owner, verbs] of Object.entries(places)) {
    const group = schemas[owner] === undefined ? undefined : check.object(`${path}.${owner}`, schemas[owner]);
    for (const verb of group === undefined ? [] : verbs) {
      const input = group?.[verb] === undefined ? undefined : check.object(`${path}.${owner}.${verb}`, group[verb]);
      if (input?.parameters === undefined) continue;
      const at = `${path}.${owner}.${verb}.parameters`;
      if (owner === "service_binding" && !bindable) check.warning(at, "has no use: the plan cannot be bound");
      checkSchema(check, at, input.parameters);
    }
  }
}

/** SCHEMA-02 to SCHEMA-04. Whether it is a schema at all is for a validator to say. */
function checkSchema(check: Check, path: string, value: unknown): void {
  const schema = check.object(path, value);
  if (schema === undefined) return;
  check.text(`${path}.$schema`, schema.$schema, { required: true });
  // A catalog may come from anyone: what is too deep is not walked any further, by whatever would recurse.
  if (!checkReferences(check, path, schema, 0)) {
    check.error(path, `is nested deeper than ${deepestSchema} levels`);
    return;
  }
  const bytes = new TextEncoder().encode(JSON.stringify(schema)).length;
  if (bytes > largestSchemaBytes) check.error(path, `must have at most ${largestSchemaBytes} bytes, not ${bytes}`);
}

const deepestSchema = 200;

/** Answers whether all of it could be looked at. */
function checkReferences(check: Check, path: string, value: unknown, depth: number): boolean {
  if (typeof value !== "object" || value === null) return true;
  if (depth > deepestSchema) return false;
  return Object.entries(value).every(([name, item]) => {
    const at = Array.isArray(value) ? `${path}[${name}]` : `${path}.${name}`;
    if (!references.has(name) || typeof item !== "string") return checkReferences(check, at, item, depth + 1);
    if (!item.startsWith("#"))
      check.error(at, `must point inside the schema (start with #), not to ${JSON.stringify(item)}`);
    return true;
  });
}

const references: ReadonlySet<string> = new Set(["$ref", "$dynamicRef", "$recursiveRef"]);
