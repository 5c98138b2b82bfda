/** A source as it is configured. */
export interface ConfiguredSource {
  readonly name: string;
  readonly previousNames: readonly string[];
}

/** A source that something is kept of. */
export interface KeptSource {
  /** What its resource is keyed by and its ids are derived from. */
  readonly identityName: string;
  /** What it was called last. */
  readonly name: string;
}

export interface IdentifiedSources {
  /** By configured name, the identity: a kept one, or a new one. */
  readonly identities: ReadonlyMap<string, string>;
  /** Identities of kept sources that the configuration lacks: they drain. */
  readonly left: readonly string[];
}

/**
 * Which configured source is which kept one (F5-24). A name that is known counts first, then an earlier one that nobody else has now. A new
 * source under a name that a renamed one had before gets an identity of its own: neither takes the other's ids.
 */
export function identifySources(
  configured: readonly ConfiguredSource[],
  kept: readonly KeptSource[],
): IdentifiedSources {
  const names = new Set(configured.map(({ name }) => name));
  const unclaimed = new Map(kept.map((source) => [source.name, source.identityName]));
  const identities = new Map<string, string>();
  const claim = (name: string, as: string) => {
    const identity = unclaimed.get(name);
    if (identity === undefined) return false;
    unclaimed.delete(name);
    identities.set(as, identity);
    return true;
  };
  for (const { name } of configured) claim(name, name);
  for (const { name, previousNames } of configured)
    if (!identities.has(name)) previousNames.some((previous) => !names.has(previous) && claim(previous, name));
  const taken = new Set(kept.map(({ identityName }) => identityName));
  for (const { name } of configured) {
    if (identities.has(name)) continue;
    const identity = freeIdentity(name, taken);
    taken.add(identity);
    identities.set(name, identity);
  }
  return { identities, left: [...unclaimed.values()].sort() };
}

/** No name of a source has a tilde. */
function freeIdentity(name: string, taken: ReadonlySet<string>): string {
  let identity = name;
  for (let number = 2; taken.has(identity); number += 1) identity = `${name}~${number}`;
  return identity;
}
