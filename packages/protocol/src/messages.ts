import type { Context } from "./context.js";
import type { JsonObject } from "./json.js";

/** The version of a plan's maintenance that a request is about. */
export interface MaintenanceInfo {
  readonly version: string;
  readonly description?: string;
}

/** PUT /v2/service_instances/:instance_id */
export interface ProvisionRequest {
  readonly service_id: string;
  readonly plan_id: string;
  readonly organization_guid: string;
  readonly space_guid: string;
  readonly context?: Context;
  readonly parameters?: JsonObject;
  readonly maintenance_info?: MaintenanceInfo;
}

export interface InstanceMetadata {
  readonly labels?: JsonObject;
  readonly attributes?: JsonObject;
}

export interface ProvisionResponse {
  readonly dashboard_url?: string | null;
  readonly operation?: string;
  readonly metadata?: InstanceMetadata;
}

/** GET /v2/service_instances/:instance_id */
export interface FetchInstanceResponse {
  readonly service_id?: string;
  readonly plan_id?: string;
  readonly dashboard_url?: string | null;
  readonly parameters?: JsonObject;
  readonly maintenance_info?: MaintenanceInfo;
  readonly metadata?: InstanceMetadata;
}

/** PATCH /v2/service_instances/:instance_id */
export interface UpdateRequest {
  readonly service_id: string;
  readonly plan_id?: string;
  readonly context?: Context;
  readonly parameters?: JsonObject;
  readonly previous_values?: PreviousValues;
  readonly maintenance_info?: MaintenanceInfo;
}

export interface PreviousValues {
  readonly service_id?: string;
  readonly plan_id?: string;
  readonly organization_id?: string;
  readonly space_id?: string;
  readonly maintenance_info?: MaintenanceInfo;
}

export interface UpdateResponse {
  readonly dashboard_url?: string | null;
  readonly operation?: string;
  readonly metadata?: InstanceMetadata;
}

/** PUT /v2/service_instances/:instance_id/service_bindings/:binding_id. A rotation names its predecessor and nothing else. */
export interface BindRequest {
  readonly service_id?: string;
  readonly plan_id?: string;
  readonly context?: Context;
  readonly app_guid?: string;
  readonly bind_resource?: BindResource;
  readonly parameters?: JsonObject;
  readonly predecessor_binding_id?: string;
}

export interface BindResource extends JsonObject {
  readonly app_guid: string;
  readonly route: string;
}

export interface Binding {
  readonly metadata?: BindingMetadata;
  readonly credentials?: JsonObject;
  readonly syslog_drain_url?: string;
  readonly route_service_url?: string;
  readonly volume_mounts?: readonly VolumeMount[];
  readonly endpoints?: readonly Endpoint[];
}

export interface BindingMetadata {
  /** ISO 8601 in UTC with a fraction: 2026-01-31T12:00:00.0Z */
  readonly expires_at?: string;
  /** Not after `expires_at`. */
  readonly renew_before?: string;
}

export interface VolumeMount {
  readonly driver: string;
  readonly container_dir: string;
  readonly mode: "r" | "rw";
  readonly device_type: "shared";
  readonly device: { readonly volume_id: string; readonly mount_config?: JsonObject };
}

export interface Endpoint {
  readonly host: string;
  /** Numbers or ranges as texts: "443", "9000-9010". */
  readonly ports: readonly string[];
  readonly protocol?: "tcp" | "udp" | "all";
}

export interface BindResponse extends Binding {
  readonly operation?: string;
}

/** GET …/service_bindings/:binding_id */
export interface FetchBindingResponse extends Binding {
  readonly parameters?: JsonObject;
}

/** DELETE answers, of instances and bindings. */
export interface DeleteResponse {
  readonly operation?: string;
}

export type OperationState = "in progress" | "succeeded" | "failed";

/** GET …/last_operation */
export interface LastOperationResponse {
  readonly state: OperationState;
  readonly description?: string;
  readonly instance_usable?: boolean;
  readonly update_repeatable?: boolean;
}

/** `operation` has at most so many characters. */
export const longestOperation = 10_000;
