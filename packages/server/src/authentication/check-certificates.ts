import type { Credential } from "./credential.js";

/** Throws where a credential names a certificate that no client is asked for: nobody could ever use it, and nobody would learn why. */
export function checkCertificates(credentials: unknown, isAskedFor: boolean): void {
  if (!Array.isArray(credentials) || isAskedFor) return;
  if ((credentials as readonly Credential[]).some((credential) => "certificate" in credential)) {
    throw new TypeError(
      'a credential names a certificate, but no client is asked for one: set tls.clientCertificates to "request" or "require"',
    );
  }
}
