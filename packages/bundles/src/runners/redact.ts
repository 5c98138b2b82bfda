import { isJsonObject, type JsonObject } from "@osbert/protocol";
import { actions } from "../formats/bundle-spec.js";
import type { BundleFormat } from "../sources/source.js";

/**
 * A log without what its bundle was given or made as a secret: each text and number of `secrets`, however deep, becomes `***`, also as
 * programs like to print it: escaped as in JSON or in an address, or in base64. Short ones stay: they are found everywhere, and a log full of
 * holes helps nobody.
 */
export function redact(log: string, secrets: readonly unknown[]): string {
  const longestFirst = [...new Set(secrets.flatMap(texts))].sort((one, other) => other.length - one.length);
  return longestFirst.reduce((text, secret) => text.replaceAll(secret, "***"), log);
}

/** The parts of a job's input that may hold secrets. A classic bundle has its parameters beside what the broker tells it, which is none. */
export function secretParts(format: BundleFormat, input: JsonObject): readonly unknown[] {
  if (format === "apb")
    return Object.entries(input).flatMap(([name, value]) => (toldByBroker.has(name) ? [] : [value]));
  const { parameters, state, bindingState, previous, secrets } = input;
  return [secrets, parameters, state, bindingState, isJsonObject(previous) ? previous.parameters : null];
}

/** What an address may sign somebody in with, as it stands there and as it is meant: user and password, the values of its query, its fragment. */
export function addressSecrets(address: string | null): readonly string[] {
  if (address === null || !URL.canParse(address)) return [];
  const { username, password, search, searchParams, hash } = new URL(address);
  const values = search.slice(1).split("&");
  const written = [username, password, ...values.map((each) => each.slice(each.indexOf("=") + 1)), hash.slice(1)];
  return [...written, ...[username, password, hash.slice(1)].map(percentDecoded), ...searchParams.values()];
}

/** Variables of classic bundles that parameters of the same name do not replace; the first three are unlikely ones. */
const toldByBroker: ReadonlySet<string> = new Set([
  ...["action", "idempotencyKey", "bundleVersion", "cluster", "namespace", "_apb_last_requesting_user"],
  ...["_apb_plan_id", "_apb_service_class_id", "_apb_service_instance_id", "_apb_service_binding_id"],
]);

const minCharacters = 6;

/** A text of several lines is a secret in each of them. */
function texts(value: unknown): readonly string[] {
  if (typeof value === "number") return texts(String(value));
  // A word that every log has.
  if ((actions as readonly unknown[]).includes(value)) return [];
  if (typeof value === "string") {
    const lines = value
      .split(/\r?\n/)
      .flatMap((line) => [line, JSON.stringify(line).slice(1, -1), percentEncoded(line)]);
    const base64 = value.length < minCharacters ? [] : [Buffer.from(value).toString("base64").replace(/=+$/, "")];
    return [...lines.filter((line) => line.length >= minCharacters), ...base64];
  }
  return typeof value === "object" && value !== null ? Object.values(value).flatMap(texts) : [];
}

function percentDecoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** What is no text in Unicode cannot be written in an address. */
function percentEncoded(text: string): string {
  try {
    return encodeURIComponent(text);
  } catch {
    return text;
  }
}
