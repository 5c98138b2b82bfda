import { type HttpEnd, httpEnd, type PagesOptions, pages, type Readiness } from "@osbert/server";
import { anyNeeds, type Observe, tellAll } from "@osbert/server/observe";
import type { Platform } from "../platform.js";
import { asProblem, problemDetails } from "./api-problem.js";
import type { Callers } from "./callers.js";
import { type EventStreamLimits, EventStreams } from "./event-stream.js";
import { platformApi } from "./platform-api.js";
import { apiRouteTable } from "./routes.js";
import { type ApiRequestAnswered, SeenApiRequest } from "./seen-api-request.js";
import { storeReadiness } from "./store-readiness.js";

export interface PlatformEndOptions extends Pick<PagesOptions, "metrics" | "openReadiness" | "watchers"> {
  readonly callers: Callers;
  /** Whether requests should be sent to this process, for `/readyz`. Default: if the store answers. */
  readonly readiness?: () => Promise<Readiness>;
  /** Told of every request. */
  readonly observe?: readonly Observe<ApiRequestAnswered>[];
  readonly streamLimits?: EventStreamLimits;
}

/** A platform's end of the wire: its API, and the pages for those who run it. */
export interface PlatformEnd extends HttpEnd {
  /** Ends the answers that would go on for as long as somebody listens. */
  closeStreams(): void;
}

export function platformEnd(platform: Platform, options: PlatformEndOptions): PlatformEnd {
  const { callers, metrics, openReadiness, watchers, observe = [] } = options;
  const { readiness = storeReadiness(platform) } = options;
  const streams = new EventStreams(options.streamLimits);
  const { authenticate, accessOf } = callers;
  const end = httpEnd<ApiRequestAnswered, SeenApiRequest>({
    apis: [
      platformApi({ platform, authenticate, accessOf, streams }),
      pages({ ...{ readiness, metrics, openReadiness, watchers, authenticate } }),
    ],
    problemOf: asProblem,
    answerProblem: problemDetails,
    refuseMethod: (method, path) => apiRouteTable.refusal(method, path),
    challenge: authenticate.challenge,
    ...(observe.length > 0 && {
      watch: {
        see: () => new SeenApiRequest(),
        tell: tellAll(observe),
        needs: anyNeeds(observe),
        tracing: undefined,
      },
    }),
  });
  return { ...end, closeStreams: () => streams.close() };
}
