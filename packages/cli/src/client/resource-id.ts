import { CommandError } from "./exit-status.js";

/**
 * The name that a user gives an instance or a binding is its id: a broker takes any text, so no list of names and ids must be kept. Refused
 * is what cannot stand in a URL as itself: `..` would lead to another place.
 */
export function resourceId(name: string, what: "instance" | "binding"): string {
  if (name === "" || name === "." || name === ".." || name.length > 500 || /[\p{Cc}\p{Cs}]/u.test(name))
    throw new CommandError(
      "usage",
      `the name of the ${what} must not be empty, "." or "..", have control characters, or be longer than 500 characters`,
    );
  return name;
}
