import { randomBytes } from "node:crypto";
import { connect, createServer, type Server, type Socket } from "node:net";
import pg from "pg";
import { inject } from "vitest";
import type { Store } from "../src/store.js";
import { type PostgresStoreOptions, postgresStore } from "../src/stores/postgres/index.js";

export { change } from "./postgres-change.js";

/** Where the tests' PostgreSQL is; `null` if this run goes without. */
export const postgresUrl = inject("postgresUrl");

/** A schema of its own for one test, and what uses it. */
export class PostgresPlace {
  readonly schema = `test_${randomBytes(6).toString("hex")}`;
  readonly url: string;
  readonly pool: pg.Pool;
  readonly #closing: (() => Promise<unknown>)[] = [];

  constructor(url: string) {
    this.url = url;
    this.pool = this.newPool();
  }

  /** Runs a test in a fresh place and clears up after it. */
  static async use(body: (place: PostgresPlace) => Promise<void>): Promise<void> {
    const place = new PostgresPlace(postgresUrl ?? "");
    try {
      await body(place);
    } finally {
      for (const close of place.#closing.reverse()) await close();
      await place.pool.query(`drop schema if exists ${place.schema} cascade`);
      await place.pool.end();
    }
  }

  newPool(url = this.url): pg.Pool {
    const pool = new pg.Pool({ connectionString: url, max: 12 });
    if (this.pool !== undefined) this.atEnd(() => pool.end());
    return pool;
  }

  /** A store that was opened, with a pool of its own, as another process would have it. */
  async store(options: PostgresStoreOptions = {}, pool = this.newPool()): Promise<Store> {
    const store = postgresStore(pool, { schema: this.schema, ...options });
    await store.open();
    this.atEnd(() => store.close());
    return store;
  }

  atEnd(close: () => Promise<unknown>): void {
    this.#closing.push(close);
  }

  /** Ends all other sessions whose last statement was about this schema, as an administrator would. */
  async terminateSessions(): Promise<number> {
    const { rowCount } = await this.pool.query(
      "select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid() and query like $1",
      [`%${this.schema}%`],
    );
    return rowCount ?? 0;
  }
}

/** A way to the server that can be cut and can fall silent, as networks do. */
export class Wire {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  readonly #target: URL;
  #port = 0;
  #silent = false;
  #hangsUpBehind = Number.POSITIVE_INFINITY;
  #hungUp = 0;
  #losing: string | undefined;

  private constructor(target: URL) {
    this.#target = target;
    this.#server = createServer((inbound) => this.#join(inbound));
  }

  static async to(url: string): Promise<Wire> {
    const wire = new Wire(new URL(url));
    await wire.restore();
    return wire;
  }

  get url(): string {
    const url = new URL(this.#target);
    url.host = `127.0.0.1:${this.#port}`;
    return url.href;
  }

  /** All connections break, and new ones are refused. */
  async cut(): Promise<void> {
    await new Promise<unknown>((resolve) => {
      this.#server.close(resolve);
      for (const socket of this.#sockets) socket.resetAndDestroy();
    });
  }

  async restore(): Promise<void> {
    this.#silent = false;
    await new Promise<void>((resolve) => this.#server.listen(this.#port, "127.0.0.1", resolve));
    const address = this.#server.address();
    if (address !== null && typeof address === "object") this.#port = address.port;
  }

  /** Connections stay, but nothing comes through any more. */
  fallSilent(): void {
    this.#silent = true;
  }

  /**
   * All connections break. New ones are ended in the same breath as the server's nth answer (the first one accepts the session), as a
   * server does that is told to shut down at this moment.
   */
  hangUpBehind(answer: number): void {
    this.#hangsUpBehind = answer;
    this.#hungUp = 0;
    for (const socket of this.#sockets) socket.resetAndDestroy();
  }

  /** The next that is sent with this text in it never arrives, nor does anything behind it on its connection. */
  loseNext(text: string): void {
    this.#losing = text;
  }

  /** Whether that has happened. */
  get hasLost(): boolean {
    return this.#losing === undefined;
  }

  /** How many were ended so. */
  get hungUp(): number {
    return this.#hungUp;
  }

  #join(inbound: Socket): void {
    const outbound = connect(Number(this.#target.port), this.#target.hostname);
    const hangsUpBehind = this.#hangsUpBehind;
    let answers = 0;
    let deaf = false;
    outbound.on("data", (data) => {
      if (data.includes(readyForQuery) && ++answers === hangsUpBehind) {
        this.#hungUp++;
        inbound.end(Buffer.concat([data, shuttingDown]));
      }
    });
    inbound.on("data", (data) => {
      if (this.#losing === undefined || !data.includes(this.#losing)) return;
      this.#losing = undefined;
      deaf = true;
    });
    for (const [from, to] of [
      [inbound, outbound],
      [outbound, inbound],
    ] as const) {
      this.#sockets.add(from);
      from.on("data", (data) => this.#silent || deaf || to.writableEnded || to.write(data));
      from.on("error", () => to.destroy());
      from.on("close", () => {
        this.#sockets.delete(from);
        to.destroy();
      });
    }
  }
}

/** The server's messages for "what was asked is done" and for "terminating connection due to administrator command". */
const readyForQuery = Buffer.from([0x5a, 0, 0, 0, 5, 0x49]);
const shuttingDown = errorMessage("SFATAL\0VFATAL\0C57P01\0Mterminating connection due to administrator command\0\0");

function errorMessage(fields: string): Buffer {
  const length = Buffer.alloc(4);
  length.writeInt32BE(4 + fields.length);
  return Buffer.concat([Buffer.from("E"), length, Buffer.from(fields)]);
}

/** The name under which faults-outage.test.ts knows it. */
export { Wire as Proxy };
