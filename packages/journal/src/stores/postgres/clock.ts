import type { Statement } from "./session.js";

/**
 * The store's clock in SQL: a test's time if the parameter has one, else the server's. Not now(), which stands still in
 * a transaction.
 */
export function clock(parameter: number): string {
  return `select coalesce($${parameter}::bigint, floor(extract(epoch from clock_timestamp()) * 1000)::bigint) as at`;
}

export const clockStatement: Statement = { name: "osbert clock", text: clock(1) };
