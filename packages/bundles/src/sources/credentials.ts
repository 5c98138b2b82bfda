/** Who Osbert is to a source. */
export type Credentials =
  | { readonly kind: "anonymous" }
  | { readonly kind: "basic"; readonly username: string; readonly password: string }
  /** Given as it is to the API of a vendor, and to a registry as a bearer. */
  | { readonly kind: "token"; readonly token: string };

/** Read anew whenever they are sent, so that a file that was changed counts at once. */
export type ReadCredentials = () => Promise<Credentials>;

export function basicHeader(username: string, password: string): string {
  return `Basic ${Buffer.from(`${username}:${password}`).toString("base64")}`;
}
