import type { AdminRoutes, InstanceAddress, PlanDefinition, Service } from "@osbert/broker";
import type { Journal, OperationKinds } from "@osbert/journal";
import type { InstanceMetadata } from "@osbert/protocol";
import type { Cluster } from "../cluster/cluster.js";
import type { Application, ApplicationService } from "./application.js";
import type { Applications } from "./applications.js";

/** What makes instances of what applications offer: the part of event services that writes to the cluster. */
export interface Wiring {
  /** Operations of its own, which the broker's journal runs. */
  readonly kinds: OperationKinds;
  /** Begins, after what is known of applications was read, and before the first operation runs. */
  open(ports: WiringPorts): Promise<void>;
  /** The broker stops. */
  close(): void;
  /** What an instance of it is made, changed and removed by. Asked for anew with every operation. */
  functions(found: FoundService): WiringFunctions;
  /** What is told of an instance that a platform fetches. */
  instanceMetadata?(address: InstanceAddress, serviceId: string): Promise<InstanceMetadata | undefined>;
  /** `update` may change an instance from one plan of a service to another. Default false. */
  readonly changesPlans?: boolean;
  /** Said of every service. Its instances keep what `provision` returns as state; without a schema, any JSON object. */
  readonly service?: Pick<Service, "async" | "deadlineMs" | "hooks" | "state" | "prepare" | "prepareUpdate">;
  /** Said of every plan, by what it gives. A schema of parameters that the application itself has comes first. */
  plan?(gives: FoundService["plan"]): Pick<PlanDefinition, "async" | "maximumPollingDuration" | "provision" | "update">;
  /** Routes below `/admin/v1/events/`, beside those of applications. */
  readonly admin?: AdminRoutes;
}

export interface WiringPorts {
  readonly journal: Journal;
  readonly cluster: Cluster;
  readonly applications: Applications;
}

export type WiringFunctions = Pick<Service, "provision" | "update" | "deprovision">;

/** What an instance is of. */
export interface FoundService {
  /** As it is now; of one that is gone, as it was. */
  readonly application: Application;
  readonly service: ApplicationService;
  /** Which part of it the instance's plan gives. */
  readonly plan: { readonly events: boolean; readonly apis: boolean };
  /** The application is there and offers it. */
  readonly isOffered: boolean;
}
