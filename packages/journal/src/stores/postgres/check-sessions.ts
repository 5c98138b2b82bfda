import { randomUUID } from "node:crypto";
import type { PostgresPool } from "./driver.js";
import { Session, type Statement } from "./session.js";

/**
 * Throws if the connections of the pool share sessions of PostgreSQL, as they do behind a pooler in transaction mode. Whoever died would
 * seem to live there: its advisory lock stays with a session that serves others (J11). Nobody would be woken, and settings and prepared
 * statements would be those of someone else.
 *
 * Two connections leave a mark in their session in turn. Each must find its own, always.
 */
export async function checkSessions(pool: PostgresPool, timeoutMs: number): Promise<void> {
  const sessions: Session[] = [];
  try {
    for (let n = 0; n < 2; n++) sessions.push(await Session.open(pool, timeoutMs));
    const marks = sessions.map(() => randomUUID());
    for (const [n, session] of sessions.entries()) {
      await session.run(mark, [marks[n] ?? ""]);
    }
    for (let round = 0; round < rounds; round++) {
      for (const [n, session] of sessions.entries()) {
        const [row] = await session.run(readMark, []);
        if (row?.[0] !== marks[n]) throw shared();
      }
    }
  } catch (error) {
    throw tellsOfSharing(error) ? shared(error) : error;
  } finally {
    await Promise.all(sessions.map((session) => session.end()));
  }
}

const rounds = 3;
const mark: Statement = { name: "osbert mark", text: "select set_config('osbert.session', $1, false)" };
const readMark: Statement = { name: "osbert read mark", text: "select current_setting('osbert.session', true)" };

/** A statement that this session has prepared is not there, or one that it has not prepared is. */
function tellsOfSharing(error: unknown): boolean {
  const code = (error as { readonly code?: unknown } | null | undefined)?.code;
  return code === "42P05" || code === "26000";
}

function shared(cause?: unknown): Error {
  return new Error(
    "the connections to PostgreSQL share its sessions, as they do behind a pooler in transaction mode, and the journal needs sessions of its own: connect to PostgreSQL itself, or set the pooler to session mode (pgbouncer: pool_mode = session)",
    { cause },
  );
}
