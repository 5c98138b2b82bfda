import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { setImmediate as turn } from "node:timers/promises";
import { expect, onTestFinished, test } from "vitest";
import { createClient } from "../src/client/index.js";
import { brokerFetch } from "../src/node/broker-fetch.js";
import { KeptConnections, usualKeeping } from "../src/node/kept-connections.js";

const request = { service_id: "s", plan_id: "p", organization_guid: "o", space_guid: "g" };
const done = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}";

/** A server of bare sockets: `answer` is called with each request, its number on its connection, and that of the connection. */
async function brokerOf(answer: (socket: Socket, request: number, connection: number) => void) {
  const [sockets, requests]: [Socket[], string[]] = [[], []];
  const server = createServer((socket) => {
    const connection = sockets.push(socket);
    let count = 0;
    socket.on("error", () => undefined);
    socket.on("data", (data) => {
      requests.push(`${data.toString().split(" ", 1)[0]} over ${connection}`);
      answer(socket, ++count, connection);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(async () => {
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  });
  const { port } = server.address() as AddressInfo;
  const client = createClient({ url: `http://127.0.0.1:${port}`, fetch: brokerFetch() });
  return { client, port, sockets, requests };
}

test("changes go one after the other over one connection", async () => {
  const { client, requests } = await brokerOf((socket) => socket.write(done));
  for (let times = 0; times < 3; times++) await client.provision("i", request);
  await client.deprovision("i", { serviceId: "s", planId: "p" });
  expect(requests).toEqual(["PUT over 1", "PUT over 1", "PUT over 1", "DELETE over 1"]);
});

test("a change that meets the end of a kept connection is lost, and not sent again; those after it have connections of their own", async () => {
  const { client, requests } = await brokerOf((socket, count) => {
    if (count === 2) socket.resetAndDestroy();
    else socket.write(done);
  });
  await client.provision("i", request);
  await expect(client.provision("i", request)).rejects.toMatchObject({ kind: "connection lost", sent: true });
  await client.provision("i", request);
  await client.provision("i", request);
  expect(requests).toEqual(["PUT over 1", "PUT over 1", "PUT over 2", "PUT over 3"]);
});

test("a change is not written to a connection that the broker has ended since the answer, nor to another one that is kept", async () => {
  const { client, sockets, requests } = await brokerOf((socket) => socket.write(done));
  await Promise.all([client.provision("i", request), client.provision("j", request)]);
  const ended = sockets[0]?.end() as Socket;
  await once(ended, "close");
  await client.provision("i", request);
  expect(requests.at(-1)).toBe("PUT over 3");
});

test.each([
  ["says that it closes it", "connection: close"],
  ["says that it keeps it for a second", "keep-alive: timeout=1"],
])("no connection is kept that the broker %s", async (_, header) => {
  const { client, sockets } = await brokerOf((socket) =>
    socket.write(`HTTP/1.1 200 OK\r\n${header}\r\ncontent-length: 2\r\n\r\n{}`),
  );
  for (let times = 0; times < 2; times++) await client.provision("i", request);
  expect(sockets).toHaveLength(2);
});

test("an answer that the broker gives before it has read the whole request ends the connection", async () => {
  const { client, sockets } = await brokerOf((socket, count) => {
    if (count === 1) socket.pause().write("HTTP/1.1 413 Payload Too Large\r\ncontent-length: 2\r\n\r\n{}");
  });
  const large = { ...request, parameters: { text: "x".repeat(16 * 1024 * 1024) } };
  for (let times = 0; times < 2; times++)
    await expect(client.provision("i", large)).rejects.toMatchObject({ status: 413 });
  expect(sockets).toHaveLength(2);
});

/** A connection that stands, and its other end. */
async function connected(): Promise<readonly [Socket, Socket]> {
  const { port, sockets } = await brokerOf(() => undefined);
  const socket = connect(port, "127.0.0.1").on("error", () => undefined);
  await once(socket, "connect");
  while (sockets.length === 0) await turn();
  return [socket, sockets[0] as Socket];
}

test("a change has none that was idle for long; what reads has", async () => {
  const [socket] = await connected();
  const connections = new KeptConnections({ ...usualKeeping, idleForChangesMs: -1 });
  connections.give("o", socket);
  await connections.settle("o");
  expect(connections.take("o", "change")).toBeUndefined();
  expect(connections.take("o", "read")).toBe(socket);
  expect(connections.take("o", "read")).toBeUndefined();
});

test("a change has none in the turn in which it was given back; what reads has", async () => {
  const [socket] = await connected();
  const connections = new KeptConnections();
  connections.give("o", socket);
  expect(connections.take("o", "change")).toBeUndefined();
  await connections.settle("o");
  expect(connections.take("another", "change")).toBeUndefined();
  expect(connections.take("o", "change")).toBe(socket);
});

test("one over which something comes unasked is closed: it would be taken for the answer to the next request", async () => {
  const [socket, other] = await connected();
  const connections = new KeptConnections({ ...usualKeeping, idleMs: 3_600_000 });
  connections.give("o", socket);
  await connections.settle("o");
  other.write(done);
  await once(socket, "close");
  expect(connections.take("o", "read")).toBeUndefined();
});

test("one that nobody uses is closed after its time, and the oldest when there are too many", async () => {
  const [first, second] = [await connected(), await connected()];
  const connections = new KeptConnections({ ...usualKeeping, most: 1 });
  const ended = once(first[1].resume(), "close");
  connections.give("o", first[0]);
  connections.give("o", second[0]);
  await ended;
  expect(connections.take("o", "read")).toBe(second[0]);

  const short = new KeptConnections({ ...usualKeeping, idleMs: 1 });
  const closed = once(second[1].resume(), "close");
  short.give("o", second[0]);
  await closed;
  expect(short.take("o", "read")).toBeUndefined();
});
