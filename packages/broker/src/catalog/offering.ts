import type { JsonObject, ServiceOffering, ServicePlan } from "@osbert/protocol";
import type { Schema } from "../service/schema.js";
import type { PlanDefinition, Service } from "../service/service.js";
import { published } from "./validation.js";

/** A service as the catalog shows it. */
export function toOffering(service: Service): ServiceOffering {
  const bindable = service.bindable ?? service.bind !== undefined;
  const planUpdateable = service.planUpdateable ?? false;
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
    plan_updateable: planUpdateable,
    plans: Object.entries((service.plans ?? {}) as Record<string, PlanDefinition>).map(([name, plan]) =>
      toPlan(name, plan, { bindable, planUpdateable }),
    ),
  };
}

/** What holds for the plan is said in it: there are platforms that take a missing `free` for paid, and do not look at the service. */
function toPlan(
  name: string,
  plan: PlanDefinition,
  service: { readonly bindable: boolean; readonly planUpdateable: boolean },
): ServicePlan {
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
    free: plan.free ?? true,
    ...(plan.metadata && { metadata: plan.metadata }),
    bindable: plan.bindable ?? service.bindable,
    ...(plan.bindingRotatable !== undefined && { binding_rotatable: plan.bindingRotatable }),
    plan_updateable: plan.planUpdateable ?? service.planUpdateable,
    ...(plan.maximumPollingDuration !== undefined && { maximum_polling_duration: plan.maximumPollingDuration }),
    ...(plan.maintenanceInfo && { maintenance_info: plan.maintenanceInfo }),
    ...(Object.keys(schemas).length > 0 && { schemas }),
  };
}

function schemaOf(verb: "create" | "update", schema: Schema | undefined): Record<string, { parameters: JsonObject }> {
  return schema === undefined ? {} : { [verb]: { parameters: published(schema) } };
}
