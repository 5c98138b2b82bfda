import { createServer, type IncomingMessage, METHODS } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { Readable } from "node:stream";
import { gzipSync } from "node:zlib";
import { memoryStore } from "@osbert/journal/memory";
import { fastify } from "fastify";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { brokerPlugin, fetchHandler, type HandlerOptions, largestBody, routes, serve } from "../src/http/index.js";
import { type Broker, createBroker } from "../src/index.js";
import type { BrokerEvent } from "../src/observe/index.js";
import { bindBody, lab, provisionBody } from "./lab.js";
import { parseAnswer, sendThenRead, speak } from "./raw-http.js";

const identity = "x-broker-api-request-identity";
const credentials = [{ username: "platform", password: "secret" }];
const authorization = `Basic ${Buffer.from("platform:secret").toString("base64")}`;

type Server = (broker: Broker, options: HandlerOptions) => Promise<{ url: string; close: () => Promise<void> }>;

/** The ways in which a broker gets to a socket. */
const servers: Readonly<Record<string, Server>> = {
  "the server": async (broker, options) => serve(broker, { ...options, port: 0 }),
  "the plugin in an app": async (broker, options) => {
    const app = fastify();
    await app.register(brokerPlugin, { ...options, broker, prefix: "/broker" });
    const url = await app.listen({ port: 0, host: "127.0.0.1" });
    return { url: `${url}/broker`, close: () => app.close() };
  },
  "the fetch-style handler": async (broker, options) => {
    const handle = fetchHandler(broker, options);
    const server = createServer((incoming, outgoing) => {
      void handle(requestOf(incoming)).then(async (response) => {
        const bytes = Buffer.from(await response.arrayBuffer());
        outgoing.writeHead(response.status, {
          "content-length": bytes.length,
          ...Object.fromEntries(response.headers),
        });
        outgoing.end(bytes);
      });
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const close = () => new Promise<void>((resolve) => void server.close(() => resolve()));
    return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, close };
  },
};

/** As the servers of fetch-style handlers do it. */
function requestOf(incoming: IncomingMessage): Request {
  const { method = "", url = "", rawHeaders } = incoming;
  const headers = new Headers();
  for (let at = 0; at < rawHeaders.length; at += 2) headers.append(rawHeaders[at] ?? "", rawHeaders[at + 1] ?? "");
  const hasBody = method !== "GET" && method !== "HEAD";
  return new Request(`http://broker.example${url}`, {
    method,
    headers,
    ...(hasBody && { body: Readable.toWeb(incoming), duplex: "half" }),
  } as RequestInit);
}

interface Asked {
  readonly method: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Buffer;
}

async function served(name: string) {
  const laboratory = lab();
  const events: BrokerEvent[] = [];
  const broker = createBroker({
    services: [laboratory.service],
    store: memoryStore(),
    observe: (event) => void events.push(event),
  });
  await broker.start();
  const server = await (servers[name] as Server)(broker, { credentials });
  onTestFinished(async () => {
    await server.close();
    await broker.stop({ drainMs: 0 });
  });
  const { pathname } = new URL(server.url);
  const prefix = pathname === "/" ? "" : pathname;
  const head = ({ method, path, headers = {} }: Asked): string => {
    const all = { host: "broker.example", "x-broker-api-version": "2.17", authorization, ...headers };
    const lines = Object.entries(all).flatMap(([header, value]) => (value === "" ? [] : [`${header}: ${value}`]));
    return `${method} ${prefix}${path} HTTP/1.1\r\n${lines.join("\r\n")}\r\n\r\n`;
  };
  const ask = async (asked: Asked) => {
    const { body = "", headers = {} } = asked;
    const length = Buffer.byteLength(body) === 0 ? {} : { "content-length": String(Buffer.byteLength(body)) };
    const sent = head({ ...asked, headers: { connection: "close", ...length, ...headers } });
    return parseAnswer(await speak(server.url, sent, body));
  };
  /** The ids that the observers were told. */
  const logged = () => events.flatMap((event) => (event.kind === "request answered" ? [event.requestId] : []));
  return { laboratory, broker, url: server.url, head, ask, logged };
}

const put = { method: "PUT", path: "/v2/service_instances/i1" };
const json = { "content-type": "application/json" };
const once = { ...json, connection: "close" };
const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
const names = Object.keys(servers);

/** A body that is valid, but for its size. */
function bodyOf(bytes: number): Buffer {
  const frame = JSON.stringify({ ...provisionBody, x: "" }).length;
  return Buffer.from(JSON.stringify({ ...provisionBody, x: "y".repeat(bytes - frame) }));
}

describe.each(names)("%s: methods", (name) => {
  test("every method that a path does not have is a 405 with Allow, in the words of a broker", async () => {
    const { ask } = await served(name);
    // A fetch-style request cannot have these two.
    const impossible = name.startsWith("the fetch") ? ["TRACE", "CONNECT"] : name === "the server" ? [] : ["CONNECT"];
    const paths = [...new Set(routes.map(([, path]) => path))];
    for (const path of paths) {
      const offered = routes.filter(([, route]) => route === path).map(([method]) => method as string);
      for (const method of METHODS.filter((each) => !offered.includes(each) && !impossible.includes(each))) {
        if (method === "HEAD" && offered.includes("GET")) continue;
        const answer = await ask({ method, path: path.replace(":instance", "i").replace(":binding", "b") });
        expect(answer, `${method} ${path}`).toMatchObject({
          status: 405,
          headers: { allow: offered.join(", "), [identity]: expect.stringMatching(uuid) },
        });
        if (method !== "HEAD") {
          const { error, description } = JSON.parse(answer.body) as Record<string, unknown>;
          const possible = `${offered.join(", ")} ${offered.length === 1 ? "is" : "are"}`;
          expect([error, description]).toEqual(["MethodNotAllowed", `${method} is not possible here; ${possible}`]);
        }
      }
    }
  });

  test("so it is with a body, of a type or of none", async () => {
    const { ask } = await served(name);
    for (const method of ["QUERY", "POST", "PROPFIND", "DELETE"]) {
      for (const type of ["", "application/json", "text/plain", "no type at all"]) {
        const asked = { method, path: "/v2/catalog", headers: { "content-type": type }, body: "{}" };
        const answer = await ask(asked);
        // Fastify refuses what is no media type before anyone is asked.
        const isUnreadable = type === "no type at all" && answer.status === 400;
        expect(answer.status, `${method} ${type}`).toBe(isUnreadable ? 400 : 405);
        if (!isUnreadable) expect(answer.headers.allow).toBe("GET");
        expect(JSON.parse(answer.body)).toEqual({ error: expect.any(String), description: expect.any(String) });
      }
    }
  });

  test("HEAD is answered with the type and the length of what GET is answered with", async () => {
    const { ask } = await served(name);
    const asked: (readonly [string, Readonly<Record<string, string>>])[] = [
      ["/v2/catalog", {}],
      ["/v2/service_instances/never", {}],
      ["/v2/catalog", { authorization: "" }],
    ];
    // An app's own refusals are the app's.
    if (name === "the server") asked.push(["/v2/service_instances/%zz", {}], ["/v2/catalog", { host: "" }]);
    for (const [path, headers] of asked) {
      const [got, head] = [await ask({ method: "GET", path, headers }), await ask({ method: "HEAD", path, headers })];
      expect(head, path).toMatchObject({
        status: got.status,
        body: "",
        headers: {
          "content-type": got.headers["content-type"],
          "content-length": String(Buffer.byteLength(got.body)),
        },
      });
    }
  });

  test("strangers are not told what is possible where", async () => {
    const { ask } = await served(name);
    for (const method of ["POST", "PROPFIND"])
      expect(await ask({ method, path: "/v2/catalog", headers: { authorization: "" } })).toMatchObject({ status: 401 });
  });
});

describe("methods that are none", () => {
  test.each(["get", "Get", "put", "FOO", "QUERYX", "x-y", "G"])(
    "%s is a 405 with Allow, and the request's identity",
    async (method) => {
      const { ask, logged } = await served("the server");
      for (const [path, allow] of [
        ["/v2/catalog", "GET"],
        ["/v2/catalog?a=b", "GET"],
        ["/v2/service_instances/i", "PUT, GET, PATCH, DELETE"],
      ] as const) {
        const answer = await ask({ method, path, headers: { [identity]: "nonsense-1" } });
        expect(answer).toMatchObject({ status: 405, headers: { allow, [identity]: "nonsense-1" } });
        expect(JSON.parse(answer.body)).toMatchObject({ error: "MethodNotAllowed" });
        expect(logged()).toContain("nonsense-1");
      }
      expect(await ask({ method, path: "/nowhere" })).toMatchObject({ status: 404 });
      expect(await ask({ method: "GET", path: "/v2/catalog" })).toMatchObject({ status: 200 });
    },
  );

  test("one behind a request that is fine does not borrow its method", async () => {
    const { url, head } = await served("the server");
    const fine = head({ method: "GET", path: "/v2/catalog" });
    const text = await speak(url, fine + head({ method: "nonsense", path: "/v2/service_instances/i" }));
    expect(text).toContain("nonsense is not possible here; PUT, GET, PATCH, DELETE are");
  });
});

describe.each(names)("%s: request identity", (name) => {
  const refusals: readonly (Asked & { readonly status: number })[] = [
    { method: "GET", path: "/v2/catalog", status: 200 },
    { method: "GET", path: "/v2/catalog", headers: { authorization: "" }, status: 401 },
    { method: "GET", path: "/v2/catalog", headers: { "x-broker-api-version": "" }, status: 400 },
    { method: "GET", path: "/v2/catalog", headers: { "x-broker-api-version": "1.0" }, status: 412 },
    { method: "GET", path: "/v2/service_instances/%zz", status: 400 },
    { method: "GET", path: "/v2/nowhere", status: 404 },
    { ...put, headers: json, body: "{", status: 400 },
    { ...put, headers: json, body: JSON.stringify(provisionBody), status: 201 },
    { ...put, headers: json, body: bodyOf(largestBody + 1), status: 413 },
    { ...put, headers: { "content-type": "no type at all" }, body: "{}", status: 400 },
  ];

  test("comes back on every answer, also on those that are given before the route is known", async () => {
    const { ask, logged } = await served(name);
    for (const [index, { status, ...asked }] of refusals.entries()) {
      const id = `request ${index}`;
      const answer = await ask({ ...asked, headers: { ...asked.headers, [identity]: id } });
      // In an app of one's own, a path that is badly encoded is the app's business.
      if (name === "the plugin in an app" && asked.path.includes("%zz")) continue;
      expect(answer, `${asked.method} ${asked.path}`).toMatchObject({ status, headers: { [identity]: id } });
      expect(logged()).toContain(id);
    }
  });

  test("is made where the platform sends none, or what is none, logged and answered", async () => {
    const { ask, logged, broker } = await served(name);
    for (const { status, ...asked } of refusals) {
      if (name === "the plugin in an app" && asked.path.includes("%zz")) continue;
      const answer = await ask(asked);
      expect(answer, `${asked.method} ${asked.path}`).toMatchObject({
        status,
        headers: { [identity]: expect.stringMatching(uuid) },
      });
      expect(logged()).toContain(answer.headers[identity]);
    }
    const long = await ask({ method: "GET", path: "/v2/catalog", headers: { [identity]: "x".repeat(300) } });
    expect(long.headers[identity]).toMatch(uuid);
    expect(new Set(logged()).size).toBe(logged().length);
    const [entry] = await broker.journal.entries("/i1");
    expect(logged()).toContain(entry?.requestId);
  });
});

test("bytes that are no HTTP are answered with the identity that stands in them, or a new one", async () => {
  const { url, logged } = await served("the server");
  const broken = `GET /v2/catalog HTTP/1.1\r\n${identity}: in-the-bytes\r\nbro ken: x\r\n\r\n`;
  expect(parseAnswer(await speak(url, broken))).toMatchObject({ status: 400, headers: { [identity]: "in-the-bytes" } });
  const nonsense = parseAnswer(await speak(url, "\u0001\u0002\r\n\r\n"));
  expect(nonsense).toMatchObject({ status: 400, headers: { [identity]: expect.stringMatching(uuid) } });
  expect(logged()).toEqual(["in-the-bytes", nonsense.headers[identity]]);
});

describe.each(names)("%s: bodies", (name) => {
  test("a body that says it is compressed is refused, whether it is or not", async () => {
    const { ask, laboratory } = await served(name);
    const text = JSON.stringify(provisionBody);
    for (const encoding of ["gzip", "GZIP", "br", "gzip, identity", "nonsense"]) {
      for (const body of [text, gzipSync(text)]) {
        const answer = await ask({ ...put, headers: { ...json, "content-encoding": encoding }, body });
        expect(answer.status).toBe(400);
        expect(JSON.parse(answer.body).description).toContain("Content-Encoding");
      }
    }
    expect(laboratory.done).toEqual([]);
    expect(await ask({ ...put, headers: { ...json, "content-encoding": "identity" }, body: text })).toMatchObject({
      status: 201,
    });
  });

  test("whoever sends too much, and all of it before reading, reads a 413", async () => {
    const { url, head, ask } = await served(name);
    for (const bytes of [largestBody + 1, 6 * largestBody]) {
      const headers = { ...once, "content-length": String(bytes) };
      const answer = parseAnswer(await sendThenRead(url, head({ ...put, headers }), bodyOf(bytes)));
      expect(answer.status).toBe(413);
      expect(JSON.parse(answer.body).description).toContain(String(largestBody));
    }
    expect(await ask({ method: "GET", path: "/v2/catalog" })).toMatchObject({ status: 200 });
  });

  test("so does one who does not say how much it will be", async () => {
    const { url, head } = await served(name);
    const headers = { ...once, "transfer-encoding": "chunked" };
    const piece = Buffer.from(`10000\r\n${"y".repeat(0x10000)}\r\n`);
    const body = Buffer.concat([...Array.from({ length: 80 }, () => piece), Buffer.from("0\r\n\r\n")]);
    expect(parseAnswer(await sendThenRead(url, head({ ...put, headers }), body)).status).toBe(413);
  });

  test("a stranger with a large body reads a 401", async () => {
    const { url, head } = await served(name);
    const bytes = 6 * largestBody;
    const headers = { ...once, authorization: "", "content-length": String(bytes) };
    expect(parseAnswer(await sendThenRead(url, head({ ...put, headers }), bodyOf(bytes))).status).toBe(401);
    const wrong = { ...headers, authorization: `Basic ${Buffer.from("platform:wrong").toString("base64")}` };
    expect(parseAnswer(await sendThenRead(url, head({ ...put, headers: wrong }), bodyOf(bytes))).status).toBe(401);
  });

  test("whoever announces too much and then sends no more reads a 413, and is not waited for", async () => {
    const { url, head } = await served(name);
    const headers = { ...once, "content-length": String(6 * largestBody) };
    expect(parseAnswer(await speak(url, head({ ...put, headers }), "{")).status).toBe(413);
  }, 30_000);

  test("what is sent without end is not read without end", async () => {
    const { url, head, ask } = await served(name);
    const { port } = new URL(url);
    const piece = Buffer.from(`10000\r\n${"y".repeat(0x10000)}\r\n`);
    const sent = await new Promise<number>((resolve) => {
      const socket = connect(Number(port), "127.0.0.1");
      socket.on("error", () => undefined).on("close", () => resolve(socket.bytesWritten));
      socket.write(head({ ...put, headers: { ...once, "transfer-encoding": "chunked" } }));
      const more = (): void => {
        while (socket.writable && socket.write(piece));
      };
      socket.on("drain", more).on("data", () => undefined);
      more();
    });
    // The bound, and what buffers on the way hold.
    expect(sent).toBeLessThan(64 * 1_048_576);
    expect(await ask({ method: "GET", path: "/v2/catalog" })).toMatchObject({ status: 200 });
  });

  test("a refusal of a small body leaves the connection to the next request", async () => {
    const { url, head } = await served(name);
    const body = JSON.stringify(provisionBody);
    const headers = { ...json, "content-length": String(Buffer.byteLength(body)) };
    const refused = head({ ...put, headers: { ...headers, "x-broker-api-version": "1.0" } }) + body;
    const taken = head({ ...put, headers: { ...headers, connection: "close" } }) + body;
    const text = await speak(url, refused, taken);
    expect(text.match(/HTTP\/1\.1 \d+/g)).toEqual(["HTTP/1.1 412", "HTTP/1.1 201"]);
  });

  test("a number that no computer holds is refused, wherever it stands; one that looks like it is kept", async () => {
    const { ask, broker, laboratory } = await served(name);
    const body = (parameters: string) =>
      JSON.stringify({ ...provisionBody, plan_id: "plan-large" }).replace("}", `,"parameters":${parameters}}`);
    for (const number of ["1e999", "-1E+999", "1e0309", `1${"0".repeat(309)}`, `${"9".repeat(250)}e99`]) {
      for (const parameters of [`{"n":${number}}`, `{"a":[{"n":${number}}]}`]) {
        const answer = await ask({ ...put, headers: json, body: body(parameters) });
        expect(answer.status, number.slice(0, 20)).toBe(400);
        expect(JSON.parse(answer.body).description).toContain("number");
      }
    }
    expect(laboratory.done).toEqual([]);
    const kept = { n: 1e308, small: 0, text: "1e999", id: "0e999999-0000", long: `${"9".repeat(300)}` };
    const text = body(JSON.stringify(kept).replace('"small":0', '"small":1e-999'));
    expect(await ask({ ...put, headers: json, body: text })).toMatchObject({ status: 201 });
    const resource = await broker.journal.read("/i1", ["instance"]);
    expect(resource?.parts.get("instance")).toMatchObject({ parameters: kept });
  });

  test("two Authorization headers are refused, in either order", async () => {
    const { url, head, ask } = await served(name);
    const wrong = `Basic ${Buffer.from("platform:wrong").toString("base64")}`;
    for (const [first, second] of [
      [authorization, wrong],
      [wrong, authorization],
      [authorization, authorization],
      [authorization, "Bearer a.b.c"],
    ] as const) {
      const twice = head({
        method: "GET",
        path: "/v2/catalog",
        headers: { authorization: first, connection: "close" },
      });
      const text = await speak(url, twice.replace("\r\n\r\n", `\r\nAUTHORIZATION: ${second}\r\n\r\n`));
      expect(parseAnswer(text).status).toBe(400);
      expect(parseAnswer(text).body).toContain("Authorization must be sent once");
    }
    expect(await ask({ method: "GET", path: "/v2/catalog" })).toMatchObject({ status: 200 });
  });

  test("a binding is made and deleted over the same wire", async () => {
    const { ask } = await served(name);
    await ask({ ...put, headers: json, body: JSON.stringify(provisionBody) });
    const binding = { method: "PUT", path: `${put.path}/service_bindings/b1` };
    expect(await ask({ ...binding, headers: json, body: JSON.stringify(bindBody) })).toMatchObject({ status: 201 });
    const query = "?service_id=svc-1&plan_id=plan-small";
    expect(await ask({ method: "DELETE", path: `${binding.path}${query}`, body: "{}" })).toMatchObject({ status: 200 });
  });
});

test("what Node would refuse by itself is answered like everything else", async () => {
  const { url, head } = await served("the server");
  const asked = { method: "GET", path: "/v2/catalog", headers: { connection: "close", [identity]: "request-7" } };
  const hostless = parseAnswer(await speak(url, head({ ...asked, headers: { ...asked.headers, host: "" } })));
  expect(hostless).toMatchObject({ status: 400, headers: { [identity]: "request-7" } });
  expect(JSON.parse(hostless.body)).toEqual({ error: "BadRequest", description: "the header Host is missing" });
  const expecting = await speak(url, head({ ...asked, headers: { ...asked.headers, expect: "the-unexpected" } }));
  expect(parseAnswer(expecting)).toMatchObject({ status: 200, headers: { [identity]: "request-7" } });
});

test("who asks for a tunnel and hangs up does not end the process, and who does not hang up is hung up on", async () => {
  const { url, ask } = await served("the server");
  const { hostname, port } = new URL(url);
  const thrown: unknown[] = [];
  const note = (error: unknown) => void thrown.push(error);
  process.on("uncaughtException", note);
  onTestFinished(() => void process.off("uncaughtException", note));
  const tunnel = "CONNECT db.example:5432 HTTP/1.1\r\nhost: db.example\r\n\r\n";
  const resets = Array.from({ length: 20 }, () => {
    return new Promise((resolve) => {
      const socket = connect(Number(port), hostname, () => socket.write(tunnel, () => socket.resetAndDestroy()));
      socket.on("error", () => undefined).on("close", resolve);
    });
  });
  await Promise.all(resets);
  expect(await ask({ method: "GET", path: "/v2/catalog" })).toMatchObject({ status: 200 });
  expect(thrown).toEqual([]);
  const silent = connect({ port: Number(port), host: hostname, allowHalfOpen: true }, () => void silent.write(tunnel));
  silent.on("error", () => undefined).resume();
  // The answer has an end; after it nothing but the connection itself is left, which the server closes.
  await new Promise((resolve) => silent.on("end", resolve));
  const isOpen = () => new Promise<boolean>((resolve) => void silent.write("x", (error) => resolve(!error)));
  await vi.waitFor(async () => expect(await isOpen()).toBe(false), { timeout: 20_000, interval: 200 });
}, 30_000);
