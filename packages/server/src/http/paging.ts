import { BrokerError } from "@osbert/protocol";

/** Which part of a list is wanted: so many, behind what an earlier part gave as `next`. */
export interface Paging {
  readonly after?: string;
  readonly limit?: number;
}

const longestCursor = 4_000;
const largestPage = 500;

/** Reads `limit` and `after` of a query; what is not as it must be is a 400 that says how. */
export function readPaging(query: URLSearchParams): Paging {
  const after = query.get("after");
  const limit = query.get("limit");
  if (after !== null && after.length > longestCursor) throw new BrokerError("bad-request", "after is too long");
  // biome-ignore lint/suspicious/noControlCharactersInRegex: NUL is what is looked for.
  if (after !== null && (after === "" || /[\u0000\ud800-\udfff]/u.test(after)))
    throw new BrokerError("bad-request", "after must be what an earlier page gave as next");
  const count = limit === null ? undefined : Number(limit);
  if (count !== undefined && !(Number.isInteger(count) && count >= 1 && count <= largestPage))
    throw new BrokerError("bad-request", `limit must be a whole number from 1 to ${largestPage}`);
  return { ...(after !== null && { after }), ...(count !== undefined && { limit: count }) };
}
