/** What a registry asks for before it answers. */
export type Challenge =
  | { readonly kind: "basic" }
  | { readonly kind: "bearer"; readonly realm: string; readonly service: string | null };

/** The challenges of a WWW-Authenticate header (RFC 9110, 11.6.1) that are known here. A header that is none is an empty list. */
export function parseChallenges(header: string): readonly Challenge[] {
  const found: { readonly scheme: string; readonly parameters: Map<string, string> }[] = [];
  const part = /[\s,]*([!#$%&'*+.^_`|~0-9A-Za-z-]+)(?:[ \t]*=[ \t]*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+)))?/y;
  for (let match = part.exec(header); match !== null; match = part.exec(header)) {
    const [, name = "", quoted, bare] = match;
    const value = quoted?.replaceAll(/\\(.)/g, "$1") ?? bare;
    if (value === undefined) found.push({ scheme: name.toLowerCase(), parameters: new Map() });
    else found.at(-1)?.parameters.set(name.toLowerCase(), value);
  }
  return found.flatMap(({ scheme, parameters }): readonly Challenge[] => {
    if (scheme === "basic") return [{ kind: "basic" }];
    const realm = parameters.get("realm");
    if (scheme !== "bearer" || realm === undefined) return [];
    return [{ kind: "bearer", realm, service: parameters.get("service") ?? null }];
  });
}
