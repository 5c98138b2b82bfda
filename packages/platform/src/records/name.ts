/** Names of brokers, spaces, instances and bindings: they stand in keys, lanes, URLs and on command lines. */
export function isName(text: string): boolean {
  return /^[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$/.test(text);
}

/** Goes behind what is named. */
export const nameRule =
  "has 1 to 63 letters, digits, dots, dashes and underscores, and begins and ends with a letter or a digit";
