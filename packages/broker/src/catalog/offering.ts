import type { JsonObject, ServiceOffering, ServicePlan } from "@osbert/protocol";
import type { Schema } from "../service/schema.js";
import type { PlanDefinition, Service } from "../service/service.js";
import { published } from "./validation.js";

/** A service as the catalog shows it. */
export function toOffering(service: Service): ServiceOffering {
  const bindable = service.bindable ?? service.bind !== undefined;
  return {
    name: service.name,
    id: service.id,
    description: service.description,
    ...(service.tags && { tags: service.tags }),
    ...(service.requires && { requires: service.requires }),
    bindable,
    instances_retrievable: service.instancesRetrievable ?? true,
    bindings_retrievable: service.bindingsRetrievable ?? bindable,
    ...(service.allowContextUpdates !== undefined && { allow_context_updates: service.allowContextUpdates }),
    ...(service.metadata && { metadata: service.metadata }),
    ...(service.dashboardClient && { dashboard_client: service.dashboardClient }),
    plan_updateable: service.planUpdateable ?? false,
    plans: Object.entries((service.plans ?? {}) as Record<string, PlanDefinition>).map(([name, plan]) =>
      toPlan(name, plan),
    ),
  };
}

function toPlan(name: string, plan: PlanDefinition): ServicePlan {
  const instance = { ...schemaOf("create", plan.provision), ...schemaOf("update", plan.update) };
  const binding = schemaOf("create", plan.bind);
  const schemas = {
    ...(Object.keys(instance).length > 0 && { service_instance: instance }),
    ...(Object.keys(binding).length > 0 && { service_binding: binding }),
  };
  return {
    id: plan.id,
    name,
    description: plan.description,
    ...(plan.free !== undefined && { free: plan.free }),
    ...(plan.metadata && { metadata: plan.metadata }),
    ...(plan.bindable !== undefined && { bindable: plan.bindable }),
    ...(plan.bindingRotatable !== undefined && { binding_rotatable: plan.bindingRotatable }),
    ...(plan.planUpdateable !== undefined && { plan_updateable: plan.planUpdateable }),
    ...(plan.maximumPollingDuration !== undefined && { maximum_polling_duration: plan.maximumPollingDuration }),
    ...(plan.maintenanceInfo && { maintenance_info: plan.maintenanceInfo }),
    ...(Object.keys(schemas).length > 0 && { schemas }),
  };
}

function schemaOf(verb: "create" | "update", schema: Schema | undefined): Record<string, { parameters: JsonObject }> {
  return schema === undefined ? {} : { [verb]: { parameters: published(schema) } };
}
