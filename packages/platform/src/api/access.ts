import { PlatformError } from "../errors.js";

/** What someone may do: look, change what is in their spaces, or run the platform. Each may do what those before it may. */
export const roles = ["see", "change", "operate"] as const;
export type Role = (typeof roles)[number];

/** Operators have all spaces: what they care for (brokers, orphans) is about all of them. */
export type Access =
  | { readonly role: "see" | "change"; readonly spaces: readonly string[] | "all" }
  | { readonly role: "operate" };

/** Who asks. */
export interface Caller {
  readonly name: string;
  readonly access: Access;
}

export function hasRole({ role }: Access, wanted: Role): boolean {
  return roles.indexOf(role) >= roles.indexOf(wanted);
}

export function spacesOf(access: Access): readonly string[] | "all" {
  return access.role === "operate" ? "all" : access.spaces;
}

/**
 * Throws where it is not theirs to do. The space comes first: what is in a space that someone does not have does not exist for them, whatever
 * they want to do to it. `space` is "" where the path names none.
 */
export function checkAccess({ access }: Caller, wanted: Role, space: string): void {
  const spaces = spacesOf(access);
  if (space !== "" && spaces !== "all" && !spaces.includes(space))
    throw new PlatformError("not-found", "there is no such space");
  if (!hasRole(access, wanted)) throw new PlatformError("forbidden", `this needs the role ${wanted}`);
}
