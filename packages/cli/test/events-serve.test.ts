import { randomBytes } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import pg from "pg";
import { beforeAll, expect, inject, test } from "vitest";
import { clusterTimeoutMs, type TestCluster } from "../../../tools/cluster/test-cluster.js";
import { until } from "../../../tools/until.js";
import { registerEventsCommands } from "../src/events/register-events-commands.js";
import { commandOf } from "./admin/admin-run.js";
import { eventsCluster, eventsLab, instanceIn } from "./events-lab.js";
import { answersAt, ask, folderWith, run, start } from "./program.js";

let cluster: TestCluster | undefined;
beforeAll(async () => {
  cluster = await eventsCluster();
}, clusterTimeoutMs);

test(
  "each namespace has a catalog of its own, for its own credential; events flow, and operators see it",
  async () => {
    if (cluster === undefined) return;
    const lab = await eventsLab(cluster);
    const { granted, other, application } = lab;
    const cwd = folderWith({ "osbert.yaml": lab.yaml });
    const broker = start(["events", "serve"], { cwd });
    const url = await answersAt(broker);
    const instance = instanceIn(granted, application);
    await instance.offered(url);
    const catalogOf = async (namespace: string, credential: string) =>
      (await ask(url, "GET", `/${namespace}/v2/catalog`, { credential })).status;
    expect(await catalogOf(granted, "other:o")).toBe(401);
    expect(await catalogOf(granted, "platform:p")).toBe(200);
    // Nothing was granted to it.
    expect(await catalogOf(other, "other:o")).toBe(404);

    expect(await instance.provision(url)).toBe(202);
    await instance.settles(url);
    await lab.trigger();
    await lab.arrives();
    await instance.isHealthy(url);

    const env = { OSBERT_ADMIN_URL: url, OSBERT_ADMIN_LOGIN: "ops:a" };
    const operator = (...args: string[]) => commandOf(registerEventsCommands, ["events", ...args], env);
    expect((await operator("namespaces")).stdout).toMatch(new RegExp(`${granted} +1 +present +${application}`));
    expect((await operator("show", granted)).stdout).toMatch(/one +\S+ +\S+ \(\S+\) +True +- /);
    expect(JSON.parse((await operator("show", granted, "--json")).stdout).flows).toHaveLength(1);
    expect((await operator("history", granted)).stdout).toMatch(/flow-condition .*Ready/);
    expect((await operator("look", granted, "--reason", "a test")).stdout).toContain("is looked at now");
    expect((await operator("applications")).stdout).toMatch(
      new RegExp(`${application} +osbert +${application} \\(events\\)`),
    );
    expect((await operator("findings")).status).toBe(0);
    const confirm = ["confirm", "--of", "grants", "--observation", "x", "--reason", "a test"];
    expect(await operator(...confirm)).toMatchObject({ status: 1, stderr: expect.stringContaining("no removal") });
    expect(await operator("show", "nowhere")).toMatchObject({ status: 1 });
    const metrics = await fetch(`${url}/metrics`, { headers: { authorization: `Basic ${btoa("watcher:w")}` } });
    expect(await metrics.text()).toContain(`osbert_flow_ready{namespace="${granted}",application="${application}"} 1`);

    await lab.withoutTrigger();
    expect(await instance.deprovision(url)).toBe(202);
    await instance.settles(url);
    await lab.brokerGoes();
    // A namespace's credential is changed while it runs.
    writeFileSync(join(cwd, "osbert.yaml"), lab.yaml.replace("password: g,", "password: another,"));
    await until("the new credential to count", async () => (await catalogOf(granted, "granted:another")) === 200);
    expect(await catalogOf(granted, "granted:g")).toBe(401);
    broker.signal("SIGTERM");
    expect(await broker.ended).toBe(0);
    // It was allowed all that it tried.
    expect(broker.stderr()).not.toMatch(/forbidden/i);
  },
  clusterTimeoutMs,
);

test(
  "two processes on one store have no leader: either answers, and one goes on when the other is killed",
  async () => {
    const postgresUrl = inject("postgresUrl");
    if (cluster === undefined || postgresUrl === null) return;
    const lab = await eventsLab(cluster);
    const schema = `events_${randomBytes(5).toString("hex")}`;
    const store = `store: { env: URL_OF_STORE }\ndatabase: { schema: ${schema} }\n`;
    const cwd = folderWith({ "osbert.yaml": `${lab.yaml}${store}` });
    const replica = async () => {
      const process = start(["events", "serve"], { cwd, env: { URL_OF_STORE: postgresUrl } });
      return { process, url: await answersAt(process) };
    };
    const [one, two] = [await replica(), await replica()];
    const instance = instanceIn(lab.granted, lab.application);
    await instance.offered(one.url);
    await instance.offered(two.url);
    expect(await instance.provision(one.url)).toBe(202);
    await instance.settles(two.url);
    await lab.trigger();
    await lab.arrives();
    one.process.signal("SIGKILL");
    await one.process.ended;
    // What somebody breaks is mended by who is left.
    await cluster.kubectl(["delete", "subscriptions.messaging.knative.dev", "--all", "-n", lab.integration]);
    await lab.arrives();
    await instance.isHealthy(two.url);
    expect(await instance.deprovision(two.url)).toBe(202);
    await instance.settles(two.url);
    const { kubectl } = cluster;
    const left = () => kubectl(["get", "subscriptions.messaging.knative.dev", "-n", lab.integration, "-o", "name"]);
    await until("the Subscription to go", async () => (await left()) === "");
    two.process.signal("SIGTERM");
    expect(await two.process.ended).toBe(0);
    const pool = new pg.Pool({ connectionString: postgresUrl });
    await pool.query(`drop schema ${schema} cascade`);
    await pool.end();
  },
  clusterTimeoutMs,
);

test("services from elsewhere beside those of the cluster are refused, and so is a cluster that is nowhere", async () => {
  const yaml = "module: services.ts\nplatforms: [a]\ncredentials: [{ username: a, password: b, platform: A_B }]\n";
  const both = await run(["events", "serve"], { cwd: folderWith({ "osbert.yaml": yaml }) });
  expect(both.status).toBe(2);
  expect(both.stderr).toMatch(/module.*cannot stand beside events/);
  expect(both.stderr).toMatch(/platforms.*cannot stand beside events/);
  expect(both.stderr).toMatch(/platform.*is not the name of a namespace/);
  const nowhere = await run(["events", "serve"], { cwd: folderWith({}), env: { KUBECONFIG: "/nowhere", PORT: "0" } });
  expect(nowhere.status).not.toBe(0);
  expect(nowhere.stderr).toMatch(/no cluster can be reached: .*\/nowhere.*cluster\.kubeconfig/);
});

test("what a service account has to be granted is printed, for the settings of a file", async () => {
  const cwd = folderWith({ "events.yaml": "events: { integrationNamespace: wires, policies: none }\n" });
  const { stdout, status } = await run(["events", "access", "events.yaml", "--namespace", "here"], { cwd });
  expect(status).toBe(0);
  expect(stdout.match(/^kind: .*$/gm)).toEqual(
    ["ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding", "Role", "RoleBinding"].map(
      (kind) => `kind: ${kind}`,
    ),
  );
  expect(stdout).toContain("namespace: wires");
});
