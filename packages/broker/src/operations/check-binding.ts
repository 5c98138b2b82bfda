import { isJsonObject, type ServiceOffering } from "@osbert/protocol";
import type { BindResult } from "../service/service.js";

/**
 * Why a binding as an author returned it must not go to a platform (BIND-17 to BIND-26), or `null`. Nothing is believed of its types:
 * services are also written in JavaScript, and what cannot be given out once cannot be given out the next time either.
 */
export function checkBinding(binding: BindResult<undefined>, { requires = [] }: ServiceOffering): string | null {
  if (!isJsonObject(binding)) return "it must be an object";
  const { credentials, syslogDrainUrl, routeServiceUrl, volumeMounts, endpoints } = binding as BindResult<undefined>;
  if (credentials !== undefined && !isJsonObject(credentials)) return "credentials must be an object";
  if (syslogDrainUrl !== undefined && !requires.includes("syslog_drain")) {
    return 'with syslogDrainUrl, the service must have "syslog_drain" in requires';
  }
  if (routeServiceUrl !== undefined && !requires.includes("route_forwarding")) {
    return 'with routeServiceUrl, the service must have "route_forwarding" in requires';
  }
  if (volumeMounts !== undefined && !requires.includes("volume_mount")) {
    return 'with volumeMounts, the service must have "volume_mount" in requires';
  }
  if (![syslogDrainUrl, routeServiceUrl].every((url) => url === undefined || isText(url)))
    return "a URL must be a text that is not empty";
  return (
    first(endpoints, "endpoints", endpointProblem) ??
    first(volumeMounts, "volumeMounts", mountProblem) ??
    timesProblem(binding as BindResult<undefined>)
  );
}

function first(
  items: unknown,
  what: string,
  problemOf: (item: Readonly<Record<string, unknown>>) => string | null,
): string | null {
  if (items === undefined) return null;
  if (!Array.isArray(items)) return `${what} must be a list`;
  for (const item of items) {
    const problem = isJsonObject(item) ? problemOf(item) : `${what} must be objects`;
    if (problem !== null) return problem;
  }
  return null;
}

function endpointProblem({ host, ports, protocol }: Readonly<Record<string, unknown>>): string | null {
  if (!isText(host)) return "an endpoint must have a host";
  const isPort = (port: unknown) => isText(port) && /^[0-9]{1,5}(-[0-9]{1,5})?$/.test(port);
  if (!Array.isArray(ports) || ports.length === 0 || !ports.every(isPort)) {
    return 'the ports of an endpoint must be texts such as "443" or "9000-9010"';
  }
  const known = protocol === undefined || protocol === "tcp" || protocol === "udp" || protocol === "all";
  return known ? null : "the protocol of an endpoint must be tcp, udp or all";
}

function mountProblem(mount: Readonly<Record<string, unknown>>): string | null {
  const device = isJsonObject(mount.device) ? mount.device : {};
  if (![mount.driver, mount.container_dir, device.volume_id].every(isText)) {
    return "a volume mount must have driver, container_dir and device.volume_id";
  }
  if (mount.mode !== "r" && mount.mode !== "rw") return 'the mode of a volume mount must be "r" or "rw"';
  if (mount.device_type !== "shared") return 'the device_type of a volume mount must be "shared"';
  const { mount_config: config } = device;
  return config === undefined || isJsonObject(config) ? null : "the mount_config of a device must be an object";
}

function timesProblem({ expiresAt, renewBefore }: BindResult<undefined>): string | null {
  const isTime = (time: unknown) => time === undefined || (time instanceof Date && !Number.isNaN(time.getTime()));
  if (!isTime(expiresAt) || !isTime(renewBefore)) return "expiresAt and renewBefore must be valid dates";
  if (renewBefore === undefined) return null;
  if (expiresAt === undefined) return "with renewBefore there must be expiresAt";
  return renewBefore > expiresAt ? "renewBefore must not be after expiresAt" : null;
}

function isText(value: unknown): value is string {
  return typeof value === "string" && value !== "";
}
