/** The names that the distribution protocol knows. Whatever else a source lists cannot be asked for: it could lead to another address. */
export function isRepositoryName(name: string): boolean {
  return name.length <= 255 && name.split("/").every((part) => /^[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*$/.test(part));
}

export function isTag(tag: string): boolean {
  return /^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$/.test(tag);
}
