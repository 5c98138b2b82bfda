import type { Journal } from "@osbert/journal";
import type { JsonObject } from "@osbert/protocol";
import type { Answer } from "@osbert/server";
import type { BrokerCatalog } from "../catalog/catalog.js";
import type { ServiceJudge } from "../catalog/service-source.js";
import type { AsyncRules } from "../service/async-rule.js";
import type { Caller } from "./caller.js";
import type { PresentMetadata } from "./present-metadata.js";

/** A request to one endpoint, authenticated and read as JSON; nothing in it is trusted. */
export interface VerbRequest {
  /** Who asks. */
  readonly caller: Caller;
  /** The id in the path. */
  readonly instance: string;
  /** The id in the path; "" where it is about an instance. */
  readonly binding: string;
  /** The parameters of the URL; the first of repeated ones. */
  readonly query: JsonObject;
  /** The JSON body; `{}` where there is none. */
  readonly body: JsonObject;
}

/** Answers a request; rejects with a BrokerError that says no. What was answered with 201 or 202 was durable before. */
export type Endpoint = (ports: EndpointPorts, request: VerbRequest) => Promise<Answer>;

/** What endpoints need of the broker. */
export interface EndpointPorts {
  readonly journal: Journal;
  readonly catalog: () => BrokerCatalog;
  /** In which the service of an instance is as it was at the instance's revision. Rejects with a 503 where that cannot be told now. */
  readonly catalogOf: (serviceId: string, revision: string | null) => Promise<BrokerCatalog>;
  /** Whether there may be instances of a revision that is not the one offered now: services come from a source. */
  readonly hasRevisions: boolean;
  /** What the source of the services says of requests. */
  readonly judge: ServiceJudge | undefined;
  /** What it tells of an instance that is fetched. */
  readonly presentMetadata: PresentMetadata | undefined;
  readonly async: AsyncRules;
  /** How long a platform that cannot wait for less is kept waiting. */
  readonly syncTimeoutMs: number;
  readonly cascade: boolean;
  readonly forceDeleteUnknown: { readonly instances: boolean; readonly bindings: boolean };
  /** Advice to platforms that poll, in seconds. */
  readonly retryAfterSeconds: number | null;
  /** Whether an operator has paused a service. */
  readonly isPaused: (serviceId: string) => boolean;
}
