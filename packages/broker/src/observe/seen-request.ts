import { runInside } from "@osbert/journal";
import type { BrokerError } from "@osbert/protocol";
import type { BrokerCatalog } from "../catalog/catalog.js";
import type { NamedInRequest, RefusedCaller, RequestAnswered } from "./event.js";
import type { AroundRequest, Tracing } from "./tracing.js";
import type { Watch } from "./watch.js";

/** As much of a text from outside as is worth telling. */
const longestText = 400;

/** What is learnt about a request on its way to its answer. */
export class SeenRequest {
  /** Where the request stands in a trace. */
  trace: string | null = null;
  #route: string | null = null;
  #platform: string | null = null;
  #credential: string | null = null;
  #instance: string | null = null;
  #binding: string | null = null;
  #serviceId: unknown;
  #planId: unknown;
  #operation: string | null = null;
  #error: BrokerError | undefined;
  #caller: (() => RefusedCaller) | undefined;

  /** Before it is known who asks. `caller` is called only if they are not let in. */
  authenticating(caller: () => RefusedCaller): void {
    this.#caller = caller;
  }

  authenticated(credential: string, platform: string): void {
    this.#credential = credential;
    this.#platform = platform;
  }

  matched({ name, instance, binding }: { name: string; instance?: string; binding?: string }): void {
    this.#route = name;
    this.#instance = instance || null;
    this.#binding = binding || null;
  }

  /** Ids of service and plan stand in the body or in the query, as the endpoint has it. */
  asked(body: Readonly<Record<string, unknown>>, query: Readonly<Record<string, unknown>>): void {
    const previous = body.previous_values as { readonly plan_id?: unknown } | null | undefined;
    // An empty one counts as left out, as it does to the endpoints.
    this.#serviceId = body.service_id || query.service_id || undefined;
    this.#planId = body.plan_id || query.plan_id || previous?.plan_id || undefined;
  }

  answered(status: number, body: unknown): void {
    const { operation } = (status === 202 ? body : {}) as { readonly operation?: unknown };
    if (typeof operation === "string") this.#operation = operation;
  }

  refused(error: BrokerError): void {
    this.#error = error;
  }

  event(
    method: string,
    requestId: string | null,
    status: number,
    tookMs: number,
    catalog: BrokerCatalog,
  ): RequestAnswered {
    const error = this.#error;
    return {
      kind: "request answered",
      method: short(method),
      route: this.#route,
      platform: this.#platform,
      credential: this.#credential,
      instance: this.#instance === null ? null : short(this.#instance),
      binding: this.#binding === null ? null : short(this.#binding),
      ...names(this.#serviceId, this.#planId, catalog),
      status,
      errorCode: error?.code ?? null,
      description: error === undefined ? null : error.message,
      cause: error !== undefined && error.status >= 500 ? error.cause : undefined,
      operation: this.#operation,
      requestId,
      tookMs,
      refused: this.#refused(),
    };
  }

  #refused(): RefusedCaller | null {
    const code = this.#error?.code;
    if (this.#credential !== null || (code !== "unauthorized" && code !== "too-many-requests")) return null;
    return this.#caller?.() ?? null;
  }
}

interface Asked {
  readonly method: string;
  readonly url: string;
  readonly header: (name: string) => string | undefined;
}

interface Answered {
  readonly status: number;
}

/** Lets a request be answered in sight of whoever watches. `answer` neither throws nor rejects: it tells errors as answers. */
export function watched<Request extends Asked, Response extends Answered>(
  watch: Watch,
  request: Request,
  requestId: string,
  answer: (seen: SeenRequest) => Response | Promise<Response>,
): Response | Promise<Response> {
  const startedAt = performance.now();
  const seen = new SeenRequest();
  const around = begun(watch.tracing, request);
  seen.trace = around?.trace ?? null;
  const tell = (response: Response): Response => {
    const { method } = request;
    const event = seen.event(method, requestId, response.status, performance.now() - startedAt, watch.catalog());
    watch.tell(event);
    if (around !== undefined) quietly(() => around.end(event));
    return response;
  };
  const given = around === undefined ? answer(seen) : runInside(around, () => answer(seen));
  return given instanceof Promise ? given.then(tell) : tell(given);
}

/** Tells of a request that was refused before anyone looked at what it asks for. */
export function tellOfRefusal(
  watch: Watch,
  method: string,
  error: BrokerError,
  tookMs: number,
  requestId: string,
): void {
  const seen = new SeenRequest();
  seen.refused(error);
  watch.tell(seen.event(method, requestId, error.status, tookMs, watch.catalog()));
}

/** Probes and scrapes come every few seconds and lead nowhere: they are not traced. */
function begun(tracing: Tracing | undefined, { method, url, header }: Asked): AroundRequest | undefined {
  if (tracing === undefined || url === "/readyz" || url === "/metrics") return undefined;
  return quietly(() =>
    tracing.request({ method, traceparent: header("traceparent"), tracestate: header("tracestate") }),
  );
}

function names(
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

function short(text: string): string {
  return text.length > longestText ? `${text.slice(0, longestText - 1)}…` : text;
}

function quietly<T>(work: () => T): T | undefined {
  try {
    return work();
  } catch {
    return undefined;
  }
}
