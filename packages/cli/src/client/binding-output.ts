import { type FetchBindingResponse, isJsonObject } from "@osbert/protocol";
import type { FormatChoice } from "./command-options.js";
import { credentialsAsEnv, prefixOf } from "./credentials-as-env.js";
import { CommandError } from "./exit-status.js";
import { plainJson } from "./plain-text.js";

/** A binding as it is printed: its credentials, lines about the rest for a person, and the whole of it for a machine. */
export interface BindingOutput {
  readonly text: string;
  readonly lines: readonly string[];
  readonly data: object;
}

export function bindingOutput(binding: FetchBindingResponse, instance: string, choice: FormatChoice): BindingOutput {
  const credentials: unknown = binding.credentials ?? {};
  if (!isJsonObject(credentials))
    throw new CommandError("unreachable", "the broker's answer is broken: the credentials are no JSON object");
  const prefix = choice.prefix ?? prefixOf(instance);
  const { operation: _, ...data } = binding as FetchBindingResponse & { readonly operation?: unknown };
  return {
    text: choice.format === "env" ? credentialsAsEnv(credentials, prefix) : `${plainJson(credentials)}\n`,
    lines: linesOf(binding),
    data,
  };
}

function linesOf(binding: FetchBindingResponse): string[] {
  const facts: Readonly<Record<string, unknown>> = {
    "expires at": binding.metadata?.expires_at,
    "renew before": binding.metadata?.renew_before,
    "syslog drain": binding.syslog_drain_url,
    "route service": binding.route_service_url,
    "volume mounts (see them with --json)": countOf(binding.volume_mounts),
    "endpoints (see them with --json)": countOf(binding.endpoints),
  };
  return Object.entries(facts).flatMap(([name, value]) =>
    typeof value === "string" && value !== "" ? [`${name}: ${value}`] : [],
  );
}

function countOf(list: unknown): string {
  return Array.isArray(list) && list.length > 0 ? String(list.length) : "";
}
