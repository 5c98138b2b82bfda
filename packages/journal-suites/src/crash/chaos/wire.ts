import { connect, createServer, type Server, type Socket } from "node:net";

type Way = "up" | "down";

interface Connection {
  /** The process's end. */
  readonly near: Socket;
  /** The server's end. */
  readonly far: Socket;
  /** Nothing comes through any more, in these directions. */
  readonly silent: Set<Way>;
}

/** How the next answer is lost, after so many that come through. */
export interface Loss {
  readonly after: number;
  readonly how: "all of it" | "its second half";
}

/** The way of one process to its server, over which everything can happen that happens on networks. */
export class Wire {
  readonly #target: { readonly host: string; readonly port: number };
  readonly #server: Server;
  readonly #connections = new Set<Connection>();
  #port = 0;
  #refuses = false;
  #silent = false;
  #delayMs = 0;
  #loss: { left: number; readonly how: Loss["how"] } | undefined;

  private constructor(target: { readonly host: string; readonly port: number }) {
    this.#target = target;
    this.#server = createServer({ allowHalfOpen: true }, (near) => this.#join(near));
  }

  static async to(target: { readonly host: string; readonly port: number }): Promise<Wire> {
    const wire = new Wire(target);
    await new Promise<void>((resolve) => wire.#server.listen(0, "127.0.0.1", resolve));
    const address = wire.#server.address();
    if (address !== null && typeof address === "object") wire.#port = address.port;
    return wire;
  }

  /** Of the loopback interface. */
  get port(): number {
    return this.#port;
  }

  /** All connections break. Answers how many. */
  cut(how: "with a reset" | "with a farewell"): number {
    const cut = this.#connections.size;
    for (const connection of [...this.#connections]) this.#end(connection, how);
    return cut;
  }

  /** All connections break, and new ones do so at once, until it is called off. Answers how many. */
  refuse(refuses: boolean): number {
    this.#refuses = refuses;
    return refuses ? this.cut("with a reset") : 0;
  }

  /** Everything takes up to so much longer, and what comes meanwhile arrives in one piece with it. */
  delay(ms: number): void {
    this.#delayMs = ms;
  }

  /** Connections stay, but nothing comes through. When it is called off, those that missed something break. Answers how many. */
  fallSilent(silent: boolean): number {
    this.#silent = silent;
    const deaf = [...this.#connections].filter((connection) => connection.silent.size > 0);
    if (!silent) for (const connection of deaf) this.#end(connection, "with a reset");
    return silent ? this.#connections.size : deaf.length;
  }

  /**
   * The server sees connections end and the process hears nothing of it. Answers how the process learns of it in the end. The oldest
   * connection is likely to be the one by which a store knows that the process lives.
   */
  halfOpen(which: "the oldest" | "all"): { readonly hit: number; readonly end: () => void } {
    const hit = [...this.#connections].slice(0, which === "all" ? undefined : 1);
    for (const { silent, far } of hit) {
      silent.add("up").add("down");
      far.destroy();
    }
    return { hit: hit.length, end: () => hit.forEach((connection) => void this.#end(connection, "with a reset")) };
  }

  /** One end says that it will send no more; the other direction stays open. Answers how many. */
  halfClose(way: Way): number {
    for (const { near, far } of this.#connections) (way === "up" ? far : near).end();
    return this.#connections.size;
  }

  /** Loses one answer, with its connection. `null`: loses none, if one was still to be lost. */
  loseAnswer(loss: Loss | null): void {
    this.#loss = loss === null ? undefined : { left: loss.after, how: loss.how };
  }

  async close(): Promise<void> {
    this.cut("with a reset");
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #join(near: Socket): void {
    near.on("error", () => undefined);
    if (this.#refuses) return void near.resetAndDestroy();
    const far = connect({ ...this.#target, allowHalfOpen: true });
    far.on("error", () => undefined);
    const connection: Connection = { near, far, silent: new Set() };
    this.#connections.add(connection);
    this.#pump(connection, "up", near, far);
    this.#pump(connection, "down", far, near);
  }

  #pump(connection: Connection, way: Way, from: Socket, to: Socket): void {
    const { silent } = connection;
    const isLost = () => {
      if (this.#silent) silent.add(way);
      return silent.has(way);
    };
    const pass = (data: Buffer) => void (to.destroyed || to.writableEnded || to.write(data));
    let late: Buffer[] = [];
    const passLate = () => {
      if (late.length > 0 && !isLost()) pass(Buffer.concat(late));
      late = [];
    };
    from.on("data", (data) => {
      if (isLost()) return;
      if (way === "down" && this.#losesNow()) {
        if (this.#loss?.how === "its second half") pass(data.subarray(0, data.length / 2));
        this.#loss = undefined;
        silent.add(way);
        setImmediate(() => this.#end(connection, "with a farewell"));
      } else if (late.length > 0) late.push(data);
      else if (this.#delayMs === 0) pass(data);
      else {
        late = [data];
        setTimeout(passLate, Math.random() * this.#delayMs);
      }
    });
    from.on("end", () => {
      passLate();
      if (!isLost()) to.end();
    });
    from.on("close", () => {
      passLate();
      if (!isLost()) this.#end(connection, "with a farewell");
    });
  }

  #losesNow(): boolean {
    return this.#loss !== undefined && this.#loss.left-- <= 0;
  }

  #end(connection: Connection, how: "with a reset" | "with a farewell"): void {
    this.#connections.delete(connection);
    for (const socket of [connection.near, connection.far]) {
      if (how === "with a reset") socket.resetAndDestroy();
      else socket.destroy();
    }
  }
}
