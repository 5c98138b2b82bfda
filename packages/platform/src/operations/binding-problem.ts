import { type Binding, isJsonObject, type Requirement } from "@osbert/protocol";

/** More than this cannot be kept as one part, beside what else is in it. */
const largestAnswerBytes = 512 * 1024;

/** Why what a broker answered to a bind cannot be used, in a sentence without any of it; `null`: it can. Brokers may send anything. */
export function bindingProblem(body: Binding, text: string, requires: readonly Requirement[]): string | null {
  const { credentials, syslog_drain_url, route_service_url, volume_mounts, metadata } = body;
  if (Buffer.byteLength(text) > largestAnswerBytes)
    return `the broker's answer is larger than ${largestAnswerBytes} bytes`;
  if (isGiven(credentials) && !isJsonObject(credentials)) return "the broker's credentials are not an object";
  const special: readonly (readonly [unknown, Requirement, string])[] = [
    [syslog_drain_url, "syslog_drain", "syslog_drain_url"],
    [route_service_url, "route_forwarding", "route_service_url"],
    [volume_mounts, "volume_mount", "volume_mounts"],
  ];
  for (const [value, requirement, name] of special)
    if (isGiven(value) && !isEmpty(value) && !requires.includes(requirement))
      return `the broker answered ${name}, and its offering does not require ${requirement}`;
  if (isGiven(syslog_drain_url) && typeof syslog_drain_url !== "string") return "syslog_drain_url is not a text";
  if (isGiven(route_service_url) && !(typeof route_service_url === "string" && /^https:\/\//i.test(route_service_url)))
    return "route_service_url is not an https URL";
  if (isGiven(volume_mounts) && !Array.isArray(volume_mounts)) return "volume_mounts is not a list";
  if (isGiven(metadata) && !isJsonObject(metadata)) return "metadata is not an object";
  for (const name of ["expires_at", "renew_before"] as const) {
    const time: unknown = metadata?.[name];
    if (isGiven(time) && !(typeof time === "string" && time.length < 100 && !Number.isNaN(Date.parse(time))))
      return `${name} is not a time`;
  }
  return null;
}

function isGiven(value: unknown): boolean {
  return value !== undefined && value !== null;
}

function isEmpty(value: unknown): boolean {
  return value === "" || (Array.isArray(value) && value.length === 0);
}
