import type { Attribution, Journal, OperationKinds } from "@osbert/journal";
import type { BrokerErrorCode, InstanceMetadata, JsonObject } from "@osbert/protocol";
import type { InstanceAddress } from "../records/instance-key.js";
import type { Service } from "../service/service.js";

/**
 * Where the services of a broker come from when they change by themselves while it runs. A list of services is its simplest form. What it
 * gives is checked as a list is; what breaks the specification is told to those who watch, and what was offered before stays.
 */
export interface ServiceSource {
  /**
   * Begins, before the first operation runs and the first request is answered. It may keep what it knows in the broker's journal:
   * `followedServices` does, so that all processes change at once.
   */
  open(ports: ServiceSourcePorts): Promise<void>;
  /**
   * What is offered now. `undefined`: that is not known yet, and platforms are asked to come again. Told an empty catalog, they would
   * mark everything as gone.
   */
  readonly services: readonly Service[] | undefined;
  /** When what is offered was last changed, the same in all processes; `null` or nothing: that is not known. Told platforms as `Last-Modified`. */
  readonly changedAt?: number | null;
  /**
   * A service as it was at a revision that is not the one offered now: instances that were made of it go on with it, also after a restart.
   * `undefined`: no revisions are kept, and they go on with what is offered now. Rejects where it cannot tell; then it is asked again.
   */
  resolve(serviceId: string, revision: string): Promise<Service | undefined>;
  /**
   * Its services were checked before, as a catalog of each alone, and consist of JSON but for their functions: they are not checked again, and
   * their schemas are compiled when a request needs them. Default false.
   */
  readonly servicesAreChecked?: boolean;
  /** What it says of requests beside what its services say. Default: what is offered can be had, and nothing else. */
  readonly judge?: ServiceJudge;
  /** What each platform sees of the services. Default: all see all. */
  readonly audience?: Audience;
  /**
   * What is to be told of an instance at the moment when a platform fetches it, such as its health: its labels and attributes are laid over those
   * that were recorded. What does not come within two seconds, fails or is malformed is left out; it never fails the request.
   */
  instanceMetadata?(address: InstanceAddress, serviceId: string): Promise<InstanceMetadata | undefined>;
  /** An instance of a service is gone for good. A hint, in the process that deleted it: after a kill it does not come. */
  instanceGone?(serviceId: string): void;
  /**
   * Operations of its own, by kind: work that has to outlive a process, done by one of all that run the broker, on resources that the source
   * keeps in the broker's journal. They share a lane, which is no service's, unless they are accepted with one. Their kinds must not be those of the broker, its verbs.
   */
  readonly kinds?: OperationKinds;
  /** Routes of its own in the admin API, for the same credentials. */
  readonly admin?: AdminRoutes;
  /** The broker stops. */
  close(): void;
}

/**
 * Platforms that see a part of the services each, under paths of their own. What one does not see is not in its catalog; whether it can be had all
 * the same is for the judge to say. All of it is answered out of memory, but whether there is a platform.
 */
export interface Audience {
  /** Whether there is such a platform now: at the paths of others there is nothing. "" is the one without a name before `/v2`. */
  has(platform: string): boolean | Promise<boolean>;
  /**
   * Changes whenever what the platform sees of the same services does. `undefined`: that is not known yet, and it is asked to come again. Told an
   * empty catalog, it would mark everything as gone.
   */
  version(platform: string): string | undefined;
  /** Whether it sees a plan. A service of which it sees none is not told. */
  sees(platform: string, serviceId: string, planId: string): boolean;
  /** When what it sees was last changed, beside the services themselves; `null` or nothing: that is not known. */
  changedAt?(platform: string): number | null;
}

/**
 * What a source knows of its services that they do not say themselves: that one was withdrawn, or cannot be told of yet. It is asked only about
 * what would begin: a request that was accepted before is answered as then, whatever became of its service.
 */
export interface ServiceJudge {
  /** Whether an instance can be made of a plan now, out of memory. What is allowed is held against the catalog then, as ever. */
  provision(serviceId: string, planId: string, platform: string): Judgement | AskFirst;
  /** Whether an instance may change to a plan that its own revision leads to. `null`: it may. */
  planChange(serviceId: string, from: string, to: string, platform: string): Refusal | null;
  /**
   * Asked by operations that make or upgrade an instance, before anything is done and after the instance was committed with the revision:
   * whether that is kept for as long as the instance is there. `null`: it is. The same time of acceptance always gets the same answer,
   * unless something has come back. Rejects where it cannot tell, now or in this process; then it is asked again. Once it has said yes, the
   * operation does not ask any more.
   */
  accepted(serviceId: string, revision: string, acceptedAt: number): Promise<Refusal | null>;
}

/** What a source says of a request to make an instance. */
export type Judgement = { readonly kind: "allowed" } | Refusal | NotKnownYet;

/**
 * Nobody can say yet. A platform that takes 202 gets an operation that waits up to so long and then goes on; another one gets 503, and so
 * does who asks again for an instance that has failed.
 */
export interface NotKnownYet {
  /** Tells it from the other judgements. */
  readonly kind: "not known yet";
  /** A sentence for whoever asked. */
  readonly why: string;
  /** So long the operation waits at most. */
  readonly waitMs: number;
  /** What a platform that gets 503 is told of when to come again. */
  readonly retryAfterSeconds: number;
}

/** It cannot be had. */
export interface Refusal {
  /** Tells it from the other judgements. */
  readonly kind: "refused";
  /** The row in the table of errors. */
  readonly code: BrokerErrorCode;
  /** For the user who asks. */
  readonly why: string;
}

/** It is not known here, and somebody else has to be asked. */
export interface AskFirst {
  /** Tells it from a judgement. */
  readonly kind: "ask first";
  /** Within seconds; it does not reject. */
  readonly ask: () => Promise<Judgement>;
}

/** Routes that a source adds to the admin API. Who asks has been found out when they are asked. */
export interface AdminRoutes {
  /** Whether a path below `/admin/v1/` is one of these. Those of the broker itself come first. */
  owns(path: string): boolean;
  /** Throws a BrokerError where there is no such route. */
  match(method: string, path: string): AdminRoute;
}

/** A route that a request takes. */
export interface AdminRoute {
  /** For those who watch requests. */
  readonly name: string;
  /** The JSON of the answer; throws a BrokerError that says no. */
  respond(asked: AdminRouteRequest): Promise<object>;
}

/** What such a route is asked with. */
export interface AdminRouteRequest {
  /** Behind the path. */
  readonly query: URLSearchParams;
  /**
   * Of a request that changes something: its body, who asks and why. Throws a BrokerError if it has no reason, or more bytes than wanted
   * (65,536, unless the route says otherwise).
   */
  action(mostBytes?: number): Promise<{ readonly body: JsonObject; readonly by: Attribution; readonly reason: string }>;
}

/** What a source is given by its broker. */
export interface ServiceSourcePorts {
  /** The broker's own, open. Keys of instances have a slash; those of a source must not. */
  readonly journal: Journal;
  /** Throws a CatalogError if these services could not be offered. What was looked at once is not looked at again when it is offered. */
  readonly check: (services: readonly Service[]) => void;
  /**
   * Makes what a catalog shows of services that were checked before, some of thousands at a time, so that offering them all takes no long turn. Says
   * nothing of what is wrong with them: that is told when they are offered.
   */
  readonly prepare: (services: readonly Service[]) => void;
  /** To be called when `services` has changed. */
  readonly changed: () => void;
}

export function isServiceSource(services: readonly Service[] | ServiceSource): services is ServiceSource {
  return !Array.isArray(services);
}
