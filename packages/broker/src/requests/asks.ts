import { BrokerError, type Context, type JsonObject, type MaintenanceInfo } from "@osbert/protocol";
import { optionalMaintenanceInfo, optionalObject, optionalText, requiredText, withoutEmpties } from "./fields.js";
import { checkId } from "./ids.js";

/** What a platform asks, read from the wire and checked for its shape. Whether it can be done is decided elsewhere. */
export interface ProvisionAsk {
  readonly serviceId: string;
  readonly planId: string;
  readonly organizationGuid: string;
  readonly spaceGuid: string;
  readonly context: Context;
  readonly parameters: JsonObject;
  readonly maintenance: MaintenanceInfo | null;
}

export interface UpdateAsk {
  readonly serviceId: string;
  readonly planId: string | null;
  readonly context: JsonObject | null;
  readonly parameters: JsonObject | null;
  readonly maintenance: MaintenanceInfo | null;
}

export interface BindAsk {
  /** `null` in a rotation that leaves it to the predecessor. */
  readonly serviceId: string | null;
  readonly planId: string | null;
  readonly context: JsonObject;
  readonly appGuid: string | null;
  readonly bindResource: JsonObject;
  readonly parameters: JsonObject;
  readonly predecessor: string | null;
}

export interface DeleteAsk {
  readonly serviceId: string;
  readonly planId: string;
}

export function readProvision(body: JsonObject): ProvisionAsk {
  return {
    serviceId: requiredText(body, "service_id"),
    planId: requiredText(body, "plan_id"),
    organizationGuid: requiredText(body, "organization_guid"),
    spaceGuid: requiredText(body, "space_guid"),
    context: optionalObject(body, "context") ?? {},
    parameters: optionalObject(body, "parameters") ?? {},
    maintenance: optionalMaintenanceInfo(body),
  };
}

export function readUpdate(body: JsonObject): UpdateAsk {
  // Information only; but it has to be what it says it is.
  optionalObject(body, "previous_values");
  return {
    serviceId: requiredText(body, "service_id"),
    planId: optionalText(body, "plan_id"),
    context: optionalObject(body, "context"),
    parameters: optionalObject(body, "parameters"),
    maintenance: optionalMaintenanceInfo(body),
  };
}

export function readBind(body: JsonObject): BindAsk {
  const predecessor = optionalText(body, "predecessor_binding_id");
  // It is looked for in the store, as the ids of the path are.
  if (predecessor !== null) checkId(predecessor, "predecessor_binding_id");
  const read = predecessor === null ? requiredText : optionalText;
  const bindResource = withoutEmpties(optionalObject(body, "bind_resource") ?? {}, bindResourceTexts);
  return {
    serviceId: read(body, "service_id"),
    planId: read(body, "plan_id"),
    context: optionalObject(body, "context") ?? {},
    appGuid: optionalText(bindResource, "app_guid") ?? optionalText(body, "app_guid"),
    bindResource,
    parameters: optionalObject(body, "parameters") ?? {},
    predecessor,
  };
}

const bindResourceTexts = ["app_guid", "route", "space_guid", "credential_client_id"];

export function readDelete(query: JsonObject): DeleteAsk {
  return { serviceId: requiredText(query, "service_id"), planId: requiredText(query, "plan_id") };
}

export function readAcceptsIncomplete(query: JsonObject): boolean {
  const value = query.accepts_incomplete;
  if (value === undefined || value === "false" || value === "") return false;
  if (value === "true") return true;
  throw new BrokerError("bad-request", "accepts_incomplete must be true or false");
}
