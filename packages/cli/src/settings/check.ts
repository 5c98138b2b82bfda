import { isIP } from "node:net";
import { cleanupRule } from "@osbert/broker";
import { parseKeyRing } from "@osbert/journal/encryption";
import type { Fault } from "./fault.js";
import type { Secret } from "./secret.js";
import { didYouMean } from "./suggest.js";
import type { Settings } from "./table.js";
import type { Place } from "./value-node.js";

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

  const checkPlatform = (key: string, platform: string | undefined) => {
    if (platform === undefined || platforms.includes(platform)) return;
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

  const checkPasswords = (key: string, credentials: readonly Passworded[] | undefined) => {
    credentials?.forEach(({ password, passwordHash }, index) => {
      if ((password === undefined) === (passwordHash === undefined))
        fault(`${key}[${index}]`, "must have either password or passwordHash; write e.g. password: { env: NAME }");
    });
  };
  checkPasswords("credentials", settings.credentials);
  checkPasswords("admin.credentials", settings.admin.credentials);
  checkPasswords("metrics.credentials", settings.metrics.credentials);
  tls.clients?.forEach(({ subject, alternativeName }, index) => {
    if ((subject === undefined) === (alternativeName === undefined))
      fault(
        `tls.clients[${index}]`,
        "must have either subject or alternativeName; write e.g. subject: CN=platform,O=Example",
      );
  });

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
  if (settings.keys !== undefined) {
    try {
      parseKeyRing(settings.keys.reveal());
    } catch (error) {
      // It says the number of a line, and nothing of a key.
      fault("keys", `${error instanceof Error ? error.message : error}; \`osbert keys new\` makes one`);
    }
  }
  const known = [settings.credentials, settings.tokens, tls.clients].some((list) => (list?.length ?? 0) > 0);
  if (settings.authentication === "none" && known) {
    fault("authentication", "is none, although it is said who may ask; leave it out, or leave those out");
  }
  if (settings.credentials?.length === 0) fault("credentials", "is empty; leave it out, and one is made at start");
  if (tls.certificate !== undefined && tls.key === undefined) {
    fault("tls.certificate", "needs its key; write tls.key: { file: path }");
  }
  if (tls.certificate === undefined && tls.key !== undefined) {
    fault("tls.key", "needs its certificate; write tls.certificate: path");
  }
  if (tls.certificate === undefined && tls.clientAuthority !== undefined) {
    fault("tls.clientAuthority", "needs tls.certificate and tls.key: clients show theirs over TLS alone");
  }
  if (tls.clients !== undefined && tls.clientAuthority === undefined) {
    fault("tls.clients", "needs tls.clientAuthority: someone must vouch for their certificates");
  }
  settings.listen.trustedProxies?.forEach((network, index) => {
    if (!isNetwork(network)) {
      fault(`listen.trustedProxies[${index}]`, "is not an address or network; write e.g. 10.0.0.0/8");
    }
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
  return faults;
}

function isNetwork(text: string): boolean {
  const [address = "", bits] = text.split("/");
  const version = isIP(address);
  return version !== 0 && (bits === undefined || (Number(bits) > 0 && Number(bits) <= (version === 4 ? 32 : 128)));
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
