import { connect } from "node:net";

export interface RawAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** Sends bytes as they are and gives back everything that came until the server hung up. */
export function speak(url: string, ...pieces: readonly (string | Buffer)[]): Promise<string> {
  return new Promise((resolve, reject) => {
    const { hostname, port } = new URL(url);
    let text = "";
    const socket = connect(Number(port), hostname, () => {
      for (const piece of pieces) socket.write(piece);
    });
    socket.setEncoding("latin1").on("data", (chunk: string) => {
      text += chunk;
    });
    socket.on("close", () => resolve(text)).on("error", reject);
  });
}

/** Sends all of it before it reads a byte, as simple clients do; fails where the server hangs up on it. */
export function sendThenRead(url: string, head: string, body: Buffer): Promise<string> {
  return new Promise((resolve, reject) => {
    const { hostname, port } = new URL(url);
    let text = "";
    const socket = connect({ port: Number(port), host: hostname }, () => {
      socket.pause();
      socket.write(head);
      socket.write(body, () => socket.resume());
    });
    socket.setEncoding("latin1").on("data", (chunk: string) => {
      text += chunk;
    });
    socket.on("close", () => resolve(text)).on("error", reject);
  });
}

/** The last answer in what was read. */
export function parseAnswer(text: string): RawAnswer {
  const [head = "", ...body] = text.slice(text.lastIndexOf("HTTP/1.1 ")).split("\r\n\r\n");
  const [first = "", ...lines] = head.split("\r\n");
  const headers = lines.map((line) => [line.split(":", 1)[0]?.toLowerCase(), line.replace(/^[^:]*:\s*/, "")]);
  return { status: Number(first.split(" ")[1]), headers: Object.fromEntries(headers), body: body.join("\r\n\r\n") };
}
