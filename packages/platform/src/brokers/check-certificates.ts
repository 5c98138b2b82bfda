import { X509Certificate } from "node:crypto";
import { createSecureContext } from "node:tls";
import { PlatformError } from "../errors.js";
import type { BrokerData } from "../records/broker-record.js";

/** Whether what is to secure connections can be read, before it is kept. Never says what it is. */
export function checkCertificates({ ca, clientCertificate }: Pick<BrokerData, "ca" | "clientCertificate">): void {
  try {
    // A context takes any text, and trusts nobody then.
    if (ca !== null) for (const one of certificatesIn(ca)) new X509Certificate(one);
  } catch {
    throw new PlatformError("invalid", "the certificates of authorities cannot be read as PEM");
  }
  if (clientCertificate === null) return;
  try {
    createSecureContext({ cert: clientCertificate.certificate, key: clientCertificate.key });
  } catch {
    throw new PlatformError(
      "invalid",
      "the client's certificate and its key cannot be read as PEM, or do not belong together",
    );
  }
}

function certificatesIn(pem: string): readonly string[] {
  const found = pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g);
  if (found === null) throw new Error("there is none");
  return found;
}
