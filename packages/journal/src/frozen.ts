/** The same value, which nobody can change any more, however deep. */
export function frozen<T>(value: T): T {
  if (typeof value === "object" && value !== null) {
    for (const name in value) frozen(value[name]);
    Object.freeze(value);
  }
  return value;
}
