import type { JsonObject } from "../json.js";
import type { MaintenanceInfo } from "../messages.js";

/** GET /v2/catalog */
export interface Catalog {
  readonly services: readonly ServiceOffering[];
}

export type Requirement = "syslog_drain" | "route_forwarding" | "volume_mount";

export interface ServiceOffering {
  readonly name: string;
  readonly id: string;
  readonly description: string;
  readonly tags?: readonly string[];
  readonly requires?: readonly Requirement[];
  readonly bindable: boolean;
  readonly instances_retrievable?: boolean;
  readonly bindings_retrievable?: boolean;
  readonly allow_context_updates?: boolean;
  readonly metadata?: JsonObject;
  readonly dashboard_client?: DashboardClient;
  readonly plan_updateable?: boolean;
  readonly plans: readonly ServicePlan[];
}

export interface DashboardClient {
  readonly id: string;
  readonly secret: string;
  readonly redirect_uri?: string;
}

export interface ServicePlan {
  readonly id: string;
  readonly name: string;
  readonly description: string;
  readonly metadata?: JsonObject;
  readonly free?: boolean;
  readonly bindable?: boolean;
  readonly binding_rotatable?: boolean;
  readonly plan_updateable?: boolean;
  readonly schemas?: PlanSchemas;
  readonly maximum_polling_duration?: number;
  readonly maintenance_info?: MaintenanceInfo;
}

export interface PlanSchemas {
  readonly service_instance?: { readonly create?: InputSchema; readonly update?: InputSchema };
  readonly service_binding?: { readonly create?: InputSchema };
}

export interface InputSchema {
  readonly parameters?: JsonObject;
}

/** The plan's word, else the offering's: what holds for a plan (CAT-27, CAT-29). */
export function isBindable(service: ServiceOffering, plan: ServicePlan): boolean {
  return plan.bindable ?? service.bindable;
}

export function isPlanUpdateable(service: ServiceOffering, plan: ServicePlan): boolean {
  return plan.plan_updateable ?? service.plan_updateable ?? false;
}
