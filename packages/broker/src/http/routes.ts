import { BrokerError } from "@osbert/protocol";
import type { Endpoints } from "../endpoints/endpoints.js";

/** The endpoints of the API: what a method on a path means. */
export const routes = [
  ["GET", "/v2/catalog", "catalog"],
  ["PUT", "/v2/service_instances/:instance", "provision"],
  ["GET", "/v2/service_instances/:instance", "fetchInstance"],
  ["PATCH", "/v2/service_instances/:instance", "update"],
  ["DELETE", "/v2/service_instances/:instance", "deprovision"],
  ["GET", "/v2/service_instances/:instance/last_operation", "instanceLastOperation"],
  ["PUT", "/v2/service_instances/:instance/service_bindings/:binding", "bind"],
  ["GET", "/v2/service_instances/:instance/service_bindings/:binding", "fetchBinding"],
  ["DELETE", "/v2/service_instances/:instance/service_bindings/:binding", "unbind"],
  ["GET", "/v2/service_instances/:instance/service_bindings/:binding/last_operation", "bindingLastOperation"],
] as const satisfies readonly (readonly [method: string, path: string, name: "catalog" | keyof Endpoints])[];

/** The name of an endpoint. */
export type RouteName = (typeof routes)[number][2];

export interface Matched {
  readonly name: RouteName;
  readonly instance: string;
  readonly binding: string;
}

/** The path up to `/v2`, decoded once: which platform's ids these are. `undefined`: there is no `/v2` in it. */
export function splitPlatform(path: string): { readonly platform: string; readonly rest: string } | undefined {
  if (path.startsWith("/v2/") || path === "/v2") return { platform: "", rest: path };
  const match = /^\/([^/]+)(\/v2(?:\/.*)?)$/.exec(path);
  return match === null ? undefined : { platform: decode(match[1] ?? ""), rest: match[2] ?? "" };
}

/** HEAD is GET without a body. */
export function matchRoute(method: string, path: string): Matched {
  const segments = path.split("/");
  const wanted = method === "HEAD" ? "GET" : method;
  for (const { method: offered, name, pattern, instanceAt, bindingAt } of patterns) {
    if (offered !== wanted || !fits(pattern, segments)) continue;
    return {
      name,
      instance: instanceAt < 0 ? "" : decode(segments[instanceAt] ?? ""),
      binding: bindingAt < 0 ? "" : decode(segments[bindingAt] ?? ""),
    };
  }
  throw methodRefusal(method, path);
}

/** Why a method that no route has there is refused: with those that are possible, if the path is right. */
export function methodRefusal(method: string, url: string): BrokerError {
  const path = url.split("?", 1)[0] ?? "";
  const segments = (/^\/[^/]+(\/v2\/.*)$/.exec(path)?.[1] ?? path).split("/");
  const allow = patterns
    .filter(({ pattern }) => fits(pattern, segments))
    .map(({ method: offered }) => offered)
    .join(", ");
  return allow === ""
    ? new BrokerError("not-found", "there is nothing at this path; the API begins with /v2/catalog")
    : new BrokerError("method-not-allowed", `${method.slice(0, 40)} is not possible here; ${allow} is`, { allow });
}

const patterns = routes.map(([method, path, name]) => {
  const pattern = path.split("/");
  return { method, name, pattern, instanceAt: pattern.indexOf(":instance"), bindingAt: pattern.indexOf(":binding") };
});

function fits(pattern: readonly string[], segments: readonly string[]): boolean {
  if (pattern.length !== segments.length) return false;
  for (let at = 0; at < pattern.length; at++) {
    const part = pattern[at] as string;
    if (part.startsWith(":") ? segments[at] === "" : part !== segments[at]) return false;
  }
  return true;
}

/** Exactly once: an encoded slash or dot is part of the id, never of the path. */
function decode(segment: string): string {
  if (!segment.includes("%")) return segment;
  try {
    return decodeURIComponent(segment);
  } catch (cause) {
    throw new BrokerError("bad-request", "an id in the path is not validly percent-encoded", { cause });
  }
}
