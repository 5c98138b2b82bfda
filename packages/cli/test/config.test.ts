import { expect, test } from "vitest";
import { folderWith, run } from "./program.js";

test("osbert config tells every value and where it comes from, without the secrets", async () => {
  const yaml = `module: s.ts
store: { file: url }
log:
  level: warn
credentials:
  - username: a
    password: hunter2
keys: { env: RING }
`;
  const cwd = folderWith({ "o.yaml": yaml, "s.ts": "", url: "postgres://u:hunter2@h/d\n" });
  const ring = "a:aHVudGVyMmh1bnRlcjJodW50ZXIyaHVudGVyMmh1bnQ=";
  const env = { RING: ring, PORT: "9", OSBERT_ADMIN_CREDENTIALS: "root:hunter2" };
  const text = await run(["config", "o.yaml"], { cwd, env });
  expect([text.status, text.stderr]).toEqual([0, ""]);
  const lines = text.stdout.split("\n").map((line) => line.split(/ {2,}/));
  expect(lines).toContainEqual(["store", "postgres://u:***@h/d", "o.yaml:2:8"]);
  expect(lines).toContainEqual(["log.level", "warn", "o.yaml:4:10"]);
  expect(lines).toContainEqual(["credentials[0].password", "***", "o.yaml:7:15"]);
  expect(lines).toContainEqual(["listen.port", "9", "$PORT"]);
  expect(lines).toContainEqual(["listen.host", "127.0.0.1", "default"]);

  const json = await run(["config", "o.yaml", "--json"], { cwd, env });
  const values = JSON.parse(json.stdout) as Record<string, unknown>;
  expect(values["retention.failed"]).toEqual({ value: "90d", from: "default" });
  expect(values.keys).toEqual({ value: "***", from: "o.yaml:8:7" });
  expect(values["admin.credentials[0].username"]).toEqual({ value: "root", from: "$OSBERT_ADMIN_CREDENTIALS" });
  for (const { stdout, stderr } of [text, json]) expect(stdout + stderr).not.toMatch(/hunter2|aHVudGVy/);
});

test("osbert config names a module that is not there, and defaults start from the folder of the file", async () => {
  const cwd = folderWith({ "o.yaml": "module: none.ts\n" });
  const missing = await run(["config", "o.yaml"], { cwd });
  expect(missing.stderr).toMatch(/^o.yaml:1:9 module: there is no file .*none.ts\n$/);
  expect(missing.status).toBe(2);
  const other = folderWith({ "o.yaml": "module: s.ts\n", "s.ts": "" });
  const { stdout } = await run(["config", `${other}/o.yaml`], { cwd });
  expect(stdout).toMatch(new RegExp(`^data +${other}/.osbert`, "m"));
});
