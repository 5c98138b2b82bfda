import { cleanupRule } from "@osbert/broker";
import type { Secret } from "@osbert/server/yaml";
import { didYouMean, type Fault, type Place } from "@osbert/server/yaml";
import { checkPasswords, checkServer } from "./check-server.js";
import { namespacePattern } from "./events-table.js";
import type { Settings } from "./table.js";

interface Passworded {
  readonly password?: Secret | undefined;
  readonly passwordHash?: Secret | undefined;
}

/** Rules between settings, which no single one of them can tell. */
export function checkTogether(settings: Settings, places: ReadonlyMap<string, Place>): readonly Fault[] {
  const faults: Fault[] = [];
  const fault = (key: string, message: string) =>
    faults.push({ place: places.get(key) ?? { kind: "default" }, key, message });
  const { platforms = [], tls, limits } = settings;

  const hasEvents = settings.events.enabled;
  // Also of sources with a fault it is known that there are some.
  const ofBundles = ["sources", "registry"].map((name) => `bundles.${name}`).filter((key) => places.has(key));
  if (settings.module === undefined && ofBundles.length === 0 && !hasEvents)
    fault("module", "is missing; write e.g. module: services.ts, or name sources under bundles");
  if (hasEvents) {
    for (const key of [...(settings.module === undefined ? [] : ["module"]), ...ofBundles])
      fault(key, "cannot stand beside events: a broker for events offers what applications offer, and nothing else");
    if (settings.platforms !== undefined)
      fault("platforms", "cannot stand beside events: its platforms are the namespaces that were granted something");
  }

  const checkPlatform = (key: string, platform: string | undefined) => {
    if (platform === undefined) return;
    if (hasEvents) {
      if (!new RegExp(namespacePattern).test(platform)) fault(`${key}.platform`, "is not the name of a namespace");
      return;
    }
    if (platforms.includes(platform)) return;
    fault(`${key}.platform`, `is none of platforms${didYouMean(platform, platforms) || "; add it there"}`);
  };
  settings.credentials?.forEach(({ platform }, index) => checkPlatform(`credentials[${index}]`, platform));
  settings.tokens?.forEach(({ platform }, index) => checkPlatform(`tokens[${index}]`, platform));
  tls.clients?.forEach(({ platform }, index) => checkPlatform(`tls.clients[${index}]`, platform));

  const checkUnique = (key: string, names: readonly string[], field: string) => {
    names.forEach((name, index) => {
      if (names.indexOf(name) < index) fault(`${key}[${index}]${field}`, "is there twice; leave one of them out");
    });
  };
  checkUnique("platforms", platforms, "");

  faults.push(...checkPasswords("admin.credentials", settings.admin.credentials, places));

  settings.admin.credentials?.forEach((own, index) => {
    const isTheirs = (other: Passworded & { readonly username: string }) =>
      other.username === own.username &&
      own.password !== undefined &&
      other.password?.reveal() === own.password.reveal();
    if (settings.credentials?.some(isTheirs))
      fault(
        `admin.credentials[${index}]`,
        "is a platform's credential, too; whoever has that could operate the broker",
      );
  });
  if (!isTimezone(settings.cleanup.timezone)) {
    fault("cleanup.timezone", "is not a time zone; write e.g. timezone: Europe/Berlin");
  }
  for (const of of ["instances", "bindings"] as const) {
    for (const which of ["all", "succeeded", "failed"] as const) {
      const schedule = settings.cleanup[of][which];
      const why = schedule === undefined ? undefined : whyNoSchedule(schedule);
      if (why !== undefined) fault(`cleanup.${of}.${which}`, why);
    }
  }
  if (limits.perService !== undefined && limits.perService > limits.concurrency) {
    fault("limits.perService", `must not be more than limits.concurrency, which is ${limits.concurrency}`);
  }
  return [...faults, ...checkServer(settings, places)];
}

/** Only the broker can tell. Its message begins with the key. */
function whyNoSchedule(all: string): string | undefined {
  try {
    cleanupRule({ instances: { all } });
    return undefined;
  } catch (error) {
    return (error instanceof Error ? error.message : String(error)).replace(/^cleanup\.\w+\.\w+ /, "");
  }
}

function isTimezone(name: string): boolean {
  try {
    return new Intl.DateTimeFormat("en", { timeZone: name }).resolvedOptions().timeZone !== "";
  } catch {
    return false;
  }
}
