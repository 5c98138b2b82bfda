/** Which instance: ids of one platform are kept apart from those of another. */
export interface InstanceAddress {
  /** "" for a broker with one. */
  readonly platform: string;
  readonly instance: string;
}

/** The key of an instance's resource in the journal. A platform's name has no slash in it then; an id may. */
export function instanceKey(platform: string, instance: string): string {
  return `${encodeURIComponent(platform)}/${instance}`;
}

/** The way back from a key. `undefined`: it is not that of an instance, but something that the broker keeps for itself. */
export function instanceAddress(key: string): InstanceAddress | undefined {
  const slash = key.indexOf("/");
  if (slash < 0) return undefined;
  return { platform: decodeURIComponent(key.slice(0, slash)), instance: key.slice(slash + 1) };
}
