import { existsSync, readFileSync } from "node:fs";
import { BrokerAnswerError, type Client, createClient } from "@osbert/protocol/client";
import Database from "better-sqlite3";
import { describe, expect, test } from "vitest";
import { newFolder, startProgram } from "./program.js";

// Every small broker as its reader starts it: a process of its own, spoken to over a socket.

const waits = { acceptsIncomplete: false };

async function start(file: string): Promise<{ readonly client: Client; readonly url: string }> {
  const program = startProgram(file, await newFolder());
  const [, url, username, password] = await program.until(
    /^(http:\S+) \{ username: '([^']+)', password: '([^']+)' \}$/m,
  );
  return {
    url: url as string,
    client: createClient({ url: url as string, credentials: `Basic ${btoa(`${username}:${password}`)}` }),
  };
}

/** The ids of the one service and its one plan, from the catalog. */
async function onlyPlan(client: Client): Promise<{ readonly service_id: string; readonly plan_id: string }> {
  const { catalog } = await client.catalog();
  if (catalog === "unchanged") throw new Error("nothing was known before");
  const [service] = catalog.services;
  return { service_id: service?.id ?? "", plan_id: service?.plans[0]?.id ?? "" };
}

const place = { organization_guid: "an-organization", space_guid: "a-space" };

describe.each(["minimal.ts", "class-style.ts"])("%s", (file) => {
  test("greets: catalog, provision, bind, unbind, deprovision", async () => {
    const { client } = await start(file);
    const ids = await onlyPlan(client);
    const remove = { serviceId: ids.service_id, planId: ids.plan_id, ...waits };
    const wrong = client.provision("i1", { ...ids, ...place, parameters: { language: "fr" } }, waits);
    await expect(wrong).rejects.toThrow(BrokerAnswerError);
    const made = await client.provision("i1", { ...ids, ...place, parameters: { language: "de" } }, waits);
    expect(made.status).toBe(201);
    const bound = await client.bind("i1", "anna", ids, waits);
    expect(bound).toMatchObject({ status: 201, body: { credentials: { words: "Guten Tag, anna" } } });
    expect((await client.unbind("i1", "anna", remove)).status).toBe(200);
    expect((await client.deprovision("i1", remove)).status).toBe(200);
    await expect(client.fetchInstance("i1")).rejects.toThrow("404");
  });
});

describe.each(["in-fastify.ts", "in-hono.ts"])("%s", (file) => {
  test("has a broker beside the application: catalog, provision, bind, unbind, deprovision", async () => {
    const { client, url } = await start(file);
    const ids = await onlyPlan(client);
    const remove = { serviceId: ids.service_id, planId: ids.plan_id, ...waits };
    expect(await (await fetch(new URL("/", url))).json()).toEqual({ hello: "from the application" });
    expect((await fetch(`${url}/v2/catalog`, { headers: { "x-broker-api-version": "2.17" } })).status).toBe(401);

    expect((await client.provision("i1", { ...ids, ...place }, waits)).status).toBe(201);
    const bound = await client.bind("i1", "b1", ids, waits);
    expect(bound.status).toBe(201);
    const { file: path } = (bound.body as { credentials: { file: string } }).credentials;
    expect(path).toMatch(/^\//);
    const database = new Database(path, { fileMustExist: true });
    database.prepare("insert into note (text) values (?)").run("hello");
    expect(database.prepare("select text from note").pluck().all()).toEqual(["hello"]);
    database.close();
    expect((await client.unbind("i1", "b1", remove)).status).toBe(200);
    expect((await client.deprovision("i1", remove)).status).toBe(200);
    expect(existsSync(path)).toBe(false);
  });

  test("ends by itself when it is told to", async () => {
    const program = startProgram(file, await newFolder());
    await program.until(/^http:/m);
    program.child.kill("SIGTERM");
    expect(await program.ended).toBe(0);
  });
});

test("minimal.ts is the broker of the README, but for its port", () => {
  const read = (path: string) => readFileSync(new URL(path, import.meta.url), "utf8");
  const [, snippet = ""] = /^```ts\n([\s\S]*?)^```$/m.exec(read("../../README.md")) ?? [];
  // Formatters break lines and set brackets at different places.
  const bare = (code: string) =>
    code
      .replaceAll(/\s+/g, "")
      .replaceAll(/,(?=[)\]}])/g, "")
      .replaceAll(/[()]/g, "");
  const minimal = read("../src/minimal.ts").replace("Number(process.env.PORT ?? 8080)", "8080");
  expect(bare(minimal)).toBe(bare(snippet));
  expect(minimal.trimEnd().split("\n").length).toBeLessThan(40);
});
