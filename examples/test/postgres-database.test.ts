import { createHash, createHmac, randomUUID } from "node:crypto";
import { once } from "node:events";
import { type TestBroker, testBroker } from "@osbert/broker/testing";
import pg from "pg";
import { describe, expect, inject, onTestFinished, test, vi } from "vitest";
import { bindingRole, databaseNames } from "../src/postgres-database/names.js";
import { postgresDatabase } from "../src/postgres-database/postgres-database.js";
import { scramVerifier } from "../src/postgres-database/scram-verifier.js";

const url = inject("postgresUrl");
const waits = { acceptsIncomplete: false };

/** Taken before any test meddles with it. */
const plainQuery = Reflect.get(pg.Client.prototype, "query") as pg.Client["query"];

test("a verifier proves the server of the example in RFC 7677", async () => {
  const salt = Buffer.from("W22ZaJ0SNY7soEsUEjb6gQ==", "base64");
  const nonce = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0";
  const exchange = `n=user,r=rOprNGfwEbeRWgbNEkqO,r=${nonce},s=${salt.toString("base64")},i=4096,c=biws,r=${nonce}`;
  const [, , , storedKey = "", serverKey = ""] = (await scramVerifier("pencil", salt)).split(/[$:]/);
  const sign = (key: string) => createHmac("sha256", Buffer.from(key, "base64")).update(exchange).digest();
  expect(sign(serverKey).toString("base64")).toBe("6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=");
  const proof = Buffer.from("dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=", "base64");
  const clientKey = sign(storedKey).map((byte, index) => byte ^ (proof[index] ?? 0));
  expect(createHash("sha256").update(clientKey).digest("base64")).toBe(storedKey);
});

// One line says that PostgreSQL is left out, where it is; OSBERT_TEST_REQUIRE=all makes that a failure.
describe.runIf(url !== null)("postgres-database", () => {
  test("a binding's role owns nothing, reads and writes; a read-only one reads what the other makes", async () => {
    const { flow, instance } = await provisioned();
    const writer = await login(await bind(flow, instance, "writer"));
    await writer.query("create table item (id serial primary key, name text); insert into item (name) values ('one')");
    const reader = await login(await bind(flow, instance, "reader", { access: "read-only" }));
    expect((await reader.query("select name from item")).rows).toEqual([{ name: "one" }]);
    for (const statement of [
      "insert into item (name) values ('two')",
      "update item set name = 'two'",
      "delete from item",
      "create table mine (id int)",
      "create temporary table mine (id int)",
      "set role to none; drop table item",
    ]) {
      await expect(reader.query(statement), statement).rejects.toThrow(/permission denied|must be owner/);
    }
    await writer.query("create schema later; create table later.thing (id int)");
    expect((await reader.query("select * from later.thing")).rows).toEqual([]);
  });

  test("a binding opens no other instance's database, and cannot lift its own limits", async () => {
    const { flow, instance } = await provisioned();
    const other = randomUUID();
    expect((await flow.provision(other, waits)).status).toBe(201);
    onTestFinished(() => remove(flow, other));
    const mine = await bind(flow, instance, "b");
    const elsewhere = new URL(mine.uri);
    elsewhere.pathname = `/${databaseNames(of(other)).database}`;
    await expect(login({ ...mine, uri: elsewhere.href })).rejects.toThrow("permission denied for database");
    const client = await login(mine);
    await expect(client.query(`alter database ${mine.database} with connection limit 99`)).rejects.toThrow("owner");
    await expect(client.query("set temp_file_limit = -1")).rejects.toThrow("permission denied");
  });

  test("two bindings log in; after a rotation both are valid, and unbinding the old one ends its open session", async () => {
    const { flow, instance } = await provisioned();
    const first = await bind(flow, instance, "first");
    const old = await login(first);
    await old.query("create table item (id int); insert into item values (1)");
    // It may also leave things behind that are its own and not the instance's, here and elsewhere on the server.
    await old.query("set role to none; create table own (id int); reset role");
    const stray = new URL(first.uri);
    stray.pathname = "/postgres";
    await (await login({ ...first, uri: stray.href })).query("select lo_create(0)");

    const rotation = await flow.bind(instance, "second", { ...waits, with: { predecessor_binding_id: "first" } });
    expect(rotation.status).toBe(201);
    const renewed = await login(rotation.body.credentials);
    expect((await old.query("select id from item")).rows).toEqual([{ id: 1 }]);
    await renewed.query("insert into item values (2)");

    const cutOff = once(old, "error");
    expect((await flow.unbind(instance, "first", waits)).status).toBe(200);
    await cutOff;
    await expect(login(first)).rejects.toThrow(/password authentication failed|not permitted/);
    await renewed.query("alter table item add column name text");
    expect((await renewed.query("select count(*)::int as count from item")).rows).toEqual([{ count: 2 }]);
    expect((await renewed.query("select * from own")).rows).toEqual([]);
    expect(await rolesOf(instance, ["first"])).not.toContain(bindingRole(of(instance), "first"));
  });

  test("a binding that expires is refused from then on, by PostgreSQL itself", async () => {
    const { flow, instance } = await provisioned();
    const { status, body } = await flow.bind(instance, "b", { ...waits, parameters: { expiresInSeconds: 3600 } });
    expect(status).toBe(201);
    const role = bindingRole(of(instance), "b");
    const [found] = await admin<{ until: Date }>("select rolvaliduntil as until from pg_roles where rolname = $1", [
      role,
    ]);
    expect(found?.until.toISOString()).toBe(body.metadata.expires_at);
    expect(Date.parse(body.metadata.renew_before)).toBe(Date.parse(body.metadata.expires_at) - 720_000);
    await login(body.credentials);
    await admin(`alter role ${role} valid until 'yesterday'`);
    await expect(login(body.credentials)).rejects.toThrow("password authentication failed");
  });

  test("the plan's limits are the database's, and change with the plan", async () => {
    const { flow, instance } = await provisioned({ plan: "dedicated", parameters: { connectionLimit: 1 } });
    const binding = await bind(flow, instance, "b", {}, "dedicated");
    await login(binding);
    await expect(login(binding)).rejects.toThrow("too many connections");
    const limitOf = () => admin("select datconnlimit from pg_database where datname = $1", [binding.database]);
    expect((await flow.update(instance, { ...waits, plan: "shared" })).status).toBe(200);
    expect(await limitOf()).toEqual([{ datconnlimit: 10 }]);
    const back = await flow.update(instance, { ...waits, plan: "dedicated", parameters: { connectionLimit: 7 } });
    expect(back.status).toBe(200);
    expect(await limitOf()).toEqual([{ datconnlimit: 7 }]);
    expect(await (await login(binding)).query("show temp_file_limit")).toMatchObject({
      rows: [{ temp_file_limit: "-1" }],
    });
  });

  test("extensions come from a list, and parameters that nobody knows are refused", async () => {
    const { flow, instance } = await provisioned({ parameters: { extensions: ["citext", "hstore"] } });
    const client = await login(await bind(flow, instance, "b"));
    await client.query("create table word (text citext); insert into word values ('Hello')");
    expect((await client.query("select 1 from word where text = 'hello'")).rowCount).toBe(1);
    for (const parameters of [{ extensions: ["plpython3u"] }, { extensions: "citext" }, { connectionLimit: 5 }]) {
      expect((await flow.provision(randomUUID(), { ...waits, parameters })).status).toBe(400);
    }
    const tooMany = { ...waits, plan: "dedicated", parameters: { connectionLimit: 1_000 } };
    expect((await flow.provision(randomUUID(), tooMany)).status).toBe(400);
  });

  test("deprovision ends the sessions that are left and leaves nothing on the server", async () => {
    const { flow, instance } = await provisioned({}, { cascade: true });
    const client = await login(await bind(flow, instance, "b"));
    await client.query("create table item (id int)");
    // Somebody who has no binding, and whom no unbind sends away.
    const operator = new URL(url ?? "");
    operator.pathname = `/${databaseNames(of(instance)).database}`;
    const visitor = await login({ uri: operator.href });
    const cutOff = [once(client, "error"), once(visitor, "error")];
    expect(await leftOf(instance, ["b"])).toHaveLength(4);
    expect((await flow.deprovision(instance, waits)).status).toBe(200);
    await Promise.all(cutOff);
    expect(await leftOf(instance, ["b"])).toEqual([]);
  });

  test("ids that look like SQL, paths or whole books are only ids", async () => {
    const strange = `"; drop database postgres; -- ' \\ ../ ä€ ${"x".repeat(150)} ${randomUUID()}`;
    const { flow, instance } = await provisioned({}, {}, strange);
    const client = await login(await bind(flow, instance, `'); select "${strange.slice(0, 100)}`));
    expect((await client.query("select 1 as one")).rows).toEqual([{ one: 1 }]);
  });

  test.each(["before", "after"] as const)(
    "cut off %s every statement, each step run again does the same; the password is in no statement",
    async (when) => {
      const flow = await testBroker({ services: [service()] });
      onTestFinished(() => flow.stop());
      const instance = randomUUID();
      onTestFinished(() => remove(flow, instance));
      const statements = cutOffOnce(when);
      const parameters = { extensions: ["citext"] };
      expect((await flow.provision(instance, { parameters })).status).toBe(202);
      await settled(flow, instance);
      expect((await flow.bind(instance, "b")).status).toBe(202);
      await settled(flow, instance, "b");
      const { credentials } = (await flow.fetch(instance, "b")).body;
      await (await login(credentials)).query("create table item (word citext)");
      expect(await leftOf(instance, ["b"])).toHaveLength(4);
      expect((await flow.unbind(instance, "b")).status).toBe(202);
      await settled(flow, instance, "b");
      expect((await flow.deprovision(instance)).status).toBe(202);
      await settled(flow, instance);
      expect(await leftOf(instance, ["b"])).toEqual([]);
      // Each was cut off once and asked again: enough of them for the test to mean something.
      expect(statements.length).toBeGreaterThan(20);
      expect(statements.join("\n")).not.toContain(credentials.password);
    },
  );

  test("a provision that is deleted half-way leaves nothing, wherever it stopped", async () => {
    const flow = await testBroker({ services: [service()] });
    onTestFinished(() => flow.stop());
    for (const [last, made] of [
      ["create role", 0],
      ["create database", 2],
      ["alter schema", 3],
      ["alter database", 3],
    ] as const) {
      const instance = randomUUID();
      const spy = failFrom(last);
      expect((await flow.provision(instance)).status).toBe(202);
      await expect.poll(() => spy.failures(), { timeout: 30_000 }).toBeGreaterThan(0);
      spy.end();
      expect(await leftOf(instance, []), `stopped at ${last}`).toHaveLength(made);
      expect((await flow.deprovision(instance)).status).toBe(202);
      await settled(flow, instance);
      expect(await leftOf(instance, []), `stopped at ${last}`).toEqual([]);
    }
  });
});

/** An instance of a broker that knows one platform, which has no name. */
function of(id: string) {
  return { platform: "", id };
}

function service() {
  return postgresDatabase(async () => url ?? "");
}

async function provisioned(
  ask: Parameters<TestBroker["provision"]>[1] = {},
  options: { readonly cascade?: boolean } = {},
  instance: string = randomUUID(),
) {
  const flow = await testBroker({ services: [service()], ...options });
  onTestFinished(() => flow.stop());
  const { status, body } = await flow.provision(instance, { ...waits, ...ask });
  expect(status, JSON.stringify(body)).toBe(201);
  onTestFinished(() => remove(flow, instance));
  return { flow, instance };
}

interface Credentials {
  readonly uri: string;
  readonly database: string;
}

async function bind(flow: TestBroker, instance: string, binding: string, parameters = {}, plan = "shared") {
  const { status, body } = await flow.bind(instance, binding, { ...waits, plan, parameters });
  expect(status, JSON.stringify(body)).toBe(201);
  return body.credentials as Credentials;
}

/** A session that ends with the test, unless somebody ends it before. */
async function login({ uri }: Pick<Credentials, "uri">): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: uri });
  client.on("error", () => {});
  client.query = plainQuery;
  await client.connect();
  onTestFinished(() => client.end());
  return client;
}

async function admin<Row extends object>(text: string, values: unknown[] = []): Promise<Row[]> {
  const client = new pg.Client({ connectionString: url ?? "" });
  client.query = plainQuery;
  await client.connect();
  try {
    return (await client.query<Row>(text, values)).rows;
  } finally {
    await client.end();
  }
}

async function rolesOf(instance: string, bindings: readonly string[]): Promise<string[]> {
  const id = of(instance);
  const { owner, reader } = databaseNames(id);
  const names = [owner, reader, ...bindings.map((binding) => bindingRole(id, binding))];
  const found = await admin<{ name: string }>("select rolname as name from pg_roles where rolname = any($1)", [names]);
  return found.map(({ name }) => name);
}

/** What is on the server of an instance and its bindings. */
async function leftOf(instance: string, bindings: readonly string[]): Promise<string[]> {
  const { database } = databaseNames(of(instance));
  const found = await admin<{ name: string }>("select datname as name from pg_database where datname = $1", [database]);
  return [...found.map(({ name }) => name), ...(await rolesOf(instance, bindings))];
}

/** Takes an instance off the server that the tests share, whatever a test has left of it. */
async function remove(flow: TestBroker, instance: string): Promise<void> {
  for (const binding of ["b", "first", "second", "reader", "writer"]) await flow.unbind(instance, binding, waits);
  await flow.deprovision(instance, waits);
}

/** Moves the clock, for what waits to be tried again, until the last operation has ended; it must have ended well. */
async function settled(flow: TestBroker, instance: string, binding?: string): Promise<void> {
  const look = async () => {
    // Only while nothing runs: on a busy machine the deadline must not pass beside what takes real time.
    if (flow.broker.journal.running === 0) await flow.advance(5_000);
    const { status, body } = await flow.lastOperation(instance, binding === undefined ? {} : { binding });
    return status === 410 ? "succeeded" : body.state;
  };
  await expect.poll(look, { interval: 10, timeout: 30_000 }).not.toBe("in progress");
  expect(await look()).toBe("succeeded");
}

type Query = (this: pg.Client, text: string, values?: unknown[]) => Promise<pg.QueryResult>;

/** Lets every different statement of the service fail the first time: before it is sent, or after it was carried out. */
function cutOffOnce(when: "before" | "after"): string[] {
  const seen = new Set<string>();
  const statements: string[] = [];
  const spy = vi.spyOn(pg.Client.prototype, "query") as unknown as { mockImplementation(query: Query): void };
  spy.mockImplementation(async function (text, values) {
    statements.push(text);
    // The verifier has a new salt every time.
    const statement = JSON.stringify([text.replaceAll(/'SCRAM[^']*'/g, ""), values]);
    const isNew = !seen.has(statement);
    seen.add(statement);
    if (isNew && when === "before") throw new Error("cut off before the statement");
    const result = await (plainQuery as unknown as Query).call(this, text, values);
    if (isNew) throw new Error("cut off after the statement");
    return result;
  });
  onTestFinished(() => void vi.restoreAllMocks());
  return statements;
}

/** From the first statement that begins like this on, none arrives. */
function failFrom(beginning: string): { readonly failures: () => number; end(): void } {
  let failures = 0;
  const spy = vi.spyOn(pg.Client.prototype, "query") as unknown as { mockImplementation(query: Query): void };
  spy.mockImplementation(async function (text, values) {
    if (failures > 0 || text.trim().startsWith(beginning)) {
      failures++;
      throw new Error("the server is gone");
    }
    return (plainQuery as unknown as Query).call(this, text, values);
  });
  return { failures: () => failures, end: () => void vi.restoreAllMocks() };
}
