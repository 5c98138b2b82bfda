import type { BrokerErrorCode } from "@osbert/protocol";
import { type RequestAnswered as AnyRequestAnswered, SeenRequest, shortened } from "@osbert/server/observe";
import type { BrokerCatalog } from "../catalog/catalog.js";
import type { RequestAnswered } from "../observe/event.js";

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
    const { services } = this.#catalog();
    const service = typeof this.#serviceId === "string" ? services.get(this.#serviceId) : undefined;
    const plan = typeof this.#planId === "string" ? service?.plans.get(this.#planId) : undefined;
    // Added to the object that was made for it: a copy of it took longer than all else that is done for a catalog's answer.
    return Object.assign(request, {
      // Of a broker's refusals all are BrokerErrors.
      errorCode: request.errorCode as BrokerErrorCode | null,
      instance: this.#instance === null ? null : shortened(this.#instance),
      binding: this.#binding === null ? null : shortened(this.#binding),
      service: this.#serviceId === undefined ? null : (service?.offering.name ?? "unknown"),
      plan: this.#planId === undefined ? null : (plan?.name ?? "unknown"),
      operation: this.#operation,
    });
  }
}
