import { type Client, createClient } from "@osbert/protocol/client";
import { brokerFetch } from "@osbert/protocol/node";
import type { BrokerData } from "../records/broker-record.js";

type Address = Pick<BrokerData, "url" | "authentication" | "ca" | "clientCertificate" | "limits">;

/** Speaks to a broker as it is registered. */
export function brokerClient({ url, authentication, ca, clientCertificate, limits }: Address): Client {
  return createClient({
    url,
    timeoutMs: limits.timeoutMs,
    fetch: brokerFetch({ ...(ca !== null && { ca }), ...(clientCertificate !== null && { clientCertificate }) }),
    ...(authentication.kind === "basic" && {
      credentials: { username: authentication.username, password: authentication.password },
    }),
    ...(authentication.kind === "bearer" && { credentials: `Bearer ${authentication.token}` }),
  });
}

/** Whether both are spoken to in the same way. */
export function isSameAddress(one: Address, other: Address): boolean {
  return addressText(one) === addressText(other);
}

function addressText({ url, authentication, ca, clientCertificate, limits }: Address): string {
  return JSON.stringify([url, authentication, ca, clientCertificate, limits.timeoutMs]);
}
