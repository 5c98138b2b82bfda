import { BrokerError, isJsonObject, type JsonObject, type MaintenanceInfo } from "@osbert/protocol";
import type { DeleteRequest } from "../decisions/deprovision.js";

/*
 * Reads fields of a body or a query; what is not as it must be is a 400 that names the field.
 *
 * Where a field may be left out, an empty one counts as left out. The specification asks platforms for texts that are not empty, but many
 * are written in languages whose records have every field, and users have the platform that they have. Who sends what:
 *
 * | what | who |
 * |---|---|
 * | `app_guid: ""`, `bind_resource: { app_guid: "" }` | Korifi, for a service key |
 * | `parameters: null` | Korifi, wherever the user gave none |
 * | `bind_resource: {}` | Cloud Controller, for a service key |
 * | `maintenance_info: {}` | Cloud Controller, in an update of an instance whose plan has none |
 * | `previous_values: { …, maintenance_info: null }` | Cloud Controller, likewise |
 * | `previous_values: {}` | Service Catalog, for a plan in a namespace |
 * | `plan_id: ""`, `previous_values: { plan_id: "", … }`, `app_guid: ""`, `context: null` | programs on the types of Go's brokerapi |
 * | `operation=` | eden, after a 202 that names no operation |
 *
 * What must be there (the ids of a provision, a bind and a delete) must not be empty.
 */
export function requiredText(from: JsonObject, field: string): string {
  const value = own(from, field);
  if (value === undefined) throw bad(`${field} is missing`);
  if (typeof value !== "string") throw bad(`${field} must be a text`);
  if (value === "") throw bad(`${field} must not be empty`);
  return value;
}

export function optionalText(from: JsonObject, field: string): string | null {
  return isLeftOut(own(from, field)) ? null : requiredText(from, field);
}

export function optionalObject(from: JsonObject, field: string): JsonObject | null {
  const value = own(from, field);
  if (value === undefined || value === null) return null;
  if (!isJsonObject(value)) throw bad(`${field} must be an object`);
  return value;
}

export function optionalMaintenanceInfo(from: JsonObject): MaintenanceInfo | null {
  const info = optionalObject(from, "maintenance_info");
  if (info === null) return null;
  const version = own(info, "version");
  if (isLeftOut(version)) return null;
  if (typeof version !== "string") throw bad("maintenance_info.version must be a text");
  return { version };
}

/** The object without those of the texts in it that are empty; whoever is handed it sees what was meant. */
export function withoutEmpties(object: JsonObject, texts: readonly string[]): JsonObject {
  const empty = texts.filter((field) => optionalText(object, field) === null && Object.hasOwn(object, field));
  if (empty.length === 0) return object;
  return Object.fromEntries(Object.entries(object).filter(([field]) => !empty.includes(field)));
}

function isLeftOut(value: unknown): boolean {
  return value === undefined || value === null || value === "";
}

function own(from: JsonObject, field: string): unknown {
  return Object.hasOwn(from, field) ? from[field] : undefined;
}

function bad(description: string): BrokerError {
  return new BrokerError("bad-request", description);
}

/** What a platform says when it deletes an instance or a binding. */
export function readDelete(query: JsonObject): DeleteRequest {
  return { serviceId: requiredText(query, "service_id"), planId: requiredText(query, "plan_id") };
}
