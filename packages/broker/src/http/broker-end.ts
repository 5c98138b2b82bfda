import { type Handler, type HttpEnd, httpEnd, type OnError, pages } from "@osbert/server";
import {
  type Authenticate,
  type AuthenticationOptions,
  authentication,
  type Credential,
  openToAll,
} from "@osbert/server/authentication";
import { type AdminOptions, adminApi } from "../admin/admin-api.js";
import type { Broker } from "../broker.js";
import { asBrokerError } from "../endpoints/as-broker-error.js";
import type { RequestAnswered } from "../observe/event.js";
import type { Metrics } from "../observe/metrics.js";
import { type OsbApiOptions, osbApi } from "../osb/osb-api.js";
import { methodRefusal } from "../osb/routes.js";
import { SeenOsbRequest } from "../osb/seen-osb-request.js";

/** What is answered for those who run the broker: `/healthz`, `/readyz`, `/metrics`. */
export interface PagesOptions {
  /** Answers `/metrics` with these. */
  readonly metrics?: Pick<Metrics, "contentType" | "scrape">;
  /** Answers `/readyz` to anyone, as load balancers that know no password need it. Default: to those with a credential. */
  readonly openReadiness?: boolean;
  /** Credentials that may read `/readyz` and `/metrics` and nothing else, beside those of platforms. */
  readonly watchers?: readonly Credential[];
}

/** Who may ask, under which paths, and what is answered besides the API. */
export interface HandlerOptions extends PagesOptions, OsbApiOptions {
  /** Who may ask; or a function that says who asks. `"none"`: anyone; only where something in front of the broker authenticates. */
  readonly credentials: readonly Credential[] | Authenticate | "none";
  /** How guessing is slowed down, and who is told. */
  readonly authentication?: AuthenticationOptions;
  /** The admin API at `/admin/v1/…`, for credentials of its own. Without it there is none. */
  readonly admin?: AdminOptions;
  /** Told of every error that is the broker's own fault. */
  readonly onError?: OnError;
}

/** The whole wire without a server: a function that answers requests. */
export function createHandler(broker: Broker, options: HandlerOptions): Handler {
  return brokerEnd(broker, options).handle;
}

/** A broker's end of the wire: the admin API, the pages for those who run it, and the Open Service Broker API. */
export function brokerEnd(broker: Broker, options: HandlerOptions): HttpEnd {
  const { metrics, openReadiness, watchers, admin, onError } = options;
  const { watch } = broker;
  const authenticate = authenticateWith(options);
  return httpEnd<RequestAnswered, SeenOsbRequest>({
    apis: [
      ...(admin === undefined ? [] : [adminApi(() => broker.operator, admin, options, broker.adminRoutes)]),
      pages({
        readiness: () => broker.readiness(),
        metrics: metrics && { contentType: metrics.contentType, scrape: () => metrics.scrape(broker) },
        ...{ openReadiness, watchers, authenticate },
      }),
      osbApi(broker, authenticate, options),
    ],
    problemOf: asBrokerError,
    refuseMethod: methodRefusal,
    challenge: authenticate.challenge,
    watch: watch && { ...watch, see: () => new SeenOsbRequest(watch.catalog) },
    onError,
  });
}

function authenticateWith({ credentials, authentication: options }: HandlerOptions): Authenticate {
  if (credentials === "none") return openToAll;
  return typeof credentials === "function" ? credentials : authentication(credentials, options);
}
