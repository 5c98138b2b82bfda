import { isIP } from "node:net";
import { parseKeyRing } from "@osbert/journal/encryption";
import type { Fault, Place, Secret } from "@osbert/server/yaml";

interface Passworded {
  readonly password?: Secret | undefined;
  readonly passwordHash?: Secret | undefined;
}

/** What the settings of every server have in common. */
export interface CheckedServer {
  readonly authentication: "required" | "none";
  readonly credentials?: readonly Passworded[] | undefined;
  readonly tokens?: readonly unknown[] | undefined;
  readonly metrics: { readonly credentials?: readonly Passworded[] | undefined };
  readonly keys?: Secret | undefined;
  readonly listen: { readonly trustedProxies?: readonly string[] | undefined };
  readonly tls: {
    readonly certificate?: unknown;
    readonly key?: unknown;
    readonly clientAuthority?: unknown;
    readonly clients?:
      | readonly { readonly subject?: string | undefined; readonly alternativeName?: string | undefined }[]
      | undefined;
  };
}

/** Rules between settings that hold for every server. */
export function checkServer(settings: CheckedServer, places: ReadonlyMap<string, Place>): readonly Fault[] {
  const faults: Fault[] = [];
  const fault = (key: string, message: string) =>
    faults.push({ place: places.get(key) ?? { kind: "default" }, key, message });
  const { tls } = settings;
  faults.push(...checkPasswords("credentials", settings.credentials, places));
  faults.push(...checkPasswords("metrics.credentials", settings.metrics.credentials, places));
  tls.clients?.forEach(({ subject, alternativeName }, index) => {
    if ((subject === undefined) === (alternativeName === undefined))
      fault(
        `tls.clients[${index}]`,
        "must have either subject or alternativeName; write e.g. subject: CN=platform,O=Example",
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
  return faults;
}

/** Each has a password or its hash. */
export function checkPasswords(
  key: string,
  credentials: readonly Passworded[] | undefined,
  places: ReadonlyMap<string, Place>,
): readonly Fault[] {
  return (credentials ?? []).flatMap(({ password, passwordHash }, index): readonly Fault[] => {
    if ((password === undefined) !== (passwordHash === undefined)) return [];
    const at = `${key}[${index}]`;
    const message = "must have either password or passwordHash; write e.g. password: { env: NAME }";
    return [{ place: places.get(at) ?? { kind: "default" }, key: at, message }];
  });
}

function isNetwork(text: string): boolean {
  const [address = "", bits] = text.split("/");
  const version = isIP(address);
  return version !== 0 && (bits === undefined || (Number(bits) > 0 && Number(bits) <= (version === 4 ? 32 : 128)));
}
