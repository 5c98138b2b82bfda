import { type Access, callersOf, type Grant, type TokenAccess } from "@osbert/platform/api";
import type { Fault } from "@osbert/server/yaml";
import type { LoadedPlatform } from "../settings/load-platform.js";
import { SettingsError } from "../settings/settings-error.js";

interface Said {
  readonly role: "see" | "change" | "operate";
  readonly spaces?: readonly string[] | undefined;
}

/** Who may ask, and what they may do, as the settings say. Throws a SettingsError with the place of every credential that is none. */
export function grantsOf({ settings, places }: LoadedPlatform): readonly Grant[] {
  const { credentials = [], tokens = [], tls } = settings;
  const found: readonly { readonly key: string; readonly grant: Grant }[] = [
    ...credentials.map(({ username, password, passwordHash, ...said }, index) => ({
      key: `credentials[${index}]`,
      grant: {
        credential:
          passwordHash === undefined
            ? { username, password: password?.reveal() ?? "" }
            : { username, passwordHash: passwordHash.reveal() },
        access: accessOf(said),
      },
    })),
    ...tokens.map(({ issuer, audience, jwks, nameClaim, scopes, ...said }, index) => ({
      key: `tokens[${index}]`,
      grant: {
        credential: { bearer: { issuer, audience, keys: jwks, nameClaim, ...(scopes !== undefined && { scopes }) } },
        access: tokenAccessOf(said),
      },
    })),
    ...(tls.clients ?? []).map(({ subject, alternativeName, name, ...said }, index) => ({
      key: `tls.clients[${index}]`,
      grant: {
        credential: {
          certificate: alternativeName === undefined ? { subject: subject ?? "" } : { alternativeName },
          name,
        },
        access: accessOf(said),
      },
    })),
  ];
  const faults = found.flatMap(({ key, grant }): Fault[] => {
    try {
      callersOf([grant]);
      return [];
    } catch (error) {
      // The form of a hash or of a certificate's subject: what tells it never quotes a secret.
      const message = error instanceof Error ? error.message : String(error);
      return [{ place: places.get(key) ?? { kind: "default" }, key, message }];
    }
  });
  if (faults.length > 0) throw new SettingsError(faults);
  return found.map(({ grant }) => grant);
}

function accessOf({ role, spaces = [] }: Said): Access {
  return role === "operate" ? { role } : { role, spaces: spaces.includes("*") ? "all" : spaces };
}

function tokenAccessOf({ spacesClaim, ...said }: Said & { readonly spacesClaim?: string | undefined }): TokenAccess {
  return spacesClaim === undefined || said.role === "operate" ? accessOf(said) : { role: said.role, spacesClaim };
}
