/** The names of the store's tables, for use in SQL, and the channel on which it tells of work. */
export interface Schema {
  readonly name: string;
  /** The name in quotes. */
  readonly quoted: string;
  readonly resource: string;
  readonly resourceId: string;
  /** The index of due times. */
  readonly resourceDue: string;
  readonly entry: string;
  readonly part: string;
  readonly label: string;
  readonly owner: string;
  readonly migration: string;
  readonly channel: string;
}

/** So short that names made from it stay within PostgreSQL's 63 bytes. */
const nameLetters = 48;

/** Throws if the name is not a plain one: it becomes part of statements. */
export function schemaOf(name: string): Schema {
  if (name.length > nameLetters || !/^[A-Za-z_][A-Za-z0-9_]*$/.test(name) || name.toLowerCase().startsWith("pg_")) {
    throw new TypeError(
      `${JSON.stringify(name)} cannot be the schema: at most ${nameLetters} letters, digits and underscores, not starting with a digit or pg_`,
    );
  }
  const quoted = `"${name}"`;
  return {
    name,
    quoted,
    resource: `${quoted}.resource`,
    resourceId: `${quoted}.resource_id`,
    resourceDue: `${quoted}.resource_due`,
    entry: `${quoted}.entry`,
    part: `${quoted}.part`,
    label: `${quoted}.label`,
    owner: `${quoted}.owner`,
    migration: `${quoted}.migration`,
    channel: `${name}.wake`,
  };
}
