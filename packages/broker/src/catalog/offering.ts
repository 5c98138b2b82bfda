import type { InputSchema, JsonObject, PlanSchemas, ServiceOffering, ServicePlan } from "@osbert/protocol";
import type { Schema } from "@osbert/server/schemas";
import type { PlanDefinition, Service } from "../service/service.js";

/** Turns a schema into what platforms see of it; `path` is where, in the service. */
export type Publish = (schema: Schema, path: string) => JsonObject;

/** Where the schemas of a plan stand in the catalog. */
const schemaPlaces = {
  provision: "service_instance.create",
  update: "service_instance.update",
  bind: "service_binding.create",
} as const;

export function schemaPlace(plan: number, verb: keyof typeof schemaPlaces): string {
  return `plans[${plan}].schemas.${schemaPlaces[verb]}.parameters`;
}

/** A service as the catalog shows it. */
export function toOffering(service: Service, publish: Publish): ServiceOffering {
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
    plans: Object.entries((service.plans ?? {}) as Record<string, PlanDefinition>).map(([name, plan], index) =>
      toPlan(name, plan, { bindable, planUpdateable }, schemasOf(plan, index, publish)),
    ),
  };
}

/** What holds for the plan is said in it: there are platforms that take a missing `free` for paid, and do not look at the service. */
function toPlan(
  name: string,
  plan: PlanDefinition,
  service: { readonly bindable: boolean; readonly planUpdateable: boolean },
  schemas: PlanSchemas,
): ServicePlan {
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

function schemasOf(plan: PlanDefinition, index: number, publish: Publish): PlanSchemas {
  const schemas: Record<string, Record<string, InputSchema>> = {};
  for (const verb of ["provision", "update", "bind"] as const) {
    const schema = plan[verb];
    if (schema === undefined) continue;
    const [owner = "", action = ""] = schemaPlaces[verb].split(".");
    schemas[owner] = { ...schemas[owner], [action]: { parameters: publish(schema, schemaPlace(index, verb)) } };
  }
  return schemas;
}
