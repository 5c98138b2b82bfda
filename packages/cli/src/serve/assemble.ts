import {
  type Broker,
  type BrokerOptions,
  buildCatalog,
  CatalogError,
  type Cleanup,
  type CleanupRule,
  createBroker,
  PlansInUseError,
  type Service,
} from "@osbert/broker";
import type { Served, ServeOptions } from "@osbert/broker/http";
import { logTo, metrics } from "@osbert/broker/observe";
import { bundleMetrics, logBundles } from "@osbert/bundles/watch";
import type { Store } from "@osbert/journal";
import type { Fault } from "@osbert/server/yaml";
import type { Logger } from "pino";
import type { Loaded } from "../settings/load.js";
import { SettingsError } from "../settings/settings-error.js";
import type { Settings } from "../settings/table.js";
import { UserError } from "../user-error.js";
import { auditFile } from "./audit-file.js";
import { credentialsOf, exchangeableAuthentication, operatorCredentialsOf } from "./authentication.js";
import { catalogFaults } from "./catalog-faults.js";
import { type GeneratedCredential, generatedCredential } from "./generated-credential.js";
import { listenOptions } from "./listen-options.js";
import type { Exported } from "./load-module.js";
import { type OpenedBundles, openBundles } from "./open-bundles.js";
import type { OpenedEvents } from "./open-events.js";
import { overlay } from "./overlay.js";
import { checkTls, secureContextOf } from "./tls.js";

export interface Assembled {
  readonly broker: Broker;
  readonly serveOptions: ServeOptions;
  /** Made because the settings name none. */
  readonly made: GeneratedCredential | null;
  /** After the broker has stopped: closes what it used. */
  readonly release: () => Promise<void>;
  /** Applies what can be changed while it runs. Throws, and has changed nothing, if it is refused. */
  readonly apply: (loaded: Loaded, served: Served) => Promise<void>;
}

export interface Parts {
  /** As the module defines them. */
  readonly services: readonly Exported[];
  readonly store: Store;
  readonly log: Logger;
}

/**
 * The one place where settings become a broker: every setting but those of the store, the log and reloading is used here. What a
 * reload can change is in `apply`, and marked with `reloads` in the table.
 */
export async function assemble(loaded: Loaded, { services, store, log }: Parts): Promise<Assembled> {
  const { settings } = loaded;
  checkTls(loaded);
  const credentials = credentialsOf(loaded);
  const operators = operatorCredentialsOf(loaded);
  const figures = settings.metrics.enabled ? metrics() : undefined;
  const { endpoint } = settings.tracing;
  // Loaded only where it is needed: it takes a fifth of a second of a start.
  const sent = endpoint === undefined ? undefined : (await import("./tracing.js")).sendTraces(endpoint, log);
  const seeing = {
    observe: [logTo(log), ...(figures === undefined ? [] : [figures.observe])],
    ...(sent !== undefined && { tracing: sent.tracing }),
  };
  const audit = settings.audit.file === undefined ? {} : { audit: await auditFile(settings.audit.file) };
  let bundles: OpenedBundles | undefined;
  let events: OpenedEvents | undefined;
  const broker: Broker = await offering(loaded, services, async (offered) => {
    const figuresOfBundles = figures === undefined ? [] : [bundleMetrics(figures.registry)];
    bundles = await openBundles(loaded, offered, { log, observe: [logBundles(log), ...figuresOfBundles] });
    // Bundles are offered as they come; what is wrong with the rest is told now.
    if (bundles !== undefined) buildCatalog(offered, { schemaDraft: settings.catalog.schemaDraft });
    // Loaded only where it is needed, too.
    const { openEvents } = settings.events.enabled ? await import("./open-events.js") : {};
    events = await openEvents?.(settings, { log, registry: figures?.registry, broker: () => broker });
    return createBroker({
      ...brokerOptions(settings),
      ...seeing,
      ...audit,
      services: events?.services ?? bundles?.services ?? offered,
      store,
    });
  });
  const isOpen = settings.authentication === "none";
  const made = isOpen || credentials.length > 0 ? null : await generatedCredential(settings.data);
  const who = exchangeableAuthentication(made === null ? credentials : [made.credential], log);
  return {
    broker,
    made,
    serveOptions: {
      ...serveOptions(settings),
      credentials: isOpen ? "none" : who.authenticate,
      ...(operators.admin.length > 0 && { admin: { credentials: operators.admin } }),
      ...(figures !== undefined && { metrics: figures }),
      watchers: [...operators.metrics, ...operators.admin],
    },
    async release() {
      events?.close();
      await sent?.end();
    },
    async apply(next, served) {
      // All that can be refused comes first, the catalog last of it; what follows cannot fail.
      checkTls(next);
      const others = credentialsOf(next);
      if (!isOpen && made === null && others.length === 0) {
        throw new UserError("nobody could ask any more: no credentials are left; only a restart makes one");
      }
      const secure = secureContextOf(next.settings, { server: served.app.server, url: served.url });
      // Services of bundles come from their sources, those of events from the cluster; beside them the catalog stays until the next start.
      if (bundles !== undefined) await bundles.configure(next);
      else if (events === undefined)
        await offering(next, services, (offered) =>
          broker.offer(offered, {
            retirePlansInUse: next.settings.catalog.retirePlansInUse,
            schemaDraft: next.settings.catalog.schemaDraft,
          }),
        );
      secure();
      who.exchange(others.length === 0 && made !== null ? [made.credential] : others);
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
  catalog,
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
    schemaDraft: catalog.schemaDraft,
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

function serveOptions(settings: Settings): ServeOptions {
  return { ...listenOptions(settings), ...(settings.platforms !== undefined && { platforms: settings.platforms }) };
}

/** Offers the module's services as the settings say; faults of the catalog are told with their place in the file. */
async function offering<T>(
  loaded: Loaded,
  services: readonly Exported[],
  offer: (services: readonly Service[]) => T | Promise<T>,
): Promise<T> {
  const { settings, places } = loaded;
  const overlaid = overlay(services, settings.catalog, places);
  if (overlaid.faults.length > 0) throw new SettingsError(catalogFaultsOf(loaded, services));
  try {
    return await offer(overlaid.services);
  } catch (error) {
    if (error instanceof CatalogError) {
      throw new SettingsError(catalogFaults(error, overlaid.services, places, settings.module));
    }
    if (error instanceof PlansInUseError) {
      throw new UserError(`${error.message}\nWith catalog.retirePlansInUse: true they are taken out nonetheless`);
    }
    throw error;
  }
}

/**
 * What is wrong with the catalog that the module and the settings make together. Nothing is opened. Of a service that is not whole, what may
 * be wrong for that reason alone is left out.
 */
export function catalogFaultsOf({ settings, places }: Loaded, services: readonly Exported[]): readonly Fault[] {
  const overlaid = overlay(services, settings.catalog, places);
  try {
    buildCatalog(overlaid.services, { schemaDraft: settings.catalog.schemaDraft });
    return overlaid.faults;
  } catch (error) {
    if (!(error instanceof CatalogError)) throw error;
    const follows = (key: string) => overlaid.faults.some((fault) => `${fault.key}.`.startsWith(`${key}.`));
    const broken = catalogFaults(error, overlaid.services, places, settings.module);
    return [...overlaid.faults, ...broken.filter(({ key }) => !follows(key))];
  }
}
