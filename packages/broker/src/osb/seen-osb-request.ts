import type { BrokerErrorCode } from "@osbert/protocol";
import { type RequestAnswered as AnyRequestAnswered, SeenRequest, shortened } from "@osbert/server/observe";
import type { BrokerCatalog } from "../catalog/catalog.js";
import type { NamedInRequest, RequestAnswered } from "../observe/event.js";

/** What is learnt about a request to a broker: the ids in its path, the service and plan that it names, the operation that it began. */
export class SeenOsbRequest extends SeenRequest<RequestAnswered> {
  readonly #catalog: () => BrokerCatalog;
  #instance: string | null = null;
  #binding: string | null = null;
  #serviceId: unknown;
  #planId: unknown;
  #operation: string | null = null;

  constructor(catalog: () => BrokerCatalog) {
    super();
    this.#catalog = catalog;
  }

  override matched(route: { readonly name: string; readonly instance?: string; readonly binding?: string }): void {
    super.matched(route);
    this.#instance = route.instance || null;
    this.#binding = route.binding || null;
  }

  /** Ids of service and plan stand in the body or in the query, as the endpoint has it. */
  asked(body: Readonly<Record<string, unknown>>, query: Readonly<Record<string, unknown>>): void {
    const previous = body.previous_values as { readonly plan_id?: unknown } | null | undefined;
    // An empty one counts as left out, as it does to the endpoints.
    this.#serviceId = body.service_id || query.service_id || undefined;
    this.#planId = body.plan_id || query.plan_id || previous?.plan_id || undefined;
  }

  override answered(status: number, body: unknown): void {
    const { operation } = (status === 202 ? body : {}) as { readonly operation?: unknown };
    if (typeof operation === "string") this.#operation = operation;
  }

  protected override complete(request: AnyRequestAnswered): RequestAnswered {
    return {
      ...request,
      // Of a broker's refusals all are BrokerErrors.
      errorCode: request.errorCode as BrokerErrorCode | null,
      instance: this.#instance === null ? null : shortened(this.#instance),
      binding: this.#binding === null ? null : shortened(this.#binding),
      ...named(this.#serviceId, this.#planId, this.#catalog()),
      operation: this.#operation,
    };
  }
}

function named(
  serviceId: unknown,
  planId: unknown,
  { services }: BrokerCatalog,
): { readonly service: NamedInRequest; readonly plan: NamedInRequest } {
  const service = typeof serviceId === "string" ? services.get(serviceId) : undefined;
  const plan = typeof planId === "string" ? service?.plans.get(planId) : undefined;
  return {
    service: serviceId === undefined ? null : (service?.offering.name ?? "unknown"),
    plan: planId === undefined ? null : (plan?.name ?? "unknown"),
  };
}
