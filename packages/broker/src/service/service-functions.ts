import type { Schema } from "@osbert/server/schemas";
import type { PlanDefinitions, Service, ServiceDefinition } from "./service.js";

/** What the catalog says of a service, and its functions do not depend on. */
type Told = "id" | "description" | "tags" | "metadata" | "dashboardClient" | "plans" | "revision";

/** The functions of a service, with their state, and nothing that the catalog shows of it. `name` is what a catalog that uses them calls them. */
export type ServiceFunctions = Omit<Service, Told>;

/**
 * Describes functions without a catalog: services and plans for them are written elsewhere, such as in the YAML file of `osbert serve`.
 * Any plan can come, so `plan` is a text and `parameters` any object. This adds nothing but the types.
 *
 * @example
 * ```ts
 * import { defineServiceFunctions } from "@osbert/broker";
 *
 * export const services = [
 *   defineServiceFunctions({
 *     name: "database",
 *     async bind(_operation, { plan, instance }) {
 *       return { credentials: { database: instance.id, plan } };
 *     },
 *   }),
 * ];
 * ```
 */
export function defineServiceFunctions<
  const State extends Schema | undefined = undefined,
  const BindingState extends Schema | undefined = undefined,
>(functions: Omit<ServiceDefinition<PlanDefinitions, State, BindingState>, Told>): ServiceFunctions {
  return functions;
}
