import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { describe, expect, onTestFinished, test } from "vitest";
import { stormOf } from "../src/crash/chaos/storm.js";
import type { Need } from "../src/crash/chaos/terms.js";
import { Wire } from "../src/crash/chaos/wire.js";
import { setClockRate } from "../src/crash/clock-rate.js";

const onServer: readonly Need[] = ["a wire", "sessions to end", "entries to refuse", "a server to restart"];
const terms = { forMs: 600_000, processes: 3, leaseMs: 3_000, has: new Set<Need>(["frozen processes", ...onServer]) };

describe("a storm of the chaos suite", () => {
  test("the same seed gives the same storm", () => {
    expect(stormOf({ ...terms, seed: 7 })).toEqual(stormOf({ ...terms, seed: 7 }));
    expect(stormOf({ ...terms, seed: 7 })).not.toEqual(stormOf({ ...terms, seed: 8 }));
  });

  test("it holds everything that can be done to a store, and nothing else", () => {
    const kindsOf = (has: readonly Need[]) =>
      [...new Set(stormOf({ ...terms, seed: 7, has: new Set(has) }).map(({ what }) => what.kind))].sort();
    expect(kindsOf(["frozen processes", "a file"])).toEqual(["freeze", "kill", "rival"]);
    expect(kindsOf(onServer)).toEqual([
      "cut",
      "delay",
      "end sessions",
      "half-close",
      "half-open",
      "kill",
      "lose answer",
      "refuse entries",
      "restart",
      "silence",
    ]);
  });
});

/** A server that answers each thing it is told with the same in capitals, a wire to it, and a way to connect. */
async function wired() {
  const heard: string[] = [];
  const seen: Socket[] = [];
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    seen.push(socket);
    socket.on("error", () => undefined);
    socket.setEncoding("utf8").on("data", (text: string) => {
      heard.push(text);
      socket.write(text.toUpperCase());
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const wire = await Wire.to({ host: "127.0.0.1", port: (server.address() as AddressInfo).port });
  onTestFinished(async () => {
    await wire.close();
    server.close();
    for (const socket of seen) socket.destroy();
  });
  const call = async () => {
    const socket = connect({ port: wire.port, host: "127.0.0.1", allowHalfOpen: true }).setEncoding("utf8");
    socket.on("error", () => undefined);
    onTestFinished(() => void socket.destroy());
    await once(socket, "connect");
    return socket;
  };
  const ask = async (socket: Socket, text: string) => {
    socket.write(text);
    return ((await once(socket, "data")) as string[])[0];
  };
  return { wire, heard, seen, call, ask };
}

/** Also with an error, which `once` would throw. */
function closing(socket: Socket): Promise<unknown> {
  return new Promise((resolve) => socket.once("close", resolve));
}

describe("the wire of the chaos suite", () => {
  test("what is sent comes through, also when it takes longer, then in one piece", async () => {
    const { wire, call, ask } = await wired();
    const socket = await call();
    expect(await ask(socket, "a")).toBe("A");
    wire.delay(20);
    expect(await ask(socket, "b")).toBe("B");
  });

  test("a lost answer: what was asked has happened, the connection breaks, the next one works", async () => {
    const { wire, heard, call, ask } = await wired();
    const socket = await call();
    await ask(socket, "a");
    wire.loseAnswer({ after: 1, how: "all of it" });
    expect(await ask(socket, "b")).toBe("B");
    let answer = "";
    socket.on("data", (text) => {
      answer += String(text);
    });
    socket.write("lost");
    await once(socket, "end");
    expect(heard).toContain("lost");
    expect(answer).toBe("");
    expect(await ask(await call(), "c")).toBe("C");
  });

  test("an answer whose second half is lost", async () => {
    const { wire, call, ask } = await wired();
    const socket = await call();
    wire.loseAnswer({ after: 0, how: "its second half" });
    expect(await ask(socket, "abcd")).toBe("AB");
    await once(socket, "end");
  });

  test("a half-open connection: the server sees its end, the process does not until the end", async () => {
    const { wire, seen, call, ask } = await wired();
    const [oldest, other] = [await call(), await call()];
    await ask(oldest, "a");
    await ask(other, "b");
    const ended = once(seen[0] as Socket, "end");
    const { hit, end } = wire.halfOpen("the oldest");
    await ended;
    expect(hit).toBe(1);
    oldest.write("nobody hears it");
    expect(await ask(other, "c")).toBe("C");
    expect(oldest.readyState).toBe("open");
    const closed = closing(oldest);
    end();
    await closed;
  });

  test("a half-closed connection goes on in the other direction", async () => {
    const { wire, heard, seen, call, ask } = await wired();
    const socket = await call();
    await ask(socket, "a");
    const ended = once(socket, "end");
    expect(wire.halfClose("down")).toBe(1);
    await ended;
    socket.write("still heard");
    await once(seen[0] as Socket, "data");
    expect(heard).toContain("still heard");
  });

  test("silence, a cut and a refusal end connections; afterwards new ones work", async () => {
    const { wire, call, ask } = await wired();
    const silent = await call();
    await ask(silent, "a");
    wire.fallSilent(true);
    silent.write("lost");
    const closed = closing(silent);
    while (wire.fallSilent(true) !== 1) await new Promise(setImmediate);
    await new Promise((resolve) => setTimeout(resolve, 20));
    wire.fallSilent(false);
    await closed;
    const refused = await call();
    await ask(refused, "b");
    const broken = closing(refused);
    expect(wire.refuse(true)).toBe(1);
    await broken;
    wire.refuse(false);
    expect(await ask(await call(), "c")).toBe("C");
  });
});

test("a clock that goes at another rate", () => {
  const real = { wall: Date.now, setTimeout, setInterval };
  const from = process.hrtime.bigint();
  try {
    setClockRate(1_000);
    const begun = performance.now();
    while (process.hrtime.bigint() - from < 20_000_000n);
    expect(performance.now() - begun).toBeGreaterThan(1_000);
  } finally {
    Reflect.deleteProperty(performance, "now"); // The prototype's is behind it.
    Date.now = real.wall;
    Object.assign(globalThis, { setTimeout: real.setTimeout, setInterval: real.setInterval });
  }
});
