import { constants } from "node:crypto";
import type { Server as HttpServer } from "node:http";
import { createSecureContext, type SecureContextOptions, type Server } from "node:tls";
import type { LoadedSettings } from "../settings/read-settings-file.js";
import { SettingsError } from "../settings/settings-error.js";
import { UserError } from "../user-error.js";
import type { ListenSettings } from "./listen-options.js";

type TlsSettings = Pick<ListenSettings, "tls">;

/** Throws a SettingsError if the certificate and the key cannot be used, or do not belong together. */
export function checkTls({ settings, places }: Pick<LoadedSettings<TlsSettings>, "settings" | "places">): void {
  const options = optionsOf(settings);
  if (options === undefined) return;
  try {
    createSecureContext(options);
  } catch (error) {
    const key = "tls.certificate";
    // OpenSSL names what is wrong, and never shows what it read.
    const why = error instanceof Error ? error.message : String(error);
    const message = `cannot be used with tls.key: ${why}; both must be PEM and belong together`;
    throw new SettingsError([{ place: places.get(key) ?? { kind: "default" }, key, message }]);
  }
}

/**
 * What gives a running server the certificates of other settings: connections that are open keep theirs. Throws if the server would have
 * to speak TLS from now on, or not any more.
 */
export function secureContextOf(
  settings: TlsSettings,
  { server, url }: { readonly server: HttpServer; readonly url: string },
): () => void {
  const options = optionsOf(settings);
  if (url.startsWith("https:") !== (options !== undefined)) {
    throw new UserError("TLS can be turned on or off by a restart alone; nothing was changed");
  }
  return () => {
    if (options !== undefined) (server as unknown as Server).setSecureContext(options);
  };
}

/** The same as at start: no older TLS, and no change of certificate on a connection that has been authorised. */
function optionsOf({ tls: { certificate, key, clientAuthority } }: TlsSettings): SecureContextOptions | undefined {
  if (certificate === undefined || key === undefined) return undefined;
  return {
    cert: certificate.text,
    key: key.reveal(),
    ...(clientAuthority !== undefined && { ca: clientAuthority.text }),
    minVersion: "TLSv1.2",
    secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
  };
}
