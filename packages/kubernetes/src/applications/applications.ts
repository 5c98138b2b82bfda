import type { WatchState } from "../cluster/cluster.js";
import type { Application, ApplicationService } from "./application.js";

/**
 * What is known of applications and of who may have what of them: as it was committed to the journal, the same in all processes, and known after a
 * restart. What a server has lost all at once is held there until a person says so, and is still here.
 */
export interface Applications {
  /** Of all that is watched for it, the worst. Unless it is `current`, that something is missing is no evidence. */
  readonly state: WatchState;
  application(name: string): Application | undefined;
  /** The service with an id, wherever it is. Of two with one id, the one that was there first. */
  service(id: string): { readonly application: Application; readonly service: ApplicationService } | undefined;
  /** Whether a namespace may have it. */
  isGranted(namespace: string, application: string, serviceId: string): boolean;
  /** Told of an application that came, changed or went, and of a namespace whose grants did. */
  onChange(listener: (change: ApplicationsChange) => void): () => void;
  close(): void;
}

export type ApplicationsChange =
  | { readonly kind: "application"; readonly application: string }
  | { readonly kind: "grants"; readonly namespace: string; readonly application: string }
  | { readonly kind: "state" };
