/**
 * What the store calls of a connection pool. A `Pool` of node-postgres (`pg`, version 8) is one; the store brings no
 * driver of its own.
 *
 * The store holds up to `connections` + 1 of the pool's clients at a time, so the pool's `max` must be larger than that
 * if others use the pool too. They must lead to one PostgreSQL session each: behind a pooler that shares sessions
 * between transactions, advisory locks, LISTEN and prepared statements do not work.
 *
 * A pool emits "error" when a client that nobody holds loses its connection, and without a listener that ends the
 * process. The store sees to it that there is one, which does nothing: such a client is replaced when it is needed.
 */
export interface PostgresPool {
  /**
   * With a callback, not a promise: a server that is shutting down may end a session in the same breath in which it accepts it. The client
   * emits "error" then before a promise can tell of it, and without a listener that ends the process. A callback is called in time to add
   * one.
   */
  connect(callback: (error: Error | undefined, client: PostgresClient | undefined) => void): void;
  on?(event: "error", listener: (error: Error) => void): unknown;
}

/** A connection that was taken from the pool. */
export interface PostgresClient {
  query(query: PostgresQuery): Promise<{ readonly rows: readonly (readonly unknown[])[] }>;
  on(event: "error" | "end", listener: () => void): unknown;
  on(event: "notification", listener: (notification: { readonly payload?: string | undefined }) => void): unknown;
  /** Gives it back to the pool, or closes it. */
  release(destroy?: boolean): void;
}

export interface PostgresQuery {
  /** A statement with a name is prepared once a connection. */
  readonly name?: string;
  readonly text: string;
  readonly values?: unknown[];
  readonly rowMode: "array";
  /** All values come as PostgreSQL's own text, whatever parsers the application has set for its types. */
  readonly types: { getTypeParser(): (text: string) => string };
}

/**
 * Pools that have the listener. It stays: a client may break even after the store let go of it, until the connection is
 * closed.
 */
const tolerant = new WeakSet<PostgresPool>();

export function tolerateBrokenClients(pool: PostgresPool): void {
  if (tolerant.has(pool)) return;
  tolerant.add(pool);
  pool.on?.("error", () => {});
}
