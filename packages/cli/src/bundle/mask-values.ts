import { isJsonObject, type Json } from "@osbert/protocol";

/** A value whose shape can be seen and whose content cannot. */
export function maskValues(value: Json): Json {
  if (Array.isArray(value)) return value.map(maskValues);
  if (isJsonObject(value))
    return Object.fromEntries(Object.entries(value).map(([name, inside]) => [name, maskValues(inside)]));
  return value === null ? null : "***";
}
