import { openPlatform } from "@osbert/platform";
import {
  accessByGrants,
  type Callers,
  everyone,
  type Grant,
  type PlatformEvent,
  platformLog,
  platformMetrics,
  servePlatform,
} from "@osbert/platform/api";
import type { Credential } from "@osbert/server/authentication";
import { tellAll } from "@osbert/server/observe";
import { exchangeableAuthentication, watchersOf } from "../serve/authentication.js";
import { generatedCredential } from "../serve/generated-credential.js";
import { listenOptions } from "../serve/listen-options.js";
import { runServer, type ServerProgram } from "../serve/run-server.js";
import { checkTls, secureContextOf } from "../serve/tls.js";
import { changesIn } from "../settings/changes.js";
import { loadPlatformSettings } from "../settings/load-platform.js";
import { type PlatformSettings, platformTable } from "../settings/platform-table.js";
import { UserError } from "../user-error.js";
import { grantsOf } from "./grants-of.js";

/** `osbert platform serve`: runs a platform until it is told to stop. */
export function runPlatform(file: string | undefined): Promise<void> {
  return runServer(platformProgram, file);
}

const platformProgram: ServerProgram<PlatformSettings, null> = {
  migrateCommand: "osbert platform migrate",
  load: loadPlatformSettings,
  changes: (before, after) => changesIn(platformTable, before, after),
  prepare: async () => null,
  async start(started, { store, log }) {
    const { settings } = started;
    checkTls(started);
    const grants = grantsOf(started);
    const isOpen = settings.authentication === "none";
    const made = isOpen || grants.length > 0 ? null : await generatedCredential(settings.data);
    const own: readonly Grant[] = made === null ? [] : [{ credential: made.credential, access: { role: "operate" } }];
    let inForce = made === null ? grants : own;
    let accessOf = accessByGrants(inForce);
    const who = exchangeableAuthentication(credentialsIn(inForce), log);
    const callers: Callers = isOpen
      ? everyone
      : { authenticate: who.authenticate, accessOf: (name, authorization) => accessOf(name, authorization) };
    const logged = platformLog(log);
    const figures = settings.metrics.enabled ? platformMetrics() : undefined;
    const observe = figures === undefined ? [logged] : [logged, figures.observe];
    const platform = await openPlatform({
      store,
      concurrency: settings.limits.concurrency,
      timeoutMs: settings.limits.storeTimeout,
      overlapMs: settings.rotation.overlap,
      observe: tellAll<PlatformEvent>(observe),
    });
    const served = await servePlatform(platform, {
      ...listenOptions(settings),
      callers,
      observe,
      watchers: watchersOf(started),
      ...(figures !== undefined && { metrics: figures }),
    });
    try {
      await made?.keep();
    } catch (error) {
      await served.close();
      throw error;
    }
    if (isOpen) log.warn("authentication is none: anyone who reaches this platform may do anything");
    return {
      answers: `osbert platform answers at ${served.url}`,
      made,
      close: () => served.close(),
      async apply(next) {
        // All that can be refused comes first; what follows cannot fail.
        checkTls(next);
        const others = grantsOf(next);
        if (!isOpen && made === null && others.length === 0)
          throw new UserError("nobody could ask any more: no credentials are left; only a restart makes one");
        const secure = secureContextOf(next.settings, served);
        secure();
        inForce = others.length === 0 ? own : others;
        // Both at once: nobody is let in by one and judged by the other.
        accessOf = accessByGrants(inForce);
        who.exchange(credentialsIn(inForce));
        log.level = next.settings.log.level;
      },
    };
  },
};

function credentialsIn(grants: readonly Grant[]): readonly Credential[] {
  return grants.map(({ credential }) => credential);
}
