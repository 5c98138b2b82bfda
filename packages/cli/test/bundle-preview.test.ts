import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { answersAt, folderWith, run, start } from "./program.js";

const yaml = (name: string) =>
  `osbert: 1\nname: ${name}\nversion: 1.0.0\ndescription: Notes\ncommand: ["true"]\nplans: { small: { description: Small } }\n`;
const settings = (source: string) => `listen: { port: 0 }
credentials: [{ username: a, password: b }]
admin: { credentials: [{ username: ops, password: an-admin-s3cret }] }
bundles: { unsandboxed: true, sources: [{ name: ours, type: folder, path: bundles, ${source} }] }
`;

test("F5-21: osbert bundles preview shows what another file of settings would do, and reads no file but one beside the broker's own", async () => {
  const cwd = folderWith({
    "osbert.yaml": settings("default: allow"),
    "next.yaml": settings("default: deny, allow: [a]"),
    "unreadable.yaml": settings("default: allow").replace("path: bundles", "path: no-such-folder"),
    "wrong.yaml": settings("default: perhaps"),
  });
  for (const name of ["a", "b", "c", "d", "e"]) {
    mkdirSync(join(cwd, "bundles", name), { recursive: true });
    writeFileSync(join(cwd, "bundles", name, "osbert.yaml"), yaml(name));
  }
  const broker = start(["serve"], { cwd });
  const env = { OSBERT_ADMIN_URL: await answersAt(broker), OSBERT_ADMIN_LOGIN: "ops:an-admin-s3cret" };
  await broker.says(/source of bundles was read {"source":"ours","bundles":5}/);
  const preview = (config: string) => run(["bundles", "preview", "--config", config], { cwd, env });
  const next = await preview("next.yaml");
  expect([next.status, next.stderr]).toEqual([0, ""]);
  expect(next.stdout).toMatch(/ours +settings changed +- +reading complete/);
  expect(next.stdout).toMatch(/ours +guard would hold +- +the removal of 4 of 5/);
  const unreadable = await preview("unreadable.yaml");
  expect([unreadable.status, unreadable.stdout]).toEqual([1, expect.stringMatching(/ours +could not be read +- +\S/)]);
  const wrong = await preview("wrong.yaml");
  expect(wrong.status).not.toBe(0);
  expect(wrong.stderr).toMatch(/bundles\.sources\[0\]\.default/);
  for (const config of ["../next.yaml", "/etc/passwd", ".hidden", "nothing.yaml"])
    expect((await preview(config)).stderr, config).toMatch(/status +400/);
  expect((await run(["bundles", "sources"], { cwd, env })).stdout).toMatch(/ours +active +5 +0 +0 +0 /);
  broker.signal("SIGTERM");
  expect(await broker.ended).toBe(0);
}, 120_000);
