/** Marks the input of a deprovision that an operator forces. */
export interface Force {
  /** For all functions together. What has not ended then is passed over. */
  readonly withinMs: number;
}

/** A call of an author's function that did not end well, and was passed over by force. */
export interface PassedOver {
  /** Such as "unbind my-app". */
  readonly call: string;
  readonly error: string;
}

/** What a forced deprovision leaves behind as its result. */
export interface ForcedResult {
  readonly forced: readonly PassedOver[];
}

const mostNamed = 5;

/** What a platform and an operator are told at the end of a forced deletion that passed something over. `null`: it was not forced. */
export function passedOverText(result: ForcedResult | null): string | null {
  const forced = result?.forced ?? [];
  if (forced.length === 0) return null;
  const named = forced.slice(0, mostNamed).map(({ call }) => call);
  const more = forced.length > mostNamed ? ` and ${forced.length - mostNamed} more` : "";
  return `deleted by force; what did not end well was passed over, and may have left something behind: ${named.join(", ")}${more}`;
}
