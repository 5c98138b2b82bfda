/** The code of the innermost cause. Its message stays inside: it may quote what was sent. */
export function errorCodeOf(cause: unknown): string {
  for (let inner = cause, depth = 0; inner instanceof Error && depth < 5; inner = inner.cause, depth++) {
    const { code } = inner as NodeJS.ErrnoException;
    if (typeof code === "string" && /^[A-Z0-9_]{1,60}$/.test(code)) return code;
  }
  return "";
}
