import { type Authenticate, authentication, type Credential } from "@osbert/broker/http";
import type { Fault, Secret } from "@osbert/server/yaml";
import type { Logger } from "pino";
import type { Loaded } from "../settings/load.js";
import type { LoadedSettings } from "../settings/read-settings-file.js";
import { SettingsError } from "../settings/settings-error.js";
import type { Settings } from "../settings/table.js";

/** Who may ask, as the settings say. Throws a SettingsError with the place of every credential that is none. */
export function credentialsOf({ settings, places }: Loaded): readonly Credential[] {
  const { credentials = [] } = settings;
  return checked([...basicOf("credentials", credentials), ...tokensOf(settings), ...certificatesOf(settings)], places);
}

/** Who may operate the broker, and who may read its figures alone. */
export function operatorCredentialsOf({ settings: { admin, metrics }, places }: Loaded): {
  readonly admin: readonly Credential[];
  readonly metrics: readonly Credential[];
} {
  return {
    admin: checked(basicOf("admin.credentials", admin.credentials ?? []), places),
    metrics: watchersOf({ settings: { metrics }, places }),
  };
}

/** Who may read the figures of any server, and nothing else. */
export function watchersOf({
  settings: { metrics },
  places,
}: Pick<LoadedSettings<Pick<Settings, "metrics">>, "settings" | "places">): readonly Credential[] {
  return checked(basicOf("metrics.credentials", metrics.credentials ?? []), places);
}

function checked(found: readonly Found[], places: Loaded["places"]): readonly Credential[] {
  const faults = found.flatMap(({ key, credential }): Fault[] => {
    try {
      authentication([credential]);
      return [];
    } catch (error) {
      // The form of a hash or of a certificate's subject: what tells it never quotes a secret.
      const message = error instanceof Error ? error.message : String(error);
      return [{ place: places.get(key) ?? { kind: "default" }, key, message }];
    }
  });
  if (faults.length > 0) throw new SettingsError(faults);
  return found.map(({ credential }) => credential);
}

/** Says who asks, by credentials that can be exchanged while it is in use. */
export interface ExchangeableAuthentication {
  readonly authenticate: Authenticate;
  readonly exchange: (credentials: readonly Credential[]) => void;
}

export function exchangeableAuthentication(first: readonly Credential[], log: Logger): ExchangeableAuthentication {
  let current = authenticateWith(first, log);
  const authenticate: Authenticate = Object.defineProperties(
    (request: Parameters<Authenticate>[0]) => current(request),
    { challenge: { get: () => current.challenge }, knows: { get: () => current.knows } },
  );
  return {
    authenticate,
    exchange(credentials) {
      current = authenticateWith(credentials, log);
    },
  };
}

function authenticateWith(credentials: readonly Credential[], log: Logger): Authenticate {
  return authentication(credentials, {
    observe(event) {
      if (event.kind === "keys unavailable") {
        const error = event.error instanceof Error ? event.error.message : String(event.error);
        log.warn({ issuer: event.issuer, error }, "the keys of an issuer of tokens cannot be had");
      }
    },
  });
}

interface Found {
  /** Of the setting. */
  readonly key: string;
  readonly credential: Credential;
}

interface Basic {
  readonly username: string;
  readonly password?: Secret | undefined;
  readonly passwordHash?: Secret | undefined;
  readonly platform?: string | undefined;
}

function basicOf(setting: string, credentials: readonly Basic[]): readonly Found[] {
  return credentials.map(({ username, password, passwordHash, platform }, index) => ({
    key: `${setting}[${index}]`,
    credential: {
      username,
      ...(passwordHash === undefined
        ? { password: password?.reveal() ?? "" }
        : { passwordHash: passwordHash.reveal() }),
      ...forPlatform(platform),
    },
  }));
}

function tokensOf({ tokens = [] }: Settings): readonly Found[] {
  return tokens.map(({ issuer, audience, jwks, nameClaim, scopes, platform }, index) => ({
    key: `tokens[${index}]`,
    credential: {
      bearer: { issuer, audience, keys: jwks, nameClaim, ...(scopes !== undefined && { scopes }) },
      ...forPlatform(platform),
    },
  }));
}

function certificatesOf({ tls: { clients = [] } }: Settings): readonly Found[] {
  return clients.map(({ subject, alternativeName, name, platform }, index) => ({
    key: `tls.clients[${index}]`,
    credential: {
      certificate: alternativeName === undefined ? { subject: subject ?? "" } : { alternativeName },
      ...(name !== undefined && { name }),
      ...forPlatform(platform),
    },
  }));
}

function forPlatform(platform: string | undefined): { readonly platform?: string } {
  return platform === undefined ? {} : { platform };
}
