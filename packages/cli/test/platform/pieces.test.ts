import { chmod, mkdtemp, readdir, readFile, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { parse } from "yaml";
import { credentialsText } from "../../src/platform/credentials-output.js";
import { readEvents } from "../../src/platform/read-events.js";
import { readTargetLogin, readTargets, removeTarget, saveTarget, useTarget } from "../../src/platform/targets.js";

async function folder(): Promise<string> {
  const made = await mkdtemp(join(tmpdir(), "osbert-targets-"));
  onTestFinished(() => rm(made, { recursive: true }));
  return join(made, "osbert");
}

const target = { url: "https://platform.example", space: "team", ca: null };

test("targets are kept, and their logins in files that only the owner reads", async () => {
  const place = await folder();
  expect(await readTargets(place)).toEqual({ current: null, targets: {} });
  await saveTarget(place, "work", target, "anna:secret");
  await saveTarget(place, "home", { ...target, url: "http://127.0.0.1:8081" }, null);
  expect(await readTargets(place)).toMatchObject({ current: "home", targets: { work: target } });
  await useTarget(place, "work");
  expect(await readTargetLogin(place, "work")).toBe("anna:secret");
  expect(await readTargetLogin(place, "home")).toBeNull();
  for (const file of ["targets.json", "logins/work"]) expect((await stat(join(place, file))).mode & 0o777).toBe(0o600);
  expect((await stat(join(place, "logins"))).mode & 0o777).toBe(0o700);
  expect(await readFile(join(place, "targets.json"), "utf8")).not.toContain("secret");

  await removeTarget(place, "work");
  expect(await readTargets(place)).toMatchObject({ current: null });
  expect(await readdir(join(place, "logins"))).toEqual([]);
});

test("a login that others can read is not used, and no name leads out of the folder", async () => {
  const place = await folder();
  await saveTarget(place, "work", target, "anna:secret");
  await chmod(join(place, "logins/work"), 0o644);
  await expect(readTargetLogin(place, "work")).rejects.toThrow(/others can read/);
  for (const name of ["../work", "", ".", "a/b", "__proto__/x"])
    await expect(saveTarget(place, name, target, "a:b")).rejects.toThrow(/a target's name/);
  await expect(useTarget(place, "constructor")).rejects.toThrow(/there is no target/);
});

const whose = { instance: "my-db", binding: "App 1" };
const answer =
  '{"credentials":{"account":12345678901234567890,"rate":1.10,"uri":"db://x?n=7","ports":[1,{"large":12345678901234567890}],"on":true}}';

test("E10-42: numbers of credentials are as they were written, in every form", () => {
  expect(credentialsText(answer, whose, { format: "json" })).toBe(`${answer}\n`);
  const env = credentialsText(answer, whose, { format: "env" });
  expect(env).toContain("export MY_DB_ACCOUNT='12345678901234567890'\n");
  expect(env).toContain("export MY_DB_RATE='1.10'\n");
  expect(env).toContain("export MY_DB_URI='db://x?n=7'\n");
});

test("the manifest of a Secret is YAML in which every value is as it was", () => {
  const manifest = credentialsText(answer, whose, { format: "secret" });
  const { metadata, data } = parse(manifest) as { metadata: object; data: Record<string, string> };
  expect(metadata).toEqual({ name: "my-db-app-1" });
  const decoded = Object.entries(data).map(([key, text]) => [key, String(Buffer.from(text, "base64"))]);
  expect(Object.fromEntries(decoded)).toEqual({
    account: "12345678901234567890",
    rate: "1.10",
    uri: "db://x?n=7",
    ports: '[1,{"large":12345678901234567890}]',
    on: "true",
  });
  expect(() => credentialsText('{"credentials":{"a b":1}}', whose, { format: "secret" })).toThrow(
    /cannot have the key/,
  );
});

test("what a terminal would obey comes out as an escape", () => {
  expect(credentialsText('{"credentials":{"a":"\u009b31m"}}', whose, { format: "json" })).toContain("\\u009b31m");
});

test("events are read however they are cut, and comments are none", async () => {
  const bytes = Buffer.from(
    ': following\n\nid: 1\ndata: {"ä":1}\n\n: quiet\n\nid: 2\r\ndata: {}\r\n\r\nid: 3\ndata: half',
  );
  for (const size of [1, 3, 1_000]) {
    const chunks = Array.from({ length: Math.ceil(bytes.length / size) }, (_, at) =>
      bytes.subarray(at * size, (at + 1) * size),
    );
    const events = [];
    for await (const event of readEvents(chunks)) events.push(event);
    expect(events).toEqual([
      { id: "1", data: '{"ä":1}' },
      { id: "2", data: "{}" },
    ]);
  }
});
