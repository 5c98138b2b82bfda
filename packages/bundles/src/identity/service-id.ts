import { hash } from "node:crypto";
import { canonicalJson, type Json } from "@osbert/protocol";

/** Where a service comes from: what its id is made of where its author gave none (F5-57). */
export interface Origin {
  /** The source's first name. */
  readonly source: string;
  readonly repository: string;
  /** `""`: the default, which leaves no trace in the id (F5-66). */
  readonly channel: string;
}

/** A UUID of version 5: for ever the same for the same place. */
export function serviceIdOfPlace(namespace: string, { source, repository, channel }: Origin): string {
  const place = channel === "" ? [source, repository] : [source, repository, channel];
  return uuidOf(namespace, place);
}

export function planIdOfName(serviceId: string, plan: string, namespace: string): string {
  // Where the name of a source would stand is nothing, so that no place has the id of a plan.
  return uuidOf(namespace, ["", serviceId, plan]);
}

/** The name that the Ansible Service Broker gave a bundle, and made its ids of. Names that it could not tell apart are told apart where catalogs are merged (F5-62). */
export function legacyName(source: string, bundle: string): string {
  return `${source}-${bundle}`
    .replace(/[/.:-]/g, "-")
    .slice(0, 51)
    .replace(/-$/, "");
}

export function legacyServiceId(name: string): string {
  return hash("md5", name, "hex");
}

export function legacyPlanId(name: string, plan: string): string {
  return hash("md5", `${name}-${plan}`, "hex");
}

/** Equal for what is equal as JSON. `value` is nothing but JSON. */
export function fingerprint(value: unknown): string {
  return hash("sha256", canonicalJson(value as Json), "base64url").slice(0, 22);
}

/** RFC 9562, 5.5. The parts are told apart by what neither a source, a repository nor a tag holds. */
function uuidOf(namespace: string, parts: readonly string[]): string {
  const name = Buffer.from(parts.map((part) => part.normalize("NFC")).join("\n"), "utf8");
  const bytes = Buffer.from(
    hash("sha1", Buffer.concat([Buffer.from(namespace.replaceAll("-", ""), "hex"), name]), "hex"),
    "hex",
  ).subarray(0, 16);
  bytes.writeUInt8((bytes.readUInt8(6) & 0x0f) | 0x50, 6);
  bytes.writeUInt8((bytes.readUInt8(8) & 0x3f) | 0x80, 8);
  const hex = bytes.toString("hex");
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
}
