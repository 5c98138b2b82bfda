/** What may be told of an error: its class and its message, which its author wrote to be read. */
export interface ErrorFacts {
  readonly type: string;
  readonly message: string;
}

const longestMessage = 2_000;

/** Anything can be thrown, also what cannot be looked at. */
export function errorFacts(error: unknown): ErrorFacts {
  try {
    if (error instanceof Error) return { type: String(error.name), message: cut(String(error.message)) };
    return { type: typeof error, message: "something that is not an Error was thrown" };
  } catch {
    return { type: "unknown", message: "something was thrown that cannot be shown" };
  }
}

/** Where it was thrown and what led to it: for whoever looks closely. */
export function errorDetails(error: unknown): { readonly stack: string; readonly causes: readonly ErrorFacts[] } {
  const causes: ErrorFacts[] = [];
  try {
    const stack = error instanceof Error ? cut(String(error.stack)) : "";
    for (let cause = causeOf(error); cause !== undefined && causes.length < 5; cause = causeOf(cause))
      causes.push(errorFacts(cause));
    return { stack, causes };
  } catch {
    return { stack: "", causes };
  }
}

function causeOf(error: unknown): unknown {
  return error instanceof Error ? error.cause : undefined;
}

function cut(text: string): string {
  return text.length > longestMessage ? `${text.slice(0, longestMessage - 1)}…` : text;
}
