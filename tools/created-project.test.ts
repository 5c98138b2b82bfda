import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { provideContainers } from "./containers.js";
import { type NodeVersion, provideNode, provideThisNode } from "./node-versions.js";
import { pack } from "./pack.js";
import { required } from "./required.js";
import { freePort } from "./server-process.js";
import { until } from "./until.js";

// What `npm create osbert` makes, from the tarballs and with the command of the README: its test passes, it starts, and its Dockerfile makes an image that runs.

const run = promisify(execFile);
const scratch = mkdtempSync(join(tmpdir(), "osbert-created-"));
const project = join(scratch, "my-broker");
const readme = readFileSync(join(dirname(fileURLToPath(import.meta.url)), "..", "README.md"), "utf8");
let here: NodeVersion;

describe("a project that was just created", () => {
  beforeAll(async () => {
    const checkout = join(scratch, "osbert");
    pack(join(checkout, "tarballs"));
    here = await provideThisNode();
    const [command = ""] = /^npm exec .*create-osbert .*$/m.exec(readme) ?? [];
    const { stdout } = await run("sh", ["-ec", command], { cwd: checkout, env: here.env });
    expect(stdout).toContain("cd ../my-broker");
    await run("npm", ["install", "--engine-strict"], { cwd: project, env: here.env });
  }, 600_000);
  afterAll(() => rmSync(scratch, { recursive: true, force: true }));

  test("has a service, a test, a Dockerfile and a README", () => {
    const files = readdirSync(project);
    expect(files).toEqual(expect.arrayContaining(["Dockerfile", "README.md", "osbert.yaml", "src"]));
    expect(readdirSync(join(project, "src"))).toEqual(expect.arrayContaining(["services.ts", "services.test.ts"]));
  });

  test("passes its own test", { timeout: 240_000 }, async () => {
    const { stdout } = await run("npm", ["test"], { cwd: project, env: here.env });
    expect(stdout).toMatch(/pass 1\n/);
  });

  test("starts, and greets", { timeout: 240_000 }, async () => {
    const url = `http://127.0.0.1:${await freePort()}`;
    const child = spawn("npm", ["start"], {
      cwd: project,
      env: { ...here.env, PORT: new URL(url).port },
      stdio: ["ignore", "pipe", "inherit"],
      detached: true,
    });
    const end = (signal: NodeJS.Signals) => {
      try {
        if (child.pid !== undefined) process.kill(-child.pid, signal);
      } catch {
        // It has ended.
      }
    };
    onTestFinished(() => end("SIGKILL"));
    let printed = "";
    for await (const line of createInterface(child.stdout)) {
      printed += `${line}\n`;
      if (line.includes("answers at")) break;
    }
    expect(await greeting(url, shownCredential(printed))).toBe("Good day, b1");
    end("SIGTERM");
    await once(child, "exit");
  });

  test("becomes an image that runs as nobody, on a file system that it cannot write, and says that it is healthy", {
    timeout: 900_000,
  }, async () => {
    const containers = required("the created project's image", provideContainers());
    const node = required("the created project's image", await provideNode(22));
    if (containers === undefined || node === undefined) return;
    onTestFinished(() => containers.remove(), 120_000);
    const { podman } = containers;
    const image = await containers.build(project, node);
    const url = `http://127.0.0.1:${await freePort()}`;
    // As the Dockerfile says, but on a port of this machine: not every machine lets containers have a network of their own.
    const options = /docker run (.*) -p \S+ \S+$/m.exec(readFileSync(join(project, "Dockerfile"), "utf8"))?.[1];
    expect(options).toContain("--read-only");
    const asked = (options ?? "").split(" ");
    const broker = ["--detach", "--name", "broker", ...asked, "--env", `PORT=${new URL(url).port}`, image];
    await podman("run", ...broker);
    await until("the container to answer", async () => (await fetch(`${url}/healthz`)).ok);
    await podman("healthcheck", "run", "broker");
    expect(await podman("exec", "broker", "id", "-u")).toBe("65532");
    await expect(podman("exec", "broker", "touch", "/app/file")).rejects.toThrow(/Read-only file system/);
    const credential = shownCredential(await podman("logs", "broker"));
    expect(await greeting(url, credential)).toBe("Good day, b1");

    // The journal is in the volume: another container goes on with it.
    await podman("stop", "broker");
    expect(await podman("inspect", "broker", "--format", "{{.State.ExitCode}}")).toBe("0");
    await podman("rm", "broker");
    await podman("run", ...broker);
    await until("the container to answer", async () => (await fetch(`${url}/healthz`)).ok);
    expect(await greeting(url, credential)).toBe("Good day, b1");
    await podman("kill", "--signal", "KILL", "broker");
    await expect(podman("healthcheck", "run", "broker")).rejects.toThrow();
  });
});

function shownCredential(printed: string): string {
  const [, credential = ""] = /it is shown only now: (\S+)/.exec(printed) ?? [];
  return credential;
}

/** Makes the same instance and binding each time, and answers with what the binding says. */
async function greeting(url: string, credential: string): Promise<unknown> {
  const ask = async (method: string, path: string, body?: object) => {
    const response = await fetch(`${url}/v2/${path}`, {
      method,
      ...(body !== undefined && { body: JSON.stringify(body) }),
      headers: {
        authorization: `Basic ${Buffer.from(credential).toString("base64")}`,
        "content-type": "application/json",
        "x-broker-api-version": "2.17",
      },
    });
    return JSON.parse(await response.text());
  };
  const { services } = await ask("GET", "catalog");
  const ids = { service_id: services[0].id, plan_id: services[0].plans[0].id };
  const place = { organization_guid: "o", space_guid: "s" };
  await ask("PUT", "service_instances/i1", { ...ids, ...place, parameters: { language: "en" } });
  return (await ask("PUT", "service_instances/i1/service_bindings/b1", ids)).credentials?.words;
}
