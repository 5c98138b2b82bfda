import { connect, createServer, type Socket } from "node:net";

/** Something that only one process of this machine holds at a time. */
export interface Holding {
  release(): Promise<void>;
}

/**
 * Takes what is known by this name, or nothing if another process has it. It is a socket without a file, so it is free again as soon as its
 * holder has ended, however it ended.
 */
export async function tryToHold(name: string): Promise<Holding | undefined> {
  const waiting = new Set<Socket>();
  const server = createServer((connection) => {
    waiting.add(connection.unref());
    connection.on("error", () => {});
    connection.once("close", () => waiting.delete(connection));
    connection.resume();
  });
  return new Promise((resolve, reject) => {
    server.once("error", (error: NodeJS.ErrnoException) =>
      error.code === "EADDRINUSE" ? resolve(undefined) : reject(error),
    );
    server.listen(socketOf(name), () => {
      server.unref();
      resolve({
        release: () =>
          new Promise((released) => {
            server.close(() => released());
            for (const connection of waiting) connection.destroy();
          }),
      });
    });
  });
}

/** Waits until it can be taken. `waits` is called once if another has it now. */
export async function hold(name: string, waits: () => void): Promise<Holding> {
  let held = await tryToHold(name);
  if (held === undefined) waits();
  while (held === undefined) {
    await letGo(name);
    held = await tryToHold(name);
  }
  return held;
}

/** A name in Linux' own space of sockets, which is no path. */
function socketOf(name: string): string {
  return `\0osbert/${name}`;
}

/** The holder never speaks: the connection ends when it lets go, or when there is none. */
function letGo(name: string): Promise<void> {
  return new Promise((resolve) => {
    const connection = connect(socketOf(name));
    connection.on("error", () => {});
    connection.once("close", () => resolve());
    connection.resume();
  });
}
