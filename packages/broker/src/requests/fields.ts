import { BrokerError, isJsonObject, type JsonObject, type MaintenanceInfo } from "@osbert/protocol";

/** Reads fields of a body or a query; what is not as it must be is a 400 that names the field. */
export function requiredText(from: JsonObject, field: string): string {
  const value = own(from, field);
  if (value === undefined) throw bad(`${field} is missing`);
  if (typeof value !== "string") throw bad(`${field} must be a text`);
  if (value === "") throw bad(`${field} must not be empty`);
  return value;
}

export function optionalText(from: JsonObject, field: string): string | null {
  const value = own(from, field);
  return value === undefined || value === null ? null : requiredText(from, field);
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
  if (typeof version !== "string" || version === "")
    throw bad("maintenance_info.version must be a text that is not empty");
  return { version };
}

function own(from: JsonObject, field: string): unknown {
  return Object.hasOwn(from, field) ? from[field] : undefined;
}

function bad(description: string): BrokerError {
  return new BrokerError("bad-request", description);
}
