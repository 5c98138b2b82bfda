/** Which instance: ids of one platform are kept apart from those of another. */
export interface InstanceAddress {
  /** "" for a broker with one. */
  readonly platform: string;
  /** As the platform gave it. */
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

/** The same of any resource, for people: of one that is no instance, its key. */
export function addressOrKey(key: string): InstanceAddress {
  return instanceAddress(key) ?? { platform: "", instance: key };
}
