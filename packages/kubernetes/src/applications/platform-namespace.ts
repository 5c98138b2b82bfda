const namespaceName = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;

/**
 * The namespace that a platform asks for: the path under which it asks, and nothing else. What it says of the place besides (`context.namespace`) does not
 * count: credentials and grants are of the path, and whoever has those of one namespace could name another. `undefined`: the path is no namespace's.
 */
export function namespaceOf(platform: string): string | undefined {
  return namespaceName.test(platform) ? platform : undefined;
}
