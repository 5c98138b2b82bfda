import { once } from "node:events";
import { createServer as createHttpServer } from "node:http";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { createServer as createTlsServer } from "node:tls";
import { generate } from "selfsigned";
import { describe, expect, onTestFinished, test } from "vitest";
import { BrokerAnswerError, type ClientFetch, createClient, receivedOf } from "../src/client/index.js";
import { isNotSent, RequestNotSentError } from "../src/client/not-sent.js";
import { classify } from "../src/index.js";
import { brokerFetch } from "../src/node/broker-fetch.js";
import { brokerThat } from "./broker-double.js";

const request = { service_id: "s", plan_id: "p", organization_guid: "o", space_guid: "g" };
const ids = { serviceId: "s", planId: "p" };
const large = { ...request, parameters: { text: "x".repeat(16 * 1024 * 1024) } };

/** A server of bare sockets. */
async function listening(server: Server, onSocket: (socket: Socket) => void = () => undefined): Promise<number> {
  const sockets = new Set<Socket>();
  server.on("connection", (socket: Socket) => {
    sockets.add(socket);
    socket.on("error", () => undefined);
    socket.on("close", () => sockets.delete(socket));
    onSocket(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(async () => {
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  });
  return (server.address() as AddressInfo).port;
}

const sockets = async (onSocket: (socket: Socket) => void) =>
  `http://127.0.0.1:${await listening(createServer(), onSocket)}`;

/** A certificate of its own authority. */
async function certified(name: string): Promise<{ readonly key: string; readonly cert: string }> {
  const altName = /^[0-9.]+$/.test(name) ? ({ type: 7, ip: name } as const) : ({ type: 2, value: name } as const);
  const made = await generate([{ name: "commonName", value: name }], {
    extensions: [{ name: "subjectAltName", altNames: [altName] }],
  });
  return { key: made.private, cert: made.cert };
}

interface Way {
  readonly name: string;
  readonly fetch?: ClientFetch;
}
const exact: Way = { name: "the fetch for brokers", fetch: brokerFetch() };
const builtIn: Way = { name: "the built-in fetch" };
const ways = [exact, builtIn];

async function provisioned(url: string, way: Way, body: typeof request = request, timeoutMs = 20_000) {
  const client = createClient({ url, timeoutMs, ...(way.fetch !== undefined && { fetch: way.fetch }) });
  const came = await client.provision("i", body).catch((error: unknown) => {
    if (error instanceof BrokerAnswerError) return error;
    throw error;
  });
  const kind = came instanceof BrokerAnswerError ? came.kind : came.status;
  return { kind, received: receivedOf(came).kind, class: classify("provision", receivedOf(came)).class };
}

const notSent = { kind: "no connection", received: "not sent", class: "not sent" };
const lost = { kind: "connection lost", received: "lost", class: "unknown" };

describe.each(ways)("not sent, by $name", (way) => {
  test("nobody listens", async () => {
    const server = createServer();
    const port = await listening(server);
    await new Promise((resolve) => server.close(resolve));
    expect(await provisioned(`http://127.0.0.1:${port}`, way)).toEqual(notSent);
  });

  test("nobody listens at any of the addresses of a name", async () => {
    const server = createServer();
    const port = await listening(server);
    await new Promise((resolve) => server.close(resolve));
    expect(await provisioned(`http://localhost:${port}`, way)).toEqual(notSent);
  });

  test("the name has no address", async () => {
    expect(await provisioned("http://no-such-broker.invalid", way)).toEqual(notSent);
  });

  test("the URL is none", async () => {
    expect(await provisioned("http://[", way)).toEqual(notSent);
  });

  test("the certificate is not trusted", async () => {
    const requests: string[] = [];
    const server = createTlsServer(await certified("127.0.0.1"), (socket) => {
      socket.on("data", (data) => requests.push(data.toString()));
      socket.on("error", () => undefined);
    });
    expect(await provisioned(`https://127.0.0.1:${await listening(server)}`, way)).toEqual(notSent);
    expect(requests).toEqual([]);
  });
});

describe("not sent, as only the fetch for brokers can tell", () => {
  test("the certificate is for another name", async () => {
    const { key, cert } = await certified("broker.example");
    const port = await listening(createTlsServer({ key, cert }));
    const way = { name: "", fetch: brokerFetch({ ca: cert }) };
    expect(await provisioned(`https://127.0.0.1:${port}`, way)).toEqual(notSent);
  });

  test("the connection breaks while it is being secured", async () => {
    const port = await listening(createServer(), (socket) => socket.once("data", () => socket.resetAndDestroy()));
    expect(await provisioned(`https://127.0.0.1:${port}`, exact)).toEqual(notSent);
  });

  test("what listens does not speak TLS", async () => {
    const port = await listening(createServer(), (socket) => socket.end("HTTP/1.1 400 Bad Request\r\n\r\n"));
    expect(await provisioned(`https://127.0.0.1:${port}`, exact)).toEqual(notSent);
  });

  test("the time is up while the connection is being secured", async () => {
    const port = await listening(createServer());
    expect(await provisioned(`https://127.0.0.1:${port}`, exact, request, 200)).toEqual({
      ...notSent,
      kind: "timed out",
    });
  });

  test("the caller gave up before there was a connection", async () => {
    const port = await listening(createServer());
    const gaveUp = new AbortController();
    const call = createClient({ url: `https://127.0.0.1:${port}`, fetch: brokerFetch() });
    const asked = call.provision("i", request, { signal: gaveUp.signal });
    gaveUp.abort();
    await expect(asked).rejects.toMatchObject({ kind: "called off", sent: false, status: null });
    await expect(call.provision("i", request, { signal: gaveUp.signal })).rejects.toMatchObject({ sent: false });
  });
});

describe.each(ways)("lost after bytes were sent, by $name", (way) => {
  test("the broker resets the connection when it has read the request", async () => {
    const url = await sockets((socket) => socket.once("data", () => socket.resetAndDestroy()));
    expect(await provisioned(url, way)).toEqual(lost);
  });

  test("the broker ends the connection without an answer", async () => {
    const url = await sockets((socket) => socket.once("data", () => socket.end()));
    expect(await provisioned(url, way)).toEqual(lost);
  });

  test("the broker resets the connection as soon as it stands", async () => {
    const url = await sockets((socket) => socket.resetAndDestroy());
    expect((await provisioned(url, way)).class).toMatch(/^(unknown|not sent)$/);
  });

  test("the connection breaks when half of the body was written", async () => {
    const url = await sockets((socket) => {
      let bytes = 0;
      socket.on("data", (chunk) => {
        bytes += chunk.length;
        if (bytes > 1_048_576) socket.resetAndDestroy();
      });
    });
    expect(await provisioned(url, way, large)).toEqual(lost);
  });

  test("the caller gives up when the broker has read the beginning and reads no more", async () => {
    const gaveUp = new AbortController();
    const url = await sockets((socket) =>
      socket.once("data", () => {
        socket.pause();
        gaveUp.abort();
      }),
    );
    const client = createClient({ url, ...(way.fetch !== undefined && { fetch: way.fetch }) });
    const asked = client.provision("i", large, { signal: gaveUp.signal });
    await expect(asked).rejects.toMatchObject({ kind: "called off", sent: true, status: null });
  });

  test.each([
    ["an error of connecting", Object.assign(new Error("refused"), { syscall: "connect" })],
    [
      "an error with such a cause",
      new Error("over", { cause: Object.assign(new Error(), { code: "CERT_HAS_EXPIRED" }) }),
    ],
    ["an earlier call that was not sent", new RequestNotSentError("an earlier one")],
    ["errors of connecting", new AggregateError([Object.assign(new Error(), { syscall: "getaddrinfo" })])],
  ])("the caller gives up because of %s, which says nothing of this call", async (_, reason) => {
    const gaveUp = new AbortController();
    const url = await sockets((socket) => socket.once("data", () => gaveUp.abort(reason)));
    const client = createClient({ url, ...(way.fetch !== undefined && { fetch: way.fetch }) });
    const asked = client.provision("i", request, { signal: gaveUp.signal });
    await expect(asked).rejects.toMatchObject({ kind: "called off", sent: true, status: null });
  });

  test("the caller gives up for such a reason in the middle of the answer", async () => {
    const gaveUp = new AbortController();
    const { url } = await brokerThat((response) => {
      response.writeHead(201).write("{", () => gaveUp.abort(new RequestNotSentError("an earlier one")));
    });
    const client = createClient({ url, ...(way.fetch !== undefined && { fetch: way.fetch }) });
    const asked = client.provision("i", request, { signal: gaveUp.signal });
    await expect(asked).rejects.toMatchObject({ kind: "called off", sent: true, status: null });
  });

  test("no answer comes in time", async () => {
    const url = await sockets((socket) => socket.resume());
    expect(await provisioned(url, way, request, 3_000)).toEqual({ ...lost, kind: "timed out" });
  });

  test("the connection breaks in the middle of the answer", async () => {
    const url = await sockets((socket) =>
      socket.once("data", () => {
        socket.write('HTTP/1.1 201 Created\r\ncontent-length: 100\r\n\r\n{"dash', () => socket.resetAndDestroy());
      }),
    );
    expect(await provisioned(url, way)).toEqual(lost);
  });

  test("what answers does not speak HTTP", async () => {
    const url = await sockets((socket) => socket.once("data", () => socket.end("220 mail ready\r\n")));
    expect(await provisioned(url, way)).toEqual(lost);
  });
});

describe("the fetch for brokers", () => {
  test("an answer that comes before all of the body was written counts", async () => {
    const url = await sockets((socket) =>
      socket.once("data", () => {
        socket.pause();
        socket.write("HTTP/1.1 413 Payload Too Large\r\ncontent-length: 2\r\n\r\n{}");
      }),
    );
    expect(await provisioned(url, exact, large)).toEqual({ kind: "answer", received: "answer", class: "rejected" });
  });

  test("a broker that closes every connection after its answer, unasked, makes no change lost", async () => {
    const seen: (string | undefined)[] = [];
    const server = createHttpServer((asked, response) => {
      seen.push(asked.method);
      asked.resume();
      asked.on("end", () => response.end('{"services":[]}', () => asked.socket.resetAndDestroy()));
    });
    const url = `http://127.0.0.1:${await listening(server)}`;
    const client = createClient({ url, fetch: brokerFetch() });
    for (let round = 0; round < 20; round++) {
      await client.catalog();
      await client.provision("i", request);
    }
    expect(seen).toEqual(Array.from({ length: 20 }, () => ["GET", "PUT"]).flat());
  });

  test("what reads goes over one connection, and again over a new one when that was closed as it was written to", async () => {
    let connections = 0;
    // The second request on a connection is met by its end, as when it comes in the moment in which the broker closes it.
    const url = await sockets((socket) => {
      connections++;
      let requests = 0;
      socket.on("data", () => {
        if (++requests === 3) return void socket.resetAndDestroy();
        socket.write('HTTP/1.1 200 OK\r\ncontent-length: 15\r\n\r\n{"services":[]}');
      });
    });
    const client = createClient({ url, fetch: brokerFetch() });
    await client.catalog();
    await client.catalog();
    expect(connections).toBe(1);
    expect((await client.catalog()).catalog).toEqual({ services: [] });
    expect(connections).toBe(2);
  });

  test("a certificate of an authority that it was told of is trusted, and the request arrives whole", async () => {
    const { key, cert } = await certified("127.0.0.1");
    const bodies: string[] = [];
    const server = createTlsServer({ key, cert });
    const http = createHttpServer((asked, response) => {
      let body = "";
      asked.setEncoding("utf8").on("data", (chunk: string) => {
        body += chunk;
      });
      asked.on("end", () => {
        bodies.push(body);
        response.writeHead(202, { "retry-after": "7" }).end('{"operation":"o"}');
      });
    });
    server.on("secureConnection", (socket) => http.emit("connection", socket));
    const url = `https://127.0.0.1:${await listening(server)}`;
    const client = createClient({ url, fetch: brokerFetch({ ca: cert }) });
    expect(await client.provision("i", large)).toMatchObject({ kind: "accepted", operation: "o", retryAfterMs: 7_000 });
    expect(bodies).toEqual([JSON.stringify(large)]);
  });

  test("a status that has no body, and one that is none", async () => {
    for (const [status, received] of [
      [204, { kind: "answer", status: 204 }],
      [304, { kind: "answer", status: 304 }],
      [999, { kind: "lost" }],
    ] as const) {
      const { url } = await brokerThat({ status });
      const client = createClient({ url, fetch: brokerFetch() });
      const came = await client.provision("i", request).catch((error: unknown) => error as BrokerAnswerError);
      expect(receivedOf(came)).toMatchObject(received);
    }
  });

  test("a broker that changes to another protocol has not answered, and its connection is closed", async () => {
    const closed: Promise<unknown>[] = [];
    const url = await sockets((socket) => {
      closed.push(once(socket, "close"));
      socket.once("data", () => {
        socket.write("HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: other\r\n\r\n");
      });
    });
    const client = createClient({ url, fetch: brokerFetch() });
    const asked = [client.provision("i", request), client.deprovision("i", ids), client.catalog()];
    for (const came of await Promise.all(asked.map((one) => one.catch((error: unknown) => error))))
      expect(came).toMatchObject({ kind: "connection lost", sent: true, status: null });
    await Promise.all(closed);
    expect(closed).toHaveLength(3);
  });

  test("what reads is not asked again because a kept connection changes to another protocol", async () => {
    let requests = 0;
    const url = await sockets((socket) =>
      socket.on("data", () => {
        socket.write(
          ++requests === 1
            ? 'HTTP/1.1 200 OK\r\ncontent-length: 15\r\n\r\n{"services":[]}'
            : "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: other\r\n\r\n",
        );
      }),
    );
    const client = createClient({ url, fetch: brokerFetch() });
    await client.catalog();
    await expect(client.catalog()).rejects.toMatchObject({ kind: "connection lost" });
    expect(requests).toBe(2);
  });
});

test("a call that is called off in the moment in which its connection stands ends, and with it the connection", async () => {
  const gaveUp = new AbortController();
  const closed: Promise<unknown>[] = [];
  const url = await sockets((socket) => {
    closed.push(once(socket.resume(), "close"));
    gaveUp.abort();
  });
  const asked = createClient({ url, fetch: brokerFetch() }).provision("i", request, { signal: gaveUp.signal });
  await expect(asked).rejects.toMatchObject({ kind: "called off", status: null });
  await Promise.all(closed);
});

describe("what an error proves", () => {
  const failed = (cause: object): Error => new TypeError("fetch failed", { cause: Object.assign(new Error(), cause) });

  test("an error while connecting or looking up a name proves that nothing was sent; the same one later does not", () => {
    expect(isNotSent(failed({ code: "EHOSTUNREACH", syscall: "connect" }))).toBe(true);
    expect(isNotSent(failed({ code: "EHOSTUNREACH", syscall: "write" }))).toBe(false);
    expect(isNotSent(failed({ code: "ETIMEDOUT", syscall: "connect" }))).toBe(true);
    expect(isNotSent(failed({ code: "ETIMEDOUT", syscall: "read" }))).toBe(false);
    expect(isNotSent(failed({ code: "EAI_AGAIN", syscall: "getaddrinfo" }))).toBe(true);
    expect(isNotSent(failed({ code: "UND_ERR_CONNECT_TIMEOUT" }))).toBe(true);
    expect(isNotSent(failed({ code: "UND_ERR_HEADERS_TIMEOUT" }))).toBe(false);
  });

  test("of several addresses, all must have failed so", () => {
    const refused = Object.assign(new Error(), { syscall: "connect" });
    const reset = Object.assign(new Error(), { syscall: "read" });
    expect(isNotSent(new AggregateError([refused, refused]))).toBe(true);
    expect(isNotSent(new AggregateError([refused, reset]))).toBe(false);
    expect(isNotSent(new AggregateError([]))).toBe(false);
  });

  test("once the call is called off, only a fetch that says so itself proves it", () => {
    const refused = Object.assign(new Error(), { syscall: "connect" });
    const reason = new RequestNotSentError("an earlier one", { cause: refused });
    const off = AbortSignal.abort(reason);
    expect(isNotSent(new RequestNotSentError("this one", { cause: reason }), off)).toBe(true);
    for (const thrown of [reason, refused, new Error("aborted", { cause: reason }), new AggregateError([reason])])
      expect(isNotSent(thrown, off)).toBe(false);
    expect(isNotSent(refused, new AbortController().signal)).toBe(true);
  });

  test("what is no error, or goes round in circles, proves nothing", () => {
    const circle: Error = new Error("circle");
    circle.cause = circle;
    for (const thrown of [undefined, null, "connect", { syscall: "connect" }, new Error(), circle])
      expect(isNotSent(thrown)).toBe(false);
  });
});
