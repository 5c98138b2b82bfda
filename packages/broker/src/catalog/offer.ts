import type { Clock } from "@osbert/journal";
import type { Service } from "../service/service.js";
import type { BuildOptions } from "./built-service.js";
import { type BrokerCatalog, catalogWith, knownCatalog } from "./catalog.js";
import { buildCatalog } from "./catalog-builder.js";
import type { OfferedService } from "./offered-service.js";
import type { ServiceSource } from "./service-source.js";
import { withOneReplaced } from "./with-one-replaced.js";

/** Revisions that were resolved and are kept compiled. */
const mostRevisions = 256;
/** A source that has not answered by then is asked again by whoever asks next. */
const resolveWithinMs = 10_000;

/** What is offered now, and what was when instances were made that are still there. */
export class Offer {
  readonly #resolve: ServiceSource["resolve"] | undefined;
  readonly #clock: Clock;
  readonly #options: BuildOptions;
  readonly #revisions = new Map<string, Promise<OfferedService | undefined>>();
  #catalog: BrokerCatalog;

  /** `options`: how what is resolved is made. It was offered before, and is never new. */
  constructor(
    catalog: BrokerCatalog,
    resolve: ServiceSource["resolve"] | undefined,
    clock: Clock,
    options: Omit<BuildOptions, "areNew" | "isTrial"> = {},
  ) {
    this.#catalog = catalog;
    this.#clock = clock;
    this.#options = options;
    this.#resolve = resolve;
  }

  get catalog(): BrokerCatalog {
    return this.#catalog;
  }

  replace(catalog: BrokerCatalog): void {
    this.#catalog = catalog;
  }

  /** The service of an instance, at the instance's revision. Rejects where that cannot be told now. */
  serviceOf(
    serviceId: string,
    revision: string | null,
  ): Promise<OfferedService | undefined> | OfferedService | undefined {
    const offered = this.#catalog.services.get(serviceId);
    const present = offered ?? this.#catalog.retired.get(serviceId);
    if (revision === null || offered?.service.revision === revision || this.#resolve === undefined) return present;
    return this.#resolved(this.#resolve, serviceId, revision).then((resolved) => resolved ?? present);
  }

  /** The catalog in which the instance's service is as it was at the instance's revision: what is asked of it is held against that. */
  async catalogOf(serviceId: string, revision: string | null): Promise<BrokerCatalog> {
    const present = this.#catalog;
    const offered = await this.serviceOf(serviceId, revision);
    // One that was dropped as a whole can only be deleted, unless its source still knows it.
    if (offered === undefined || offered === present.retired.get(serviceId)) return knownCatalog(present);
    if (offered === present.services.get(serviceId)) return present;
    return catalogWith(present, { services: withOneReplaced(present.services, serviceId, offered) });
  }

  /** Asked once, however many want to know; what could not be told is asked again. */
  #resolved(
    resolve: ServiceSource["resolve"],
    serviceId: string,
    revision: string,
  ): Promise<OfferedService | undefined> {
    const key = JSON.stringify([serviceId, revision]);
    const known = this.#revisions.get(key);
    if (known !== undefined) return known;
    const resolved = this.#within((async () => resolve(serviceId, revision))()).then((service) =>
      compiled(service, serviceId, this.#options),
    );
    this.#revisions.set(key, resolved);
    const forget = () => {
      if (this.#revisions.get(key) === resolved) this.#revisions.delete(key);
    };
    resolved.then((found) => found === undefined && forget(), forget);
    const [oldest] = this.#revisions.keys();
    if (this.#revisions.size > mostRevisions && oldest !== undefined) this.#revisions.delete(oldest);
    return resolved;
  }

  async #within<T>(answer: Promise<T>): Promise<T> {
    let callOff: () => void = () => undefined;
    const late = new Promise<never>((_, reject) => {
      const error = new Error(`the source of services has not answered within ${resolveWithinMs / 1_000} seconds`);
      callOff = this.#clock.after(resolveWithinMs, () => reject(error));
    });
    try {
      return await Promise.race([answer, late]);
    } finally {
      callOff();
    }
  }
}

function compiled(service: Service | undefined, serviceId: string, options: BuildOptions): OfferedService | undefined {
  if (service === undefined) return undefined;
  const offered = buildCatalog([service], options).services.get(serviceId);
  if (offered === undefined) throw new Error(`a revision of service ${serviceId} must have its id, not ${service.id}`);
  return offered;
}
