import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createHandler } from "@osbert/broker/http";
import { testBroker } from "@osbert/broker/testing";
import { systemClock } from "@osbert/journal";
import { memoryStore } from "@osbert/journal/memory";
import { expect, onTestFinished, test } from "vitest";
import { openProcessRunner, type Runner, RunnerError } from "../src/index.js";
import { maskLog } from "../src/runners/mask-log.js";
import { redact, secretParts } from "../src/runners/redact.js";
import { bundleFolder, folderServices } from "./folder-services.js";

test("secrets are masked as they are, escaped as in JSON or an address, and in base64; also numbers", () => {
  const secret = 'pa"ss/wörd 1';
  const shown = (text: string) => redact(text, [{ deep: [{ password: secret, pin: 12345678, short: "abc" }] }]);
  for (const form of [
    secret,
    JSON.stringify(secret),
    encodeURIComponent(secret),
    Buffer.from(secret).toString("base64"),
    "12345678",
  ])
    expect(shown(`with ${form} it is`)).toMatch(/^with "?\*{3}=*"? it is$/);
  expect(shown("abc and 123 stay")).toBe("abc and 123 stay");
});

test("of a classic bundle its parameters, state and credentials are masked, and not the words of the contract", () => {
  const input = {
    ...{ action: "provision", idempotencyKey: "12-0f3c2a-provision", bundleVersion: "1.20.300" },
    ...{ cluster: "kubernetes", namespace: "team-space", _apb_plan_id: "default", _apb_service_class_id: "the-class" },
    ...{ _apb_service_instance_id: "the-instance", _apb_service_binding_id: "the-binding" },
    ...{ admin_password: "hunter22", mode: "provision", _apb_state: { key: "state-key" } },
    ...{ _apb_provision_creds: { user: "the-user" }, _apb_bind_creds: { user: "bind-user" } },
  };
  const shown = (text: string) => redact(text, secretParts("apb", input));
  const words = "provision default in kubernetes team-space: the-class the-instance the-binding 12-0f3c2a-provision";
  expect(shown(words)).toBe(words);
  expect(shown("hunter22 state-key the-user bind-user")).toBe("*** *** *** ***");
});

test("what signs a user in to a dashboard is masked in logs, and the rest of its address is not", async () => {
  const address = "https://anna-user:pa%2Fss-word@one.example/db?token=s3cret%20token&x=1#key-in-fragment";
  const { flow, ask } = await start(
    `echo "open ${address} as anna-user with pa/ss-word, s3cret token" >&2; echo '{"dashboard":"${address}"}'`,
  );
  expect((await flow.provision("i1", { acceptsIncomplete: false })).body.dashboard_url).toBe(address);
  const [job] = (await ask("/jobs?instance=i1")).body.items;
  expect((await ask(`/jobs/${job.job}/log?instance=i1`)).body.log).toBe(
    "open https://***:***@one.example/db?token=***&x=1#*** as *** with ***, ***\n",
  );
});

/** A broker with one bundle, and its admin API. */
async function start(script: string, change: (runner: Runner) => Runner = (runner) => runner) {
  const [bundles, jobs] = [await bundleFolder(), await bundleFolder()];
  await mkdir(join(bundles, "notes"));
  const yaml = "osbert: 1\nname: notes\nversion: 1.0.0\ndescription: Notes\ncommand: [sh, ./run.sh]\n";
  await writeFile(join(bundles, "notes", "osbert.yaml"), `${yaml}plans: { small: { description: A small one } }\n`);
  await writeFile(join(bundles, "notes", "run.sh"), script);
  const services = await folderServices(bundles, {
    runner: async (files) => change(await openProcessRunner({ directory: jobs, files, unsandboxed: true })),
  });
  const admin = { credentials: [{ username: "ann", password: "the-admin-s3cret" }] };
  const flow = await testBroker({
    services,
    stderr: "nothing",
    store: memoryStore(),
    journal: { clock: systemClock },
    wire: (broker, options) => createHandler(broker, { ...options, admin }),
  });
  onTestFinished(() => flow.stop());
  await expect.poll(async () => (await flow.request("GET", "/v2/catalog")).body?.services?.length).toBe(1);
  const authorization = `Basic ${Buffer.from("ann:the-admin-s3cret").toString("base64")}`;
  const ask = (path: string) => flow.request("GET", `/admin/v1/bundles${path}`, { headers: { authorization } });
  return { flow, jobs, ask };
}

test("of a job that waits to be tried again the last error is shown", async () => {
  const away = async () => {
    throw new RunnerError("no engine", "it is away");
  };
  const { flow, ask } = await start("exit 0", (runner) => ({ ...maskLog(runner, () => []), start: away }));
  expect((await flow.provision("i1", { acceptsIncomplete: true })).status).toBe(202);
  const error = async () => (await ask("/jobs?instance=i1")).body.items?.[0]?.error;
  await expect.poll(error, { timeout: 20_000 }).toMatch(/it is away/);
});

test("the last part of the log of an action that failed is kept with its operation, without secrets; of one that went well, none is", async () => {
  const noisy = 'i=0; while [ $i -lt 3000 ]; do echo "line $i of pass-phrase" >&2; i=$((i+1)); done';
  const { flow, jobs, ask } = await start(`${noisy}\n[ "$1" = provision ] && exit 3; exit 0`);
  const asked = { parameters: { phrase: "pass-phrase" }, acceptsIncomplete: false };
  expect((await flow.provision("i1", asked)).status).toBe(500);
  expect((await ask("/jobs?instance=nobody")).status).toBe(404);
  expect((await ask("/jobs")).status).toBe(400);
  const [job] = (await ask("/jobs?instance=i1")).body.items;
  expect(job).toMatchObject({ action: "provision", state: "failed", log_kept: true, binding: null });
  const here = (await ask(`/jobs/${job.job}/log?instance=i1`)).body;
  expect(here).toMatchObject({ from: "runner" });
  expect(here.log.split("\n")).toHaveLength(3_001);
  // As on another machine, or after the runner has forgotten it.
  await rm(join(jobs, "jobs", job.job), { recursive: true });
  const kept = (await ask(`/jobs/${job.job}/log?instance=i1`)).body;
  expect(kept.from).toBe("journal");
  expect(kept.log).toMatch(/line 2999 of \*\*\*\n$/);
  expect(kept.log.length).toBeGreaterThan(10_000);
  expect(kept.log.length).toBeLessThanOrEqual(16_384);
  expect(kept.log).not.toContain("pass-phrase");
  expect((await flow.deprovision("i1", { acceptsIncomplete: false })).status).toBe(200);
  const all = (await ask("/jobs?instance=i1")).body.items;
  expect(all.map((each: { action: string; state: string; log_kept: boolean }) => [each.action, each.log_kept])).toEqual(
    [
      ["deprovision", false],
      ["provision", true],
    ],
  );
});
