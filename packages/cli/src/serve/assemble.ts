import {
  type Broker,
  type BrokerOptions,
  CatalogError,
  type Cleanup,
  type CleanupRule,
  createBroker,
  PlansInUseError,
  type Service,
} from "@osbert/broker";
import type { ServeOptions } from "@osbert/broker/http";
import type { Store } from "@osbert/journal";
import type { Logger } from "pino";
import { SettingsError } from "../settings/fault.js";
import type { Loaded } from "../settings/load.js";
import type { Settings } from "../settings/table.js";
import { Told } from "../told.js";
import { catalogFaults } from "./catalog-faults.js";
import { overlay } from "./overlay.js";

export interface Assembled {
  readonly broker: Broker;
  readonly serveOptions: ServeOptions;
  /** Applies what can be changed while it runs. Throws, and has changed nothing, if what is offered cannot be. */
  readonly apply: (loaded: Loaded) => Promise<void>;
}

export interface Parts {
  /** As the module defines them. */
  readonly services: readonly Service[];
  readonly store: Store;
  readonly log: Logger;
}

/**
 * The one place where settings become a broker: every setting but those of the store, the log and reloading is used here. What a
 * reload can change is in `apply`, and marked with `reloads` in the table.
 */
export async function assemble(loaded: Loaded, { services, store, log }: Parts): Promise<Assembled> {
  const broker = await offering(loaded, services, (offered) =>
    createBroker({ ...brokerOptions(loaded.settings), services: offered, store }),
  );
  return {
    broker,
    serveOptions: { ...serveOptions(loaded.settings), ...reporting(log) },
    async apply(next) {
      // The catalog first: it alone can be refused, and then nothing has happened.
      await offering(next, services, (offered) =>
        broker.offer(offered, { retirePlansInUse: next.settings.catalog.retirePlansInUse }),
      );
      log.level = next.settings.log.level;
    },
  };
}

function brokerOptions({
  api,
  async,
  limits,
  retention,
  cleanup,
}: Settings): Omit<BrokerOptions, "services" | "store"> {
  const rule = (mode: typeof async.provision) => ({ mode, answerWithinMs: async.answerWithin });
  return {
    async: {
      provision: rule(async.provision),
      update: rule(async.update),
      deprovision: rule(async.deprovision),
      bind: rule(async.bind),
      unbind: rule(async.unbind),
    },
    minimumApiVersion: api.minimumVersion,
    syncTimeoutMs: api.syncTimeout,
    cascade: api.cascade,
    forceDeleteUnknown: api.forceDeleteUnknown,
    ...(api.retryAfter !== undefined && { retryAfterSeconds: api.retryAfter }),
    cleanup: cleanupOf(cleanup),
    journal: {
      concurrency: limits.concurrency,
      ...(limits.perService !== undefined && { laneConcurrency: limits.perService }),
      maxOpen: limits.openPerInstance,
      timeoutMs: limits.storeTimeout,
      graceMs: limits.grace,
      retention: {
        succeededMs: retention.succeeded,
        failedMs: retention.failed,
        cancelledMs: retention.cancelled,
        notesMs: retention.notes,
        goneMs: retention.deleted,
      },
    },
  };
}

/** A rule without any schedule would keep everything for ever: it is left out, and the ages of `retention` count. */
function cleanupOf({ instances, bindings, timezone }: Settings["cleanup"]): Cleanup {
  const rule = ({ all, succeeded, failed, age }: typeof instances): CleanupRule | undefined => {
    const schedules = Object.entries({ all, succeeded, failed }).filter(([, schedule]) => schedule !== undefined);
    return schedules.length === 0 ? undefined : { ...Object.fromEntries(schedules), olderThanMs: age };
  };
  const [ofInstances, ofBindings] = [rule(instances), rule(bindings)];
  return { timezone, ...(ofInstances && { instances: ofInstances }), ...(ofBindings && { bindings: ofBindings }) };
}

function serveOptions({ listen, authentication, credentials, platforms }: Settings): ServeOptions {
  const basic = credentials?.flatMap(({ username, password, platform }) =>
    password === undefined
      ? []
      : [{ username, password: password.reveal(), ...(platform !== undefined && { platform }) }],
  );
  return {
    host: listen.host,
    port: listen.port,
    ...(authentication === "none" ? { credentials: "none" as const } : basic && { credentials: basic }),
    ...(platforms !== undefined && { platforms }),
  };
}

function reporting(log: Logger): Pick<ServeOptions, "onError"> {
  return {
    // The message alone: the rest of an error may hold what the request held.
    onError: (error, { method, path, requestId }) =>
      log.error(
        { method, path, requestId, error: error instanceof Error ? error.message : String(error) },
        "request failed",
      ),
  };
}

/** Offers the module's services as the settings say; faults of the catalog are told with their place in the file. */
async function offering<T>(
  { settings, places }: Loaded,
  services: readonly Service[],
  offer: (services: readonly Service[]) => T | Promise<T>,
): Promise<T> {
  const overlaid = overlay(services, settings.catalog, places);
  if (overlaid.faults.length > 0) throw new SettingsError(overlaid.faults);
  try {
    return await offer(overlaid.services);
  } catch (error) {
    if (error instanceof CatalogError) {
      throw new SettingsError(catalogFaults(error, overlaid.services, places, settings.module));
    }
    if (error instanceof PlansInUseError) {
      throw new Told(`${error.message}\nWith catalog.retirePlansInUse: true they are taken out nonetheless`);
    }
    throw scheduleFault(error, places) ?? error;
  }
}

/** Whether a schedule is one, only the broker can tell. Its message begins with the key. */
function scheduleFault(error: unknown, places: Loaded["places"]): SettingsError | undefined {
  const match = error instanceof Error ? /^(cleanup\.\w+\.\w+) (.*)$/s.exec(error.message) : null;
  const [, key = "", message = ""] = match ?? [];
  const place = places.get(key);
  return place === undefined ? undefined : new SettingsError([{ place, key, message }]);
}
