import type { Journal } from "@osbert/journal";
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
  /**
   * A service as it was at a revision that is not the one offered now: instances that were made of it go on with it, also after a restart.
   * `undefined`: no revisions are kept, and they go on with what is offered now. Rejects where it cannot tell; then it is asked again.
   */
  resolve(serviceId: string, revision: string): Promise<Service | undefined>;
  /** The broker stops. */
  close(): void;
}

/** What a source is given by its broker. */
export interface ServiceSourcePorts {
  /** The broker's own, open. Keys of instances have a slash; those of a source must not. */
  readonly journal: Journal;
  /** Throws a CatalogError if these services could not be offered. */
  readonly check: (services: readonly Service[]) => void;
  /** To be called when `services` has changed. */
  readonly changed: () => void;
}

export function isServiceSource(services: readonly Service[] | ServiceSource): services is ServiceSource {
  return !Array.isArray(services);
}
