import type { HttpServerOptions } from "@osbert/server/fastify";
import type { Settings } from "../settings/table.js";

/** The settings of where any server answers, and how. */
export interface ListenSettings {
  readonly listen: Settings["listen"];
  readonly tls: Pick<Settings["tls"], "certificate" | "key" | "clientAuthority" | "clientCertificates">;
}

export function listenOptions({ listen, tls }: ListenSettings): HttpServerOptions & {
  readonly host: string;
  readonly port: number;
} {
  const { certificate, key, clientAuthority, clientCertificates } = tls;
  return {
    host: listen.host,
    port: listen.port,
    ...(listen.trustedProxies !== undefined && { trustProxy: [...listen.trustedProxies] }),
    ...(certificate !== undefined &&
      key !== undefined && {
        tls: {
          cert: certificate.text,
          key: key.reveal(),
          ...(clientAuthority !== undefined && { ca: clientAuthority.text, clientCertificates }),
        },
      }),
  };
}
