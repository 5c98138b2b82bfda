/** Whether a decision has answered with a promise: it must answer at once. */
export function isPromise(value: unknown): boolean {
  return typeof (value as { then?: unknown } | undefined)?.then === "function";
}
