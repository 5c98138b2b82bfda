import { type ChildProcess, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { database, gate, realBroker } from "./real-broker.js";

const entry = fileURLToPath(new URL("../run-main.ts", import.meta.url));

/** The real program as a process. */
function start(args: readonly string[], env: Readonly<Record<string, string>> = {}) {
  const child: ChildProcess = spawn(
    process.execPath,
    ["--conditions=@osbert/source", "--import", "tsx", entry, ...args],
    {
      env: { PATH: process.env.PATH, ...env },
      stdio: ["ignore", "pipe", "pipe"],
    },
  );
  onTestFinished(() => void child.kill("SIGKILL"));
  let stdout = "";
  let stderr = "";
  const watchers: (() => void)[] = [];
  child.stdout?.setEncoding("utf8").on("data", (text: string) => {
    stdout += text;
  });
  child.stderr?.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
    for (const watch of watchers) watch();
  });
  const ended = new Promise<{ status: number | null; stdout: string; stderr: string }>((resolve) => {
    child.on("close", (status) => resolve({ status, stdout, stderr }));
  });
  const says = (text: string) =>
    new Promise<void>((resolve) => {
      const watch = () => stderr.includes(text) && resolve();
      watchers.push(watch);
      watch();
    });
  return { child, ended, says };
}

test("the program ends with 0, 1, 2 and 4 as its help says, with data alone on the standard output", async () => {
  const { env } = await realBroker([database()]);
  const runs = await Promise.all([
    start(["catalog", "--json"], env).ended,
    start(["fetch", "nothing"], env).ended,
    start(["provison"], env).ended,
    start(["catalog", "--wrong"], env).ended,
    start(["catalog", "--url", "http://127.0.0.1:9"]).ended,
  ]);
  expect(runs.map(({ status }) => status)).toEqual([0, 1, 2, 2, 4]);
  expect(JSON.parse(runs[0]?.stdout ?? "")).toMatchObject({ services: [{ name: "database" }] });
  for (const { stdout } of runs.slice(1)) expect(stdout).toBe("");
  for (const { stderr } of runs) expect(stderr).not.toMatch(/^ +at /m);
});

test("help is there, with examples and the meaning of the status", async () => {
  const { status, stdout } = await start(["help", "provision"]).ended;
  expect(status).toBe(0);
  expect(stdout).toContain("Examples:");
  expect(stdout).toContain("Exit status:\n  0 ");
});

test("a real Ctrl-C ends the waiting with 3, and the operation goes on", async () => {
  const waits = gate();
  const { env } = await realBroker([database(waits)]);
  const { child, ended, says } = start(["provision", "my-db", "--plan", "small", "-p", "language=de"], env);
  await says("copying the data");
  child.kill("SIGINT");
  const ran = await ended;
  expect(ran).toMatchObject({ status: 3, stdout: "" });
  expect(ran.stderr).toContain("osbert last-operation my-db --operation");
  waits.open();
  expect(await start(["last-operation", "my-db", "--wait", "--json"], env).ended).toMatchObject({ status: 0 });
});

test("a reader that has seen enough is no error", async () => {
  const { env } = await realBroker([database()]);
  const { child, ended } = start(["catalog"], env);
  child.stdout?.destroy();
  const { stderr } = await ended;
  expect(stderr).toBe("");
});
