import type { Broker } from "@osbert/broker";
import { serve } from "@osbert/broker/http";
import { placeName } from "@osbert/server/yaml";
import { bundleSources } from "../settings/bundle-sources.js";
import { changesBetween } from "../settings/changes.js";
import { variableOf } from "../settings/environment.js";
import { type Loaded, loadSettings } from "../settings/load.js";
import { realSystem, type System } from "../settings/system.js";
import type { Settings } from "../settings/table.js";
import { assemble, type Parts } from "./assemble.js";
import { type Exported, loadModule } from "./load-module.js";
import { runServer, type ServerProgram } from "./run-server.js";

/** `osbert serve`: runs a broker until it is told to stop. */
export function run(file: string | undefined): Promise<void> {
  return runServer(brokerProgram, file);
}

/** `osbert events serve`: the same with `events.enabled`, whatever the file says of it. */
export function runEvents(file: string | undefined): Promise<void> {
  return runServer({ ...brokerProgram, load: loadEventSettings }, file);
}

/** Settings with `events.enabled`: as if the environment said so, which counts more than the file. */
export function loadEventSettings(file: string | undefined, system: System = realSystem()): Loaded {
  const environment = { ...system.environment, [variableOf("events.enabled")]: "true" };
  return loadSettings(file, { ...system, environment });
}

const brokerProgram: ServerProgram<Settings, readonly Exported[]> = {
  migrateCommand: "osbert migrate",
  load: loadSettings,
  changes: changesBetween,
  prepare: async ({ settings: { module, data } }) => (module === undefined ? [] : loadModule(module, { data })),
  async start(started, { prepared: services, store, log }) {
    const { settings, places } = started;
    const { broker, served, made, apply, release } = await startBroker(started, { services, store, log });
    if (settings.authentication === "none") log.warn("authentication is none: anyone who reaches this broker may ask");
    for (const key of ["credentials", "admin.credentials"]) {
      // The client commands may take theirs from the same variable; who has it set may not mean this broker.
      const place = places.get(key);
      if (place !== undefined && place.kind !== "file" && place.kind !== "default")
        log.info(`${key} are those of ${placeName(place)}`);
    }
    return {
      answers: `osbert answers at ${served.url} with ${whatIsOffered(broker, started)}`,
      made,
      apply: (next) => apply(next, served),
      async close() {
        await served.close({ drainMs: settings.limits.drain });
        await release();
      },
    };
  },
};

async function startBroker(started: Loaded, parts: Parts) {
  const { serveOptions, ...assembled } = await assemble(started, parts);
  const served = await serve(assembled.broker, serveOptions);
  try {
    await assembled.made?.keep();
  } catch (error) {
    await served.close({ drainMs: 0 });
    throw error;
  }
  return { ...assembled, served };
}

/** What bundles and applications come to may not be known yet, and changes. */
function whatIsOffered(broker: Broker, { settings, places }: Loaded): string {
  const some = (count: number, what: string) => `${count} ${what}${count === 1 ? "" : "s"}`;
  if (settings.events.enabled) return "what the applications of a cluster offer";
  const { sources } = bundleSources(settings, places);
  if (sources === undefined) return some(broker.catalog.services.size, "service");
  return `the bundles of ${some(sources.length, "source")}`;
}
