import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { adminCommand } from "./admin-run.js";

/** Something that answers every request with this. */
async function answers(status: number, body: string, headers: Readonly<Record<string, string>> = {}) {
  const server = createServer((_request, response) => {
    response.writeHead(status, { "content-type": "application/json", ...headers }).end(body);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  return { OSBERT_ADMIN_URL: `http://127.0.0.1:${port}`, OSBERT_ADMIN_LOGIN: "ops:secret-password" };
}

const evil = "\u001b]0;owned\u0007\u001b[31mred\u001b[0m\u202eback\nline";

test("no text of a broker reaches the terminal as an order to it", async () => {
  const last = { id: evil, verb: evil, state: evil, description: evil };
  const operation = {
    ...{ ...last, instance: evil, platform: evil, binding: evil, accepted_at: evil, deadline_at: evil },
    ...{ next_attempt_at: evil, attempts: 1, last_error: evil },
  };
  const entry = {
    ...{ seq: 1, at: evil, kind: evil, operation: evil, cause: evil },
    ...{ actor: { type: evil, subject: evil }, details: { [evil]: evil } },
  };
  const named = { id: evil, name: evil };
  const item = {
    ...{ ...operation, ...entry, service: named, plan: named, phase: evil, bindings: 1, open_operations: 1 },
    ...{ last_operation: last, message: evil, open: operation },
    ...{ organization_guid: evil, space_guid: evil, maintenance_version: evil, parameters: { [evil]: evil } },
    ...{ passed_over: [{ call: evil, error: evil }], steps: [{ name: evil, at: evil, result_bytes: 1 }] },
  };
  const body = { items: [item], next: evil, ...item, operations: [operation], entries: [entry] };
  const env = await answers(200, JSON.stringify(body));
  // The state of an instance is an object, that of an operation a text.
  const ofInstance = await answers(200, JSON.stringify({ ...body, state: { [evil]: evil } }));
  const reason = ["--reason", "x"];
  for (const args of [
    ["instances", "--limit", "1"],
    ["instance", "a"],
    ["operations", "--limit", "1"],
    ["operation", "a", "b"],
    ["journal", "a", "--limit", "1"],
    ["instances", "--limit", "1", "--json"],
    ["retry", "a", "b", ...reason],
    ["force-delete", "a", "--yes", "--no-wait", ...reason],
  ]) {
    const { stdout, stderr } = await adminCommand(args, args[0] === "instance" ? ofInstance : env);
    expect(stdout, args.join(" ")).toContain("red");
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not be there.
    expect(stdout + stderr, args.join(" ")).not.toMatch(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202e]/);
  }
});

test.each([
  ["HTML", 200, "<html>", 4],
  ["a list", 200, "[]", 4],
  ["nothing", 200, "", 4],
  ["a redirect", 302, "", 4],
  ["an error page", 502, "<html>Bad Gateway</html>", 4],
  ["a refusal", 409, JSON.stringify({ error: "Conflict", description: "not now" }), 1],
  ["another server's 404", 404, "<html>", 4],
])("%s instead of an answer is a failure with a status of its own", async (_, status, body, expected) => {
  const env = await answers(status, body, { location: "http://127.0.0.1:1/" });
  const ran = await adminCommand(["instance", "a"], env);
  expect(ran).toMatchObject({ status: expected, stdout: "" });
  expect(ran.stderr).toMatch(/^error: /);
  expect(ran.stderr).not.toContain("secret-password");
});

test("a 401 is a wrong password in whatever words it comes, and Retry-After is told", async () => {
  const wrong = await adminCommand(["instance", "a"], await answers(401, "<html>"));
  expect(wrong).toMatchObject({ status: 1, stdout: "" });
  expect(wrong.stderr).toContain("the name or the password in OSBERT_ADMIN_LOGIN is wrong");
  const busy = await adminCommand(["instance", "a"], await answers(429, "<html>", { "retry-after": "9" }));
  expect(busy.status).toBe(1);
  expect(busy.stderr).toMatch(/try again in +9 s/);
});

test("the broker's list of operators is taken for who one is where only one can be meant", async () => {
  const { OSBERT_ADMIN_LOGIN: login, ...env } = await answers(401, "{}");
  const one = await adminCommand(["instance", "a"], { ...env, OSBERT_ADMIN_CREDENTIALS: login });
  expect(one.stderr).toContain("in OSBERT_ADMIN_CREDENTIALS is wrong");
  const several = await adminCommand(["instance", "a"], { ...env, OSBERT_ADMIN_CREDENTIALS: `${login}\n${login}` });
  expect(several.status).toBe(2);
  expect(several.stderr).toMatch(/OSBERT_ADMIN_CREDENTIALS has several lines.*OSBERT_ADMIN_LOGIN=name:password/);
  expect(several.stderr).not.toContain("secret-password");
});

test("the credentials do not follow a redirect", async () => {
  const asked: (string | undefined)[] = [];
  const elsewhere = createServer((request, response) => {
    asked.push(request.headers.authorization);
    response.end("{}");
  });
  await new Promise<void>((resolve) => elsewhere.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void elsewhere.close());
  const { port } = elsewhere.address() as AddressInfo;
  const env = await answers(307, "", { location: `http://127.0.0.1:${port}/` });
  expect((await adminCommand(["instance", "a"], env)).status).toBe(4);
  expect(asked).toEqual([]);
});

test("an answer that no Osbert broker gives is told as such, with the place and without what stood there", async () => {
  for (const body of [{}, { items: {} }, { items: [null, 7, { id: {}, service: [] }], next: 5, words: "secret" }]) {
    const env = await answers(200, JSON.stringify(body));
    for (const args of [["instances", "--limit", "1"], ["instance", "a"], ["operation", "a", "b"], ["services"]]) {
      const ran = await adminCommand(args, env);
      expect(ran, `${args} ${JSON.stringify(body)}`).toMatchObject({ status: 4, stdout: "" });
      expect(ran.stderr).toMatch(/not the admin API of an Osbert broker.*: (items|id|\S+) must be/);
      expect(ran.stderr).not.toContain("secret");
    }
  }
});
