import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { createClient } from "@osbert/protocol/client";
import { expect, onTestFinished, test } from "vitest";
import { folderWith, start } from "./program.js";

const request = { service_id: "service-misbehaving", plan_id: "plan-good", organization_guid: "o", space_guid: "s" };

test("the program runs a broker that misbehaves as its options and files say, and ends when it is told", async () => {
  const cwd = folderWith({
    "login.txt": "anna:secret:with-colon\n",
    "rules.json": JSON.stringify([{ call: "provision", do: "418" }]),
    "catalog.json": JSON.stringify({ services: "none" }),
  });
  const args = ["--port", "0", "--credentials-file", "login.txt", "--do", "provision=500,403", "--rules", "rules.json"];
  const program = start(["misbehave", ...args, "--catalog-file", "catalog.json"], { cwd });
  const [, url = ""] = await program.says(/answers at (http:\/\/127\.0\.0\.1:\d+)/);
  const client = createClient({ url, credentials: { username: "anna", password: "secret:with-colon" } });
  for (const status of [500, 403, 418]) await expect(client.provision("i", request)).rejects.toMatchObject({ status });
  await expect(client.catalog()).resolves.toMatchObject({ catalog: { services: "none" } });
  program.signal("SIGTERM");
  expect(await program.ended).toBe(0);
  expect(program.stdout() + program.stderr()).not.toContain("secret");
});

test("without credentials it makes some, and prints them", async () => {
  const program = start(["misbehave", "--port", "0", "--chaos", "1", "--rate", "0"], { cwd: folderWith({}) });
  const [, url = ""] = await program.says(/answers at (http:\S+)/);
  const [, username = "", password = ""] = await program.says(/its name and password: (\w+):(\S+)/);
  const client = createClient({ url, credentials: { username, password } });
  expect(await client.provision("i", request)).toMatchObject({ status: 201 });
  program.signal("SIGINT");
  expect(await program.ended).toBe(0);
});

test("what is written wrongly is told in a sentence", async () => {
  const taken = createServer().listen(0, "127.0.0.1");
  await once(taken, "listening");
  onTestFinished(() => void taken.close());
  const { port } = taken.address() as AddressInfo;
  const cwd = folderWith({ "rules.json": '[{"do":"nonsense"}]', "no.json": "{" });
  const cases: readonly [readonly string[], RegExp, number][] = [
    [["--do", "steal=500"], /It must be \[CALL=\]NAME/, 2],
    [["--rules", "rules.json"], /rules.json: rules\[0\].do: there is no misbehaviour "nonsense"/, 1],
    [["--rules", "no.json"], /no.json is no JSON/, 1],
    [["--port", String(port)], /cannot listen at 127.0.0.1, port \d+ \(EADDRINUSE\)/, 1],
  ];
  for (const [args, says, status] of cases) {
    const program = start(["misbehave", ...args], { cwd });
    expect(await program.ended).toBe(status);
    expect(program.stderr()).toMatch(says);
    expect(program.stderr()).not.toContain("    at ");
  }
});
