/** What a step has thrown, and its name: an error does not say in which step it was thrown, and nobody keeps it for longer than it lives. */
const failedSteps = new WeakMap<object, string>();

/** The same function, which leaves the step's name with what it throws. */
export function noting<Given, T>(step: string, work: (given: Given) => Promise<T> | T): (given: Given) => Promise<T> {
  return async (given) => {
    try {
      return await work(given);
    } catch (error) {
      if (typeof error === "object" && error !== null) failedSteps.set(error, step);
      throw error;
    }
  };
}

/** The step that threw an error, or what it was made of; `null` if no step did. Anything can be thrown, also what cannot be looked at. */
export function failedStep(error: unknown): string | null {
  try {
    let thrown = error;
    for (let depth = 0; depth < 5 && typeof thrown === "object" && thrown !== null; depth++) {
      const step = failedSteps.get(thrown);
      if (step !== undefined) return step;
      thrown = thrown instanceof Error ? thrown.cause : undefined;
    }
  } catch {
    // Then nobody knows.
  }
  return null;
}
