import { once } from "node:events";
import { get, type IncomingMessage } from "node:http";
import { connect, type Socket } from "node:net";
import { describe, expect, test } from "vitest";
import { callersOf, type EventStreamLimits, servePlatform } from "../../src/api/index.js";
import { apiLab, everyRoute, grants } from "./api-lab.js";
import { memoryPlatform } from "./memory-platform.js";

const db = "/spaces/team/instances/db";
const wanted = { offering: "database", plan: "small" };

async function withInstance() {
  const memory = memoryPlatform();
  const lab = apiLab(memory.platform);
  await lab.ask("PUT", db, { body: wanted });
  return { ...memory, ...lab };
}

describe("the API of a platform", () => {
  test("answers every route as its document says", async () => {
    const { ask, answered, tell, send } = await withInstance();
    tell(3);
    const root = { as: "root" };
    const basic = { kind: "basic", username: "platform", password: "hidden" };
    const broker = { url: "https://broker.test", authentication: basic, limits: { in_flight: 3 }, relist_ms: 60_000 };
    expect((await ask("PUT", "/brokers/one", { ...root, body: broker })).status).toBe(201);
    expect((await ask("PUT", "/brokers/one", { ...root, body: broker })).body.code).toBe("exists");
    await ask("PATCH", "/brokers/one", { ...root, body: { url: "https://other.test" } });
    await ask("POST", "/brokers/one/relist", { ...root, body: {} });
    for (const path of ["/brokers", "/brokers/one", "/instances", "/orphans?state=open", "/me", "/openapi.json"])
      expect((await ask("GET", path, root)).status).toBe(200);
    expect((await ask("DELETE", "/brokers/one", root)).body).toMatchObject({
      code: "has-instances",
      details: { instances: 3 },
    });
    await ask("DELETE", "/brokers/one?force=true", root);
    await ask("POST", `/orphans/${encodeURIComponent("orphan/one/a")}/mitigate`, { ...root, body: {} });
    await ask("POST", `/orphans/${encodeURIComponent("orphan/one/a")}/dismiss`, { ...root, body: { reason: "known" } });
    await ask("POST", "/spaces/team/instances/old/adopt", { ...root, body: { ...wanted, osb_id: "i" } });

    for (const path of ["/rotations", "/campaigns", "/campaigns/c", "/campaigns/c/targets?state=failed", "/freezes"])
      expect([path, (await ask("GET", path, root)).status]).toEqual([path, 200]);
    expect((await ask("POST", "/campaigns", { ...root, body: { broker: "one", at_once: 3 } })).status).toBe(201);
    await ask("POST", "/campaigns/c/cancel", { ...root, body: {} });
    await ask("POST", "/campaigns/c/retry", { ...root, body: {} });
    await ask("POST", "/freezes", { ...root, body: { reason: "night", space: "team", until: "2031-01-01T00:00:00Z" } });
    await ask("DELETE", "/freezes/f", root);
    await ask("GET", "/spaces/team/rotations");
    expect((await ask("PUT", "/quotas/few", { ...root, body: { limit: 3, space: "team" } })).body).toMatchObject({
      ...{ name: "few", limit: 3, space: "team", broker: null },
    });
    await ask("GET", "/quotas", root);
    expect((await ask("GET", "/spaces/team/quotas")).body.items).toMatchObject([{ name: "few", limit: 3, used: 2 }]);
    await ask("DELETE", "/quotas/few", root);
    const rule = { broker: "one", offering: "rare", spaces: ["team"] };
    expect((await ask("PUT", "/visibilities/v", { ...root, body: rule })).body).toMatchObject({ ...rule, plan: null });
    await ask("GET", "/visibilities", root);
    await ask("DELETE", "/visibilities/v", root);
    for (const path of ["/quotas", "/visibilities"]) expect((await ask("GET", path)).status).toBe(403);

    expect((await ask("PATCH", db, { body: { plan: "large" } })).status).toBe(202);
    expect((await ask("PATCH", db, { body: {} })).body.result).toBe("unchanged");
    expect((await ask("PATCH", `${db}?dry_run=true`, { body: { plan: "large" } })).body.report.ok).toBe(true);
    await ask("PUT", `${db}/bindings/app`, { body: { parameters: {}, app_guid: "g" } });
    for (const path of [
      "",
      "/queue",
      "/queue/op-9",
      "/operations/op-9",
      "/journal",
      "/bindings",
      "/bindings/app",
      "/bindings/app/credentials",
    ])
      expect([path, (await ask("GET", `${db}${path}`)).status]).toEqual([path, 200]);
    for (const path of [
      "refresh",
      "restore",
      "unlock",
      "operations/op-1/cancel",
      "operations/op-1/retry",
      "operations/op-1/release",
    ])
      expect([path, (await ask("POST", `${db}/${path}`, { body: {} })).status]).toEqual([
        path,
        expect.toBeOneOf([200, 202]),
      ]);
    await ask("POST", `${db}/upgrade`, { body: { version: "2.0.0" } });
    await ask("POST", `${db}/operations/op-1/hold`, { body: { reason: "wait" } });
    await ask("POST", `${db}/lock`, { body: { reason: "audit", effect: "reject", until: "2031-01-01T00:00:00Z" } });
    await ask("PATCH", `${db}/policy`, { body: { on_failure: "halt" } });
    await ask("POST", `${db}/bindings/app/rotate`, { body: { successor: "app-2" } });
    await ask("DELETE", `${db}/bindings/app`);
    await ask("GET", "/spaces/team/instances?phase=ready&limit=5");
    await ask("GET", "/offerings?broker=one&name=database");
    await ask("GET", "/offerings/database?broker=one");
    expect((await ask("DELETE", `${db}?mode=drain&cascade=true`)).status).toBe(202);
    expect([...answered].sort()).toEqual(everyRoute.map(({ name }) => name).sort());
    expect((await send("GET", "/elsewhere")).status).toBe(404);
  });

  test("E10-42: numbers beyond 2^53 come and go as they were written", async () => {
    const { ask, asked } = await withInstance();
    const text = '{"big" : 12345678901234567890, "e":1.50e1,"__proto__":{"x":1}}';
    const told = await ask("PATCH", db, { body: `{"plan":"p","parameters": ${text} }` });
    expect(asked.at(-1)?.wanted).toEqual({ plan: "p", parameters: text });
    expect(told.text).toContain(`"parameters":${text}`);
    expect(told.text).toContain('"value":18446744073709551615');
    await ask("PUT", `${db}/bindings/app`, { body: {} });
    expect((await ask("GET", `${db}/bindings/app/credentials`)).text).toContain("12345678901234567890");
  });

  test("a space never sees another's: what is there is as absent as what is not", async () => {
    const { ask } = await withInstance();
    for (const { method, path, description } of everyRoute.filter((route) => route.path.startsWith("/spaces/"))) {
      const bodies = description.body === undefined ? {} : { body: {} };
      const [there, nowhere] = await Promise.all(
        ["team/instances/db", "none/instances/db"].map((place) =>
          ask(
            method,
            path.replace("space-1/instances/instance-1", place).replace("/space-1/", `/${place.split("/")[0]}/`),
            {
              as: "bob",
              ...bodies,
            },
          ),
        ),
      );
      const { request_id: _, ...told } = there?.body ?? {};
      expect([path, there?.status, told]).toEqual([path, 404, { ...nowhere?.body, request_id: undefined }]);
    }
  });

  test("who may only see changes nothing and reads no credentials; only operators operate", async () => {
    const { ask, asked } = await withInstance();
    const before = asked.length;
    const refused = async (as: string, role: string) => {
      for (const { method, path, description } of everyRoute) {
        if (description.role !== role) continue;
        const bodies = description.body === undefined ? {} : { body: {} };
        const told = await ask(method, path.replace("space-1", "team"), { as, ...bodies });
        expect([method, path, told.status, told.body.code]).toEqual([method, path, 403, "forbidden"]);
      }
    };
    await refused("eve", "change");
    await refused("eve", "operate");
    await refused("alice", "operate");
    expect(asked.length).toBe(before);
    expect((await ask("DELETE", `${db}?mode=abandon&reason=x`)).status).toBe(403);
    expect((await ask("DELETE", `${db}?mode=abandon`, { as: "root" })).body.code).toBe("invalid");
    expect((await ask("DELETE", `${db}?mode=abandon&reason=x`, { as: "root" })).status).toBe(202);
    expect((await ask("GET", db, { as: "eve" })).status).toBe(200);
    expect((await ask("GET", "/me", { as: "eve" })).body).toEqual({ name: "eve", role: "see", spaces: ["team"] });
    expect((await ask("GET", "/me", { as: "root" })).body.spaces).toBeNull();
  });

  test("an operator's lock is lifted by an operator alone", async () => {
    const { ask } = await withInstance();
    await ask("POST", `${db}/lock`, { as: "root", body: { reason: "incident" } });
    expect((await ask("POST", `${db}/unlock`, { body: {} })).body.code).toBe("forbidden");
    expect((await ask("POST", `${db}/unlock`, { as: "root", body: {} })).body.lock).toBeNull();
    await ask("POST", `${db}/lock`, { body: { reason: "mine" } });
    expect((await ask("POST", `${db}/unlock`, { body: {} })).status).toBe(200);
  });

  test("without a credential, or with a wrong one, nobody learns anything", async () => {
    const { ask } = await withInstance();
    for (const headers of [{ authorization: "" }, { authorization: "Basic eDp5" }]) {
      const told = await ask("GET", db, { headers });
      expect([told.status, told.headers["content-type"], told.body.code]).toEqual([
        401,
        "application/problem+json",
        "unauthorized",
      ]);
      expect(told.headers["www-authenticate"]).toMatch(/^Basic/);
    }
  });

  test("entity tags: while something is open it moves on within its revision, and is never told as unchanged", async () => {
    const { ask, asked } = await withInstance();
    await ask("PATCH", db, { body: { plan: "p" } });
    const { headers, body } = await ask("GET", db);
    expect([body.revision, body.queue.length, headers.etag]).toEqual([2, 1, '"2-open"']);
    for (const known of ['"2-open"', '"2"'])
      expect((await ask("GET", db, { headers: { "if-none-match": known } })).status).toBe(200);
    for (const seen of ['"2-open"', '"2"']) {
      await ask("POST", `${db}/lock`, { body: { reason: "audit" }, headers: { "if-match": seen } });
      expect(asked.at(-1)?.asking.ifMatch).toBe(2);
    }
  });

  test("entity tags: If-Match is handed on, an unchanged instance is not sent again", async () => {
    const { ask, asked } = await withInstance();
    const { headers } = await ask("GET", db);
    expect(headers.etag).toBe('"1"');
    expect((await ask("GET", db, { headers: { "if-none-match": '"1"' } })).status).toBe(304);
    const stale = await ask("PATCH", db, { body: { plan: "p" }, headers: { "if-match": '"7"' } });
    expect([stale.status, stale.body.code, stale.body.details]).toEqual([412, "stale", { revision: 1 }]);
    const told = await ask("PATCH", db, {
      body: { plan: "p" },
      headers: { "if-match": '"1"', "idempotency-key": "k-1", "x-broker-api-request-identity": "r-1" },
    });
    expect([told.status, told.headers.etag, told.headers.location]).toEqual([202, '"2-open"', `/api/v1${db}`]);
    expect(asked.at(-1)?.asking).toEqual({
      by: { actor: { type: "user", subject: "alice" }, requestId: "r-1" },
      identity: { user_id: "alice" },
      ifMatch: 1,
      idempotencyKey: "k-1",
    });
  });

  test.each([
    ["PUT", "/spaces/team/instances/a%2Fb", { body: wanted }, 400],
    ["PUT", "/spaces/team/instances/..", { body: wanted }, 400],
    ["PUT", "/spaces/team/instances/%00", { body: wanted }, 400],
    ["PUT", `/spaces/team/instances/${"x".repeat(64)}`, { body: wanted }, 400],
    ["PUT", db, { body: "[]" }, 400],
    ["PUT", db, { body: "{" }, 400],
    ["PUT", db, { body: { offering: "database" } }, 400],
    ["PUT", db, { body: { ...wanted, parameter: {} } }, 400],
    ["PUT", db, { body: { ...wanted, policy: { onFailure: "halt" } } }, 400],
    ["PUT", db, { body: { ...wanted, parameters: [] } }, 400],
    ["PUT", db, { body: `{"parameters":${"[".repeat(200)}${"]".repeat(200)}}` }, 400],
    ["PUT", db, { body: `{"plan":"${"x".repeat(1_100_000)}"}` }, 413],
    ["PUT", db, { headers: { "content-type": "text/plain" }, body: "{}" }, 400],
    ["POST", `${db}/refresh`, {}, 400],
    ["PATCH", db, { body: {}, headers: { "if-match": "W/x" } }, 400],
    ["PATCH", db, { body: { plan: "p" }, headers: { "idempotency-key": "a b" } }, 400],
    ["PATCH", `${db}?dry_run=1`, { body: { plan: "p" } }, 400],
    ["GET", `${db}/journal?after=x`, {}, 400],
    ["GET", "/spaces/team/instances?phase=odd", {}, 400],
    ["GET", "/spaces/team/instances?pahse=ready", {}, 400],
    ["GET", "/offerings/database", {}, 400],
    ["GET", "/offerings/nothing", {}, 404],
    ["DELETE", `${db}?mode=after`, {}, 400],
    ["POST", "/spaces", {}, 404],
    ["POST", db, {}, 405],
  ] as const)("%s %s is refused with problem details", async (method, path, asked, status) => {
    const { ask } = await withInstance();
    const told = await ask(method, path, asked as never);
    expect([told.status, told.headers["content-type"]]).toEqual([status, "application/problem+json"]);
    expect(told.body).toMatchObject({ status, request_id: told.headers["x-broker-api-request-identity"] });
  });

  test("the marketplace comes in pages", async () => {
    const { ask } = await withInstance();
    const names: string[] = [];
    let next: string | null = "";
    while (next !== null) {
      const after: string = next === "" ? "" : `&after=${encodeURIComponent(next)}`;
      const told = await ask("GET", `/offerings?limit=1${after}`);
      names.push(...told.body.items.map((item: { broker: string; name: string }) => `${item.broker} ${item.name}`));
      next = told.body.next;
    }
    expect(names).toEqual(["one database", "one only-one", "other database", "other only-other"]);
  });
});

describe("a journal", () => {
  test("comes in pages", async () => {
    const { ask, tell } = await withInstance();
    tell(5);
    const first = await ask("GET", `${db}/journal?limit=3`);
    expect([first.body.items.length, first.body.next]).toEqual([3, "3"]);
    const second = await ask("GET", `${db}/journal?limit=3&after=3`);
    expect([second.body.items.map(({ seq }: { seq: number }) => seq), second.body.next]).toEqual([[4, 5], null]);
  });

  test("is followed with events, goes on from the last one that was seen, and ends with the caller or the server", async () => {
    const { platform, tell, following } = memoryPlatform();
    const limits = { most: 2, quietMs: 20, longestMs: 60_000 };
    const served = await servePlatform(platform, { port: 0, callers: callersOf(grants), streamLimits: limits });
    try {
      const authorization = `Basic ${Buffer.from("alice:secret").toString("base64")}`;
      const headers = { authorization, "content-type": "application/json" };
      const url = `${served.url}/api/v1${db}`;
      await fetch(url, { method: "PUT", headers, body: JSON.stringify(wanted) });
      tell(3);
      const listen = async (more: Record<string, string> = {}) => {
        const asked = get(`${url}/journal`, { headers: { authorization, accept: "text/event-stream", ...more } });
        const [response] = (await once(asked, "response")) as [IncomingMessage];
        return { asked, response, events: readEvents(response) };
      };
      const one = await listen({ "last-event-id": "2" });
      expect(one.response.headers["content-type"]).toMatch(/^text\/event-stream/);
      expect((await one.events.next()).value).toMatchObject({
        id: 3,
        data: { seq: 3, summary: "a line\nwith a break" },
      });
      tell(1);
      expect((await one.events.next()).value).toMatchObject({ id: 4 });
      const other = await listen();
      expect((await other.events.next()).value).toMatchObject({ id: 1 });
      const third = await listen();
      expect(third.response.statusCode).toBe(503);
      third.asked.destroy();
      one.asked.destroy();
      await expect.poll(following).toBe(1);
    } finally {
      // The other one still listens: that keeps no server from closing.
      await served.close();
    }
    await expect.poll(following).toBe(0);
  });
});

/** Asks to follow a journal, and reads nothing of it. */
async function followWithoutReading(url: string, as: string): Promise<Socket> {
  const { hostname, port, pathname } = new URL(url);
  const socket = connect({ host: hostname, port: Number(port) });
  await once(socket, "connect");
  const authorization = `Basic ${Buffer.from(`${as}:secret`).toString("base64")}`;
  socket.pause();
  socket.on("error", () => undefined);
  socket.write(
    `GET ${pathname} HTTP/1.1\r\nHost: x\r\nAuthorization: ${authorization}\r\nAccept: text/event-stream\r\n\r\n`,
  );
  return socket;
}

describe("those who follow a journal and read nothing", () => {
  const serve = async (limits: EventStreamLimits) => {
    const { platform, tell, following } = memoryPlatform();
    const served = await servePlatform(platform, { port: 0, callers: callersOf(grants), streamLimits: limits });
    const headers = {
      authorization: `Basic ${Buffer.from("alice:secret").toString("base64")}`,
      "content-type": "application/json",
    };
    const url = `${served.url}/api/v1${db}`;
    await fetch(url, { method: "PUT", headers, body: JSON.stringify(wanted) });
    // More than sockets keep.
    tell(100_000);
    return { served, url: `${url}/journal`, following };
  };

  test("are cut off when their time is over", async () => {
    const { served, url, following } = await serve({ most: 10, quietMs: 1_000, longestMs: 200 });
    const socket = await followWithoutReading(url, "alice");
    await expect.poll(following).toBe(1);
    await expect.poll(following, { timeout: 20_000 }).toBe(0);
    socket.destroy();
    await served.close();
  });

  test("keep no server from closing", async () => {
    const { served, url, following } = await serve({ most: 10, quietMs: 1_000, longestMs: 3_600_000 });
    const socket = await followWithoutReading(url, "alice");
    await expect.poll(following).toBe(1);
    await served.close();
    socket.destroy();
  });

  test("leave room for others: nobody has all of it", async () => {
    const limits = { most: 10, mostOfOne: 2, quietMs: 1_000, longestMs: 3_600_000 };
    const { served, url, following } = await serve(limits);
    const sockets = [await followWithoutReading(url, "alice"), await followWithoutReading(url, "alice")];
    await expect.poll(following).toBe(2);
    const ask = (as: string) =>
      fetch(url, {
        headers: {
          authorization: `Basic ${Buffer.from(`${as}:secret`).toString("base64")}`,
          accept: "text/event-stream",
        },
      });
    expect((await ask("alice")).status).toBe(503);
    const eve = await ask("eve");
    expect(eve.status).toBe(200);
    await eve.body?.cancel();
    for (const socket of sockets) socket.destroy();
    await expect.poll(following).toBe(0);
    const again = await ask("alice");
    expect(again.status).toBe(200);
    await again.body?.cancel();
    await served.close();
  });
});

async function* readEvents(response: IncomingMessage) {
  let text = "";
  for await (const chunk of response.setEncoding("utf8")) {
    text += String(chunk);
    for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
      const [, id, data] = /^id: (\d+)\ndata: (.*)$/.exec(text.slice(0, end)) ?? [];
      text = text.slice(end + 2);
      if (data !== undefined) yield { id: Number(id), data: JSON.parse(data) as unknown };
    }
  }
}
