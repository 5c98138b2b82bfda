/** Advice beyond this is brought back to it: a broker cannot make a platform forget. */
export const longestRetryAfterMs = 3_600_000;

/**
 * The Retry-After of an answer, in milliseconds from now and at most an hour: seconds, or one of the three dates of HTTP (RFC 9110, 5.6.7).
 * Anything else is no advice.
 */
export function parseRetryAfter(text: string | null, now: () => number): number | undefined {
  const trimmed = text?.trim() ?? "";
  const ms = /^[0-9]{1,9}$/.test(trimmed) ? Number(trimmed) * 1_000 : parseHttpDate(trimmed) - now();
  return Number.isNaN(ms) ? undefined : Math.min(longestRetryAfterMs, Math.max(0, ms));
}

// Date.parse takes nearly anything for a date ("-5" is a year, and so is the 1 of "Mon, 1"), so the form is looked at first.
const time = "[0-9]{2}:[0-9]{2}:[0-9]{2}";
const httpDates: readonly RegExp[] = [
  new RegExp(`^[A-Z][a-z]{2}, [0-9]{2} [A-Z][a-z]{2} [0-9]{4} ${time} GMT$`),
  new RegExp(`^[A-Z][a-z]{5,8}, [0-9]{2}-[A-Z][a-z]{2}-[0-9]{2} ${time} GMT$`),
  new RegExp(`^[A-Z][a-z]{2} [A-Z][a-z]{2} [ 0-9][0-9] ${time} [0-9]{4}$`),
];

/** `NaN`: it is none. */
function parseHttpDate(text: string): number {
  if (!httpDates.some((form) => form.test(text))) return Number.NaN;
  return Date.parse(text.endsWith("GMT") ? text : `${text} GMT`);
}
