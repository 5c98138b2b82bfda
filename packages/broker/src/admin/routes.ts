import { BrokerError } from "@osbert/protocol";

/** The endpoints of the admin API: what a method on a path means. */
export const adminRoutes = [
  ["GET", "/admin/v1/instances", "instances"],
  ["GET", "/admin/v1/instances/:instance", "instance"],
  ["GET", "/admin/v1/instances/:instance/bindings", "bindings"],
  ["GET", "/admin/v1/instances/:instance/journal", "journal"],
  ["GET", "/admin/v1/instances/:instance/operations/:operation", "operation"],
  ["GET", "/admin/v1/operations", "operations"],
  ["GET", "/admin/v1/services", "services"],
  ["GET", "/admin/v1/set-aside", "setAside"],
  ["GET", "/admin/v1/keys/rotation", "keyRotation"],
  ["POST", "/admin/v1/operations/retry", "retryAll"],
  ["POST", "/admin/v1/operations/cancel", "cancelAll"],
  ["POST", "/admin/v1/instances/:instance/operations/:operation/retry", "retry"],
  ["POST", "/admin/v1/instances/:instance/operations/:operation/cancel", "cancel"],
  ["POST", "/admin/v1/instances/:instance/purge", "purge"],
  ["POST", "/admin/v1/instances/:instance/bindings/:binding/purge", "purgeBinding"],
  ["POST", "/admin/v1/instances/:instance/force-delete", "forceDelete"],
  ["POST", "/admin/v1/instances/:instance/restore", "restore"],
  ["POST", "/admin/v1/keys/rotation", "rotateKeys"],
  ["POST", "/admin/v1/services/:service/pause", "pause"],
  ["POST", "/admin/v1/services/:service/resume", "resume"],
] as const;

type AdminRoute = (typeof adminRoutes)[number];
export type AdminRouteName = AdminRoute[2];
/** Those that change nothing. */
export type LookName = Extract<AdminRoute, readonly ["GET", ...unknown[]]>[2];
/** Those that do, and need a reason. */
export type ActName = Exclude<AdminRouteName, LookName>;

export interface MatchedAdminRoute {
  readonly name: AdminRouteName;
  /** What stands in the path, decoded. */
  readonly values: Readonly<Partial<Record<"instance" | "operation" | "binding" | "service", string>>>;
}

/** Whether a path is the admin API's business. */
export function isAdminPath(path: string): boolean {
  return path === "/admin/v1" || path.startsWith("/admin/v1/");
}

export function matchAdminRoute(method: string, path: string): MatchedAdminRoute {
  const segments = path.split("/");
  const allowed = new Set<string>();
  for (const [offered, pattern, name] of adminRoutes) {
    const parts = pattern.split("/");
    const fits =
      parts.length === segments.length &&
      parts.every((part, at) => (part.startsWith(":") ? segments[at] !== "" : part === segments[at]));
    if (!fits) continue;
    if (offered !== method) {
      allowed.add(offered);
      continue;
    }
    const named = parts.flatMap((part, at) =>
      part.startsWith(":") ? [[part.slice(1), decode(segments[at] ?? "")] as const] : [],
    );
    return { name, values: Object.fromEntries(named) };
  }
  if (allowed.size === 0) throw new BrokerError("not-found", "there is nothing at this path of the admin API");
  const allow = [...allowed].join(", ");
  throw new BrokerError("method-not-allowed", `${method} is not possible here; ${allow} is`, { allow });
}

const longestIdBytes = 400;

/** Exactly once, and only what every store keeps alike. */
function decode(segment: string): string {
  let text: string;
  try {
    text = decodeURIComponent(segment);
  } catch (cause) {
    throw new BrokerError("bad-request", "an id in the path is not validly percent-encoded", { cause });
  }
  checkKeepable(text, "an id in the path");
  return text;
}

export function checkKeepable(text: string, what: string): void {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: NUL is what is looked for.
  if (/[\u0000\ud800-\udfff]/u.test(text) || Buffer.byteLength(text) > longestIdBytes)
    throw new BrokerError("bad-request", `${what} must have at most ${longestIdBytes} bytes, without NUL`);
}
