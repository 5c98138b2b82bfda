import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { describe, expect, test } from "vitest";
import { BrokerAnswerError, createClient } from "../src/client/index.js";
import { brokerThat } from "./broker-double.js";

const request = { service_id: "s", plan_id: "p", organization_guid: "o", space_guid: "g" };
const ids = { serviceId: "s", planId: "p" };

async function failureOf(work: Promise<unknown>): Promise<BrokerAnswerError> {
  const error = await work.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(BrokerAnswerError);
  return error as BrokerAnswerError;
}

describe("what a request carries", () => {
  test("P-VER-01, P-AUTH-01, P-CT-01: version and basic credentials on every request, JSON where there is a body", async () => {
    const { url, seen } = await brokerThat({ status: 200, body: { services: [], state: "succeeded" } });
    const client = createClient({ url: `${url}/`, credentials: { username: "ü", password: "p:w" } });
    await client.catalog();
    await client.provision("i", request);
    await client.fetchInstance("i");
    await client.update("i", { service_id: "s" });
    await client.deprovision("i", ids);
    await client.bind("i", "b", { service_id: "s", plan_id: "p" });
    await client.fetchBinding("i", "b");
    await client.unbind("i", "b", ids);
    await client.instanceLastOperation("i");
    await client.bindingLastOperation("i", "b");
    expect(seen.map(({ method, path }) => `${method} ${path}`)).toEqual([
      "GET /v2/catalog",
      "PUT /v2/service_instances/i",
      "GET /v2/service_instances/i",
      "PATCH /v2/service_instances/i",
      "DELETE /v2/service_instances/i",
      "PUT /v2/service_instances/i/service_bindings/b",
      "GET /v2/service_instances/i/service_bindings/b",
      "DELETE /v2/service_instances/i/service_bindings/b",
      "GET /v2/service_instances/i/last_operation",
      "GET /v2/service_instances/i/service_bindings/b/last_operation",
    ]);
    for (const { headers, method, body } of seen) {
      expect(headers["x-broker-api-version"]).toBe("2.17");
      expect(Buffer.from(headers.authorization?.split(" ")[1] ?? "", "base64").toString()).toBe("ü:p:w");
      const hasBody = method === "PUT" || method === "PATCH";
      expect(headers["content-type"]).toBe(hasBody ? "application/json" : undefined);
      expect(body === "").toBe(!hasBody);
    }
  });

  test("numbers beyond 2^53 go out and come back as they were written", async () => {
    const answer = '{ "credentials": {"port": 12345678901234567890, "rate": 1.0} }';
    const { url, seen } = await brokerThat({ status: 201, body: answer });
    const client = createClient({ url });
    const parametersText = '{"big": 98765432109876543210, "rate": 1.50}';
    const bound = await client.bind("i", "b", { service_id: "s", plan_id: "p" }, { parametersText });
    await client.provision("i", { ...request, parameters: { big: 1 } }, { parametersText });
    expect(bound.text).toBe(answer);
    expect(seen[0]?.body).toBe(`{"parameters":${parametersText},"service_id":"s","plan_id":"p"}`);
    expect(seen[1]?.body).toBe(`{"parameters":${parametersText},${JSON.stringify(request).slice(1)}`);
  });

  test("a text that is not one JSON object never becomes part of a request", async () => {
    const { url, seen } = await brokerThat({ status: 200 });
    const client = createClient({ url });
    for (const parametersText of ['{},"plan_id":"other"', "[]", "1", "", "null"])
      await expect(client.update("i", { service_id: "s" }, { parametersText })).rejects.toThrow();
    expect(seen).toEqual([]);
  });

  test("P-AUTH-02: another mechanism, and another version, by agreement", async () => {
    const { url, seen } = await brokerThat({ status: 200, body: { services: [] } });
    await createClient({ url, credentials: "Bearer token", version: "2.15" }).catalog();
    expect(seen[0]?.headers).toMatchObject({ authorization: "Bearer token", "x-broker-api-version": "2.15" });
  });

  test("P-ID-02, P-ID-06, P-REQ-01, P-REQ-02: whose action it is, and which request", async () => {
    const { url, seen } = await brokerThat({ status: 200 });
    const identity = { platform: "cloudfoundry", value: { user_id: "Zoë" } };
    await createClient({ url }).provision("i", request, { identity, requestId: "r-1" });
    const header = String(seen[0]?.headers["x-broker-api-originating-identity"]);
    expect(header).toMatch(/^cloudfoundry [A-Za-z0-9+/=]+$/);
    expect(JSON.parse(Buffer.from(header.split(" ")[1] ?? "", "base64").toString())).toEqual({ user_id: "Zoë" });
    expect(seen[0]?.headers["x-broker-api-request-identity"]).toBe("r-1");
  });

  test("P-URL-01, P-POLL-02, P-POLL-03, P-DEL-02: ids and operations with any characters arrive as they were", async () => {
    const { url, seen } = await brokerThat({ status: 200, body: { state: "succeeded" } });
    const client = createClient({ url });
    const odd = "a/b ?&=ü#%2F";
    await client.fetchBinding(odd, odd);
    await client.instanceLastOperation(odd, { operation: odd, serviceId: odd, planId: odd });
    await client.deprovision(odd, { serviceId: odd, planId: odd });
    const encoded = encodeURIComponent(odd);
    expect(seen[0]?.path).toBe(`/v2/service_instances/${encoded}/service_bindings/${encoded}`);
    expect(Object.fromEntries(seen[1]?.query ?? [])).toEqual({ operation: odd, service_id: odd, plan_id: odd });
    expect(Object.fromEntries(seen[2]?.query ?? [])).toEqual({
      service_id: odd,
      plan_id: odd,
      accepts_incomplete: "true",
    });
  });

  test("the end of a binding called .. would have been the end of its instance: such ids are not sent", async () => {
    const { url, seen } = await brokerThat({ status: 200 });
    const client = createClient({ url });
    for (const id of ["", ".", ".."]) {
      await expect(client.unbind("i", id, ids)).rejects.toThrow(RangeError);
      await expect(client.fetchInstance(id)).rejects.toThrow(RangeError);
      await expect(client.waitForInstance(id)).rejects.toThrow(RangeError);
      await expect(client.waitForBinding("i", id)).rejects.toThrow(RangeError);
    }
    expect(seen).toEqual([]);
    await client.fetchInstance("...");
    expect(seen[0]?.path).toBe("/v2/service_instances/...");
  });

  test("P-PROV-04, P-ERR-02: accepts_incomplete is sent unless the caller cannot wait", async () => {
    const { url, seen } = await brokerThat({ status: 200 });
    const client = createClient({ url });
    await client.provision("i", request);
    await client.provision("i", request, { acceptsIncomplete: false });
    expect(seen.map(({ query }) => query.get("accepts_incomplete"))).toEqual(["true", null]);
  });

  test("P-POLL-02, P-FETCH-05: empty hints and operations are not sent", async () => {
    const { url, seen } = await brokerThat({ status: 200, body: { state: "succeeded" } });
    await createClient({ url }).instanceLastOperation("i", { operation: "", serviceId: "", planId: "" });
    expect([...(seen[0]?.query ?? [])]).toEqual([]);
  });
});

describe("what an answer means", () => {
  test("P-CAT-06: a catalog that has not changed is not sent again", async () => {
    const { url, seen } = await brokerThat(
      { status: 200, body: { services: [] }, headers: { etag: '"one"' } },
      { status: 304 },
    );
    const client = createClient({ url });
    const first = await client.catalog();
    expect(first).toEqual({ catalog: { services: [] }, etag: '"one"' });
    expect(await client.catalog({ etag: '"one"' })).toEqual({ catalog: "unchanged", etag: '"one"' });
    expect(seen[1]?.headers["if-none-match"]).toBe('"one"');
  });

  test("done and accepted are told apart", async () => {
    const { url } = await brokerThat(
      { status: 201, body: { dashboard_url: "https://x" } },
      { status: 200, body: {} },
      { status: 202, body: { operation: "op" } },
      { status: 202, body: {} },
      { status: 202, body: { operation: null } },
    );
    const client = createClient({ url });
    const provision = () => client.provision("i", request);
    expect(await provision()).toMatchObject({ kind: "done", status: 201, body: { dashboard_url: "https://x" } });
    expect(await provision()).toMatchObject({ kind: "done", status: 200, body: {} });
    expect(await provision()).toMatchObject({ kind: "accepted", operation: "op" });
    expect(await provision()).toMatchObject({ kind: "accepted", operation: undefined });
    expect(await provision()).toMatchObject({ kind: "accepted", operation: undefined });
  });

  test("E10-17: an operation that is longer than 10,000 characters, or no text, counts as no answer that can be read", async () => {
    const { url } = await brokerThat(
      { status: 202, body: { operation: "x".repeat(10_000) } },
      { status: 202, body: { operation: "x".repeat(10_001) } },
      { status: 202, body: { operation: 7 } },
    );
    const client = createClient({ url });
    expect(await client.provision("i", request)).toMatchObject({ kind: "accepted" });
    for (let answer = 0; answer < 2; answer++)
      expect(await failureOf(client.provision("i", request))).toMatchObject({ status: 202, body: undefined });
  });

  test("P-ERR-02, P-ERR-03, P-ERR-04, P-ERR-05: the error's word, description and advice are kept", async () => {
    const { url } = await brokerThat({
      status: 422,
      body: { error: "ConcurrencyError", description: "busy", instance_usable: false },
      headers: { "retry-after": "7" },
    });
    const error = await failureOf(createClient({ url }).update("i", { service_id: "s" }));
    expect(error).toMatchObject({
      kind: "answer",
      status: 422,
      error: "ConcurrencyError",
      description: "busy",
      retryAfterMs: 7_000,
    });
    expect(error.body).toMatchObject({ instance_usable: false });
    expect(error.message).toContain("busy");
  });

  test("P-VER-02: what the broker says of the version reaches the operator", async () => {
    const { url } = await brokerThat({ status: 412, body: { description: "use 2.17" } });
    expect((await failureOf(createClient({ url }).catalog())).message).toContain("use 2.17");
  });

  test("P-DEL-04: 410 to a delete is done, whatever stands in it", async () => {
    const { url } = await brokerThat({ status: 410, body: "gone" });
    const client = createClient({ url });
    expect(await client.deprovision("i", ids)).toMatchObject({ kind: "done", status: 410 });
    expect(await client.unbind("i", "b", ids)).toMatchObject({ kind: "done", status: 410 });
    expect(await failureOf(client.provision("i", request))).toMatchObject({ status: 410 });
  });

  test("P-CT-02: an answer without a content type is read all the same", async () => {
    const { url } = await brokerThat((response) => void response.writeHead(200).end('{"services":[]}'));
    expect((await createClient({ url }).catalog()).catalog).toEqual({ services: [] });
  });

  test("a redirect is not followed: it would take the credentials along", async () => {
    const elsewhere = await brokerThat({ status: 200, body: { services: [] } });
    for (const status of [301, 302, 307, 308]) {
      const { url } = await brokerThat({ status, headers: { location: `${elsewhere.url}/v2/catalog` } });
      const error = await failureOf(createClient({ url, credentials: { username: "u", password: "p" } }).catalog());
      expect(error.status).toBe(status);
    }
    expect(elsewhere.seen).toEqual([]);
  });

  test("an answer that is too large is not read to its end", async () => {
    let written = 0;
    const { url } = await brokerThat((response) => {
      response.writeHead(200, { "content-type": "application/json" });
      const chunk = Buffer.alloc(1_048_576, "x");
      const write = (): void => {
        while (!response.destroyed && written < 64 * chunk.length) {
          written += chunk.length;
          if (!response.write(chunk)) return void response.once("drain", write);
        }
        response.end();
      };
      write();
    });
    const error = await failureOf(createClient({ url }).catalog());
    expect(error.kind).toBe("too large");
    expect(error.message).toContain("larger");
    expect(written).toBeLessThan(64 * 1_048_576);
  });

  test("P-ORPH-16: the time of a request is bounded, also while its answer trickles in", async () => {
    const { url } = await brokerThat((response) => {
      response.writeHead(200);
      const timer = setInterval(() => response.write(" "), 20);
      response.on("close", () => clearInterval(timer));
    });
    const started = performance.now();
    const error = await failureOf(createClient({ url, timeoutMs: 200 }).catalog());
    expect(error).toMatchObject({ kind: "timed out", status: null });
    expect(error.message).toContain("200 ms");
    expect(performance.now() - started).toBeLessThan(5_000);
  });

  test("a call can be called off", async () => {
    const { url } = await brokerThat(() => undefined);
    const caller = new AbortController();
    const call = createClient({ url }).catalog({ signal: caller.signal });
    setTimeout(() => caller.abort(), 50);
    const error = await failureOf(call);
    expect(error.kind).toBe("called off");
    expect(error.message).toContain("called off");
  });

  test("a broker that is not there is told as such", async () => {
    const server = createServer().listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    await new Promise((resolve) => server.close(resolve));
    const error = await failureOf(createClient({ url: `http://127.0.0.1:${port}` }).catalog());
    expect(error).toMatchObject({ kind: "no connection", sent: false, status: null });
    expect(error.message).toContain("no connection");
  });
});
