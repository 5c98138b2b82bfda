/** What `Authorization: Basic …` holds. */
export interface BasicPair {
  readonly username: string;
  readonly password: string;
}

const longestHeader = 4_096;

/** `undefined`: there is no user name and password in it, hence nothing that could be a guess. */
export function readBasic(authorization: string): BasicPair | undefined {
  if (authorization.length > longestHeader) return undefined;
  const match = /^basic +([A-Za-z0-9+/]+={0,2})$/i.exec(authorization);
  if (match === null) return undefined;
  const text = Buffer.from(match[1] ?? "", "base64").toString("utf8");
  const colon = text.indexOf(":");
  return colon < 0 ? undefined : { username: text.slice(0, colon), password: text.slice(colon + 1) };
}
