import { connect, type Socket } from "node:net";

export interface Answered {
  readonly status: number;
  readonly body: string;
}

/** The next request to send, as it goes over the wire, given the answer to the one before on the same connection. */
export type NextRequest = (answered: Answered | undefined) => string | LaterRequest;

/** Sent after a pause. */
export interface LaterRequest {
  readonly afterMs: number;
  readonly request: string;
}

export interface Load {
  readonly perSecond: number;
  readonly statuses: ReadonlyMap<number, number>;
}

/**
 * So many connections, one request under way on each, for so long. On bare sockets, because a full HTTP client takes longer for a
 * request than the servers that are to be compared.
 */
export async function load(
  port: number,
  connections: number,
  forMs: number,
  next: NextRequest | { readonly each: () => NextRequest },
): Promise<Load> {
  const statuses = new Map<number, number>();
  const until = performance.now() + forMs;
  const started = performance.now();
  const nextFor = () => ("each" in next ? next.each() : next);
  await Promise.all(Array.from({ length: connections }, () => speak(port, until, nextFor(), statuses)));
  const seconds = (performance.now() - started) / 1_000;
  const answers = [...statuses.values()].reduce((sum, count) => sum + count, 0);
  return { perSecond: answers / seconds, statuses };
}

function speak(port: number, until: number, next: NextRequest, statuses: Map<number, number>): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket: Socket = connect(port, "127.0.0.1", () => send(next(undefined)));
    const send = (given: string | LaterRequest) => {
      if (typeof given === "string") socket.write(given);
      else setTimeout(() => socket.write(given.request), given.afterMs);
    };
    let received = "";
    socket.setNoDelay(true);
    socket.setEncoding("latin1");
    socket.on("error", reject);
    socket.on("data", (chunk: string) => {
      received += chunk;
      const answered = completeAnswer(received);
      if (answered === undefined) return;
      received = "";
      statuses.set(answered.status, (statuses.get(answered.status) ?? 0) + 1);
      if (performance.now() < until) send(next(answered));
      else {
        socket.destroy();
        resolve();
      }
    });
  });
}

/** Once all of it is there. */
function completeAnswer(text: string): Answered | undefined {
  const end = text.indexOf("\r\n\r\n");
  if (end < 0) return undefined;
  const length = /\r\ncontent-length: (\d+)/i.exec(text.slice(0, end + 2))?.[1] ?? "0";
  if (text.length - end - 4 < Number(length)) return undefined;
  return { status: Number(text.slice(9, 12)), body: text.slice(end + 4) };
}
