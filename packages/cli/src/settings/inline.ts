/** A value on one line of YAML. */
export function inline(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(inline).join(", ")}]`;
  if (typeof value === "object" && value !== null) {
    return `{ ${Object.entries(value)
      .map(([name, item]) => `${name}: ${inline(item)}`)
      .join(", ")} }`;
  }
  const text = String(value);
  return typeof value === "string" && /^[*&!%@`'"{[\]},#|>?-]|: | #|:$/.test(text) ? JSON.stringify(text) : text;
}
