import type { Finding } from "@osbert/protocol";
import type { ClusterObject } from "../cluster/cluster-object.js";
import type { ApplicationKind } from "./application.js";
import { FieldReader, tell } from "./field-reader.js";
import type { Grant } from "./grant.js";

export interface ParsedGrant {
  /** `null`: nothing can be made of it, and it grants nothing. */
  readonly grant: Grant | null;
  readonly findings: readonly Finding[];
}

const mostServices = 1_000;
const mostIdBytes = 200;

/**
 * Reads who may have what. Kyma's mapping is called as its application is, and may say `services: [{id}]`; Osbert's own names the application. A list
 * that is missing grants everything; an empty one, or one that cannot be read, nothing. Never throws.
 */
export function parseGrant(kind: ApplicationKind, object: ClusterObject): ParsedGrant {
  const findings: Finding[] = [];
  const { name, uid = "", namespace = "" } = object.metadata;
  const { spec } = object;
  const isMissing = spec === undefined || spec === null;
  if (!isMissing && (typeof spec !== "object" || Array.isArray(spec))) {
    tell(findings, "spec", "must be an object");
    return { grant: null, findings };
  }
  const fields = new FieldReader(spec, "spec", findings);
  const application = kind === "kyma" ? name : fields.id("application", 253);
  if (application === null) {
    fields.tell("application", "is missing: nothing is granted");
    return { grant: null, findings };
  }
  return {
    grant: { namespace, name, uid, kind, application, services: readServices(kind, fields, findings) },
    findings,
  };
}

function readServices(kind: ApplicationKind, fields: FieldReader, findings: Finding[]): Grant["services"] {
  if (!fields.has("services")) return null;
  const ids = new Set<string>();
  for (const { value, place } of fields.items("services", mostServices)) {
    const id =
      kind === "kyma" || typeof value === "object"
        ? new FieldReader(value, place, findings).id("id", mostIdBytes)
        : new FieldReader({ value }, "", []).id("value", mostIdBytes);
    if (id === null) tell(findings, place, "has no id of a service");
    else ids.add(id);
  }
  return [...ids];
}
