/** The store's tables, quoted for SQL. */
export interface Tables {
  readonly prefix: string;
  readonly resource: string;
  readonly entry: string;
  readonly part: string;
  readonly label: string;
  readonly lane: string;
  readonly owner: string;
  readonly sequence: string;
  readonly migration: string;
}

export function tablesOf(prefix: string): Tables {
  // Identifiers have at most 64 characters.
  if (!/^[A-Za-z_][A-Za-z0-9_]{0,47}$/.test(prefix)) {
    throw new TypeError(
      `the table prefix ${JSON.stringify(prefix)} must be 1 to 48 letters, digits and underscores, and start with no digit`,
    );
  }
  const named = (name: string) => `\`${prefix}${name}\``;
  return {
    prefix,
    resource: named("resource"),
    entry: named("entry"),
    part: named("part"),
    label: named("label"),
    lane: named("lane"),
    owner: named("owner"),
    sequence: named("sequence"),
    migration: named("migration"),
  };
}
