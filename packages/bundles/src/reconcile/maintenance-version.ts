import semver from "semver";
import type { Digest } from "../sources/source.js";
import type { KeptRevision } from "./records.js";

export type MaintenanceVersion =
  | { readonly kind: "version"; readonly version: string; readonly remark: "unchanged" | "downgraded" | null }
  | { readonly kind: "not semantic" };

/**
 * The version that a revision has in the catalog (F5-30 to 33): its author's bundleVersion where that tells it from all others that are
 * kept, else with the beginning of its digest behind. So an instance's version always says which content it has.
 */
export function maintenanceVersion(
  bundleVersion: string | null,
  digest: Digest,
  history: readonly KeptRevision[],
  current: string | null,
): MaintenanceVersion {
  const known = history.find((kept) => kept.digest === digest);
  const given = semver.parse(bundleVersion ?? "0.0.0");
  if (given === null) return { kind: "not semantic" };
  const plain = given.build.length === 0 ? given.version : `${given.version}+${given.build.join(".")}`;
  const others = history.filter((kept) => kept.digest !== digest);
  const taken = others.some((kept) => kept.version === plain || kept.version === withDigest(plain, kept.digest));
  const version = known?.version ?? (bundleVersion === null || taken ? withDigest(plain, digest) : plain);
  const downgraded = current !== null && semver.compare(version, current) < 0;
  const unchanged = bundleVersion !== null && known === undefined && taken;
  return { kind: "version", version, remark: downgraded ? "downgraded" : unchanged ? "unchanged" : null };
}

const digestDigits = 12;

function withDigest(version: string, digest: Digest): string {
  const digits = digest.slice("sha256:".length, "sha256:".length + digestDigits);
  return `${version}${version.includes("+") ? "." : "+"}${digits}`;
}
