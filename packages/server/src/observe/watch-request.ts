import { runInside } from "@osbert/journal";
import type { News, RequestAnswered } from "./event.js";
import type { AroundRequest, RequestTracing } from "./request-tracing.js";
import type { SeenRequest } from "./seen-request.js";

/** Who watches the requests of a server. */
export interface RequestWatch<Event extends RequestAnswered, Seen extends SeenRequest<Event>> {
  /** What is to be learnt about a request that has just come. */
  see(): Seen;
  /** Harms nobody, whoever is told. */
  tell(event: Event): void;
  readonly tracing: RequestTracing<Event> | undefined;
  /** Whether anybody makes something of such an event: to make one costs as much as the rest of a catalog's answer. */
  needs(news: News): boolean;
}

interface Asked {
  readonly method: string;
  readonly url: string;
  header(name: string): string | undefined;
}

interface Answered {
  readonly status: number;
}

/**
 * Lets a request be answered in sight of whoever watches. `answer` neither throws nor rejects: it tells errors as answers. It hands each response
 * to `tell` itself, where it has it: to wait for a promise once more would cost every request a turn.
 */
export function watchRequest<
  Event extends RequestAnswered,
  Seen extends SeenRequest<Event>,
  Request extends Asked,
  Response extends Answered,
>(
  watch: RequestWatch<Event, Seen>,
  request: Request,
  requestId: string,
  answer: (seen: Seen, tell: (response: Response) => Response) => Response | Promise<Response>,
): Response | Promise<Response> {
  const startedAt = performance.now();
  const seen = watch.see();
  const around = begun(watch.tracing, request);
  seen.trace = around?.trace ?? null;
  const tell = (response: Response): Response => {
    if (around === undefined && !watch.needs({ kind: "request answered", status: response.status })) return response;
    const event = seen.event(request.method, requestId, response.status, performance.now() - startedAt);
    watch.tell(event);
    if (around !== undefined) quietly(() => around.end(event));
    return response;
  };
  return around === undefined ? answer(seen, tell) : runInside(around, () => answer(seen, tell));
}

/** Probes and scrapes come every few seconds and lead nowhere: they are not traced. */
function begun<Event extends RequestAnswered>(
  tracing: RequestTracing<Event> | undefined,
  asked: Asked,
): AroundRequest<Event> | undefined {
  if (tracing === undefined || asked.url === "/readyz" || asked.url === "/metrics") return undefined;
  return quietly(() => {
    const [traceparent, tracestate] = [asked.header("traceparent"), asked.header("tracestate")];
    return tracing.request({ method: asked.method, traceparent, tracestate });
  });
}

function quietly<T>(work: () => T): T | undefined {
  try {
    return work();
  } catch {
    return undefined;
  }
}
