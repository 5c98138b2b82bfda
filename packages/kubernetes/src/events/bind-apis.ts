import { Failed, type Service } from "@osbert/broker";
import { RetryLater } from "@osbert/journal";
import { apiCredentials, type GatewayUrl, type SecretData, secretsOf } from "../applications/api-credentials.js";
import type { SecretPlace } from "../applications/application.js";
import type { Applications } from "../applications/applications.js";
import type { Revision } from "../applications/offer-applications.js";
import { namespaceOf } from "../applications/platform-namespace.js";
import type { FoundService } from "../applications/wiring.js";
import type { Cluster } from "../cluster/cluster.js";
import { ClusterError } from "../cluster/cluster-error.js";
import type { ObjectKind } from "../cluster/cluster-object.js";

export interface BindPorts {
  readonly cluster: Cluster;
  readonly applications: Pick<Applications, "isGranted">;
  readonly gateway: GatewayUrl;
  readonly found: (serviceId: string, planId: string) => FoundService;
}

const secretKind: ObjectKind = { group: "", version: "v1", kind: "Secret", plural: "secrets", namespaced: true };
/** A Secret that is not there yet is looked for again. */
const againMs = 5_000;

type Bind = NonNullable<Service["bind"]>;

/**
 * Gives what an application's APIs ask for, as it is at this moment: Secrets are read when a binding is made, and what they hold is in the binding
 * alone. So a successor of a binding has what the Secret holds by then.
 */
export function bindApis({ cluster, applications, gateway, found }: BindPorts, revision: Revision): Bind {
  return async (operation, { instance }) => {
    const { application, service, plan, isOffered } = found(instance.serviceId, instance.planId);
    const namespace = namespaceOf(instance.platform);
    const what = `${service.displayName} of ${application.displayName}`;
    if (!plan.apis) throw new Failed(`${what} gives events alone: there is nothing to bind`, { code: "bad-request" });
    if (!isOffered) throw new Failed(`${what} is not offered any more`, { code: "service-retired" });
    if (namespace === undefined || !applications.isGranted(namespace, application.name, service.id))
      throw new Failed(`${what} is not granted to the namespace ${instance.platform}`, { code: "forbidden" });
    const secrets = new Map<string, SecretData>();
    for (const place of secretsOf(service, revision)) {
      operation.describe(`reads the Secret ${keyOf(place)}`);
      secrets.set(keyOf(place), await readSecret(cluster, place, operation.signal));
    }
    const secret = (place: SecretPlace) => secrets.get(keyOf(place)) ?? {};
    const credentials = apiCredentials({ namespace, application, service, revision, gateway, secret });
    if (credentials === null) throw new Failed(`no gateway leads to ${what}`);
    return { credentials };
  };
}

function keyOf({ namespace, name }: SecretPlace): string {
  return `${namespace}/${name}`;
}

/** Nothing of what it holds is in any error. */
async function readSecret(cluster: Cluster, place: SecretPlace, signal: AbortSignal): Promise<SecretData> {
  const found = await cluster.read(secretKind, place, { signal }).catch((error: unknown) => {
    if (!(error instanceof ClusterError)) throw error;
    throw new RetryLater(`the Secret ${keyOf(place)} cannot be read now: ${error.message}`, { afterMs: againMs });
  });
  if (found === undefined) throw new RetryLater(`waits for the Secret ${keyOf(place)}`, { afterMs: againMs });
  const { data } = found;
  if (typeof data !== "object" || data === null) return {};
  return Object.fromEntries(
    Object.entries(data).flatMap(([key, value]) =>
      typeof value === "string" ? [[key, Buffer.from(value, "base64").toString()]] : [],
    ),
  );
}
