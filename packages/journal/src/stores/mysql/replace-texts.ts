import { createHash } from "node:crypto";
import type { TextReplacement } from "../../store.js";
import type { MysqlValue } from "./driver.js";
import { checkTextFits } from "./packet.js";
import type { Server } from "./server.js";
import type { Sessions } from "./sessions.js";
import type { Tables } from "./tables.js";
import { lock } from "./upkeep.js";

/**
 * Puts other texts in the place of those of one resource that are still there, and answers how many. The record is locked first, as in
 * a commit: whoever has it is alone with its parts and entries.
 */
export async function replaceTexts(
  sessions: Sessions,
  tables: Tables,
  { packetBytes }: Server,
  key: string,
  replacements: readonly TextReplacement[],
): Promise<number> {
  for (const { to } of replacements) checkTextFits(to, packetBytes);
  return sessions.transaction(async (session) => {
    const row = await lock(session, tables, key);
    if (row === undefined) return 0;
    let replaced = 0;
    for (const replacement of replacements) {
      const { sql, values } = statementOf(tables, Number(row.id), replacement);
      replaced += await session.preparedChange(sql, values);
    }
    return replaced;
  });
}

/**
 * Old texts are told by their SHA-256: both texts may not fit into one statement, and the server's own comparison takes a text with a
 * space behind it for the same.
 */
function statementOf(
  { resource, entry, part }: Tables,
  id: number,
  { place, from, to }: TextReplacement,
): { readonly sql: string; readonly values: MysqlValue[] } {
  const hash = createHash("sha256").update(from).digest("hex");
  switch (place.kind) {
    case "state":
      return {
        sql: `update ${resource} set state = ? where id = ? and seq = ? and sha2(state, 256) = ?`,
        values: [to, id, place.seq, hash],
      };
    case "part":
      return {
        sql: `update ${part} set body = ? where resource = ? and id = ? and sha2(body, 256) = ?`,
        values: [to, id, Buffer.from(place.id), hash],
      };
    case "entry":
      return {
        sql: `update ${entry} set body = ? where resource = ? and seq = ? and sha2(body, 256) = ?`,
        values: [to, id, place.seq, hash],
      };
  }
}
