import { execFile } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { createServer, type Server } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { type Artifact, type Job, type Runner, RunnerError } from "@osbert/bundles";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { clusterTimeoutMs, sharedCluster } from "../../../tools/cluster/test-cluster.js";
import { required } from "../../../tools/required.js";
import { until } from "../../../tools/until.js";
import type { Cluster } from "../src/cluster/cluster.js";
import { jobName } from "../src/jobs/job-names.js";
import { kinds } from "../src/jobs/kinds.js";
import { type JobLab, openJobLab, ownJob } from "./job-lab.js";
import type { StarterOrders } from "./job-starter.fixture.js";

const cluster = required("tests of what happens to Jobs", await sharedCluster({ node: true }));
const { signal } = new AbortController();
const fixture = fileURLToPath(new URL("job-starter.fixture.ts", import.meta.url));

describe.skipIf(cluster === undefined)("a Job", { timeout: clusterTimeoutMs }, () => {
  let lab: JobLab;
  let runner: Runner;
  /** Programs that run call here, by the id of their job. */
  let server: Server;
  const calls: string[] = [];
  beforeAll(async () => {
    if (cluster === undefined) return;
    lab = await openJobLab(cluster);
    runner = await lab.runner();
    server = createServer((socket) =>
      socket.on("data", (text) => calls.push(String(text).trim())).on("error", () => undefined),
    );
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
  }, clusterTimeoutMs);
  afterAll(async () => {
    server?.close();
    await lab?.remove();
  });

  const runsOf = (id: string) => calls.filter((call) => call === id).length;
  const ends = (id: string) => runner.look(id, { waitMs: 90_000, signal });
  const told = (kind: string, id: string, output: string) =>
    lab.kubectl(["get", kind, "-n", lab.namespace, "-l", `osbert.io/job=${jobName(id)}`, "-o", output]);
  const isGone = async (kind: string, id: string) => (await told(kind, id, "name")) === "";
  const phases = (id: string) => told("pod", id, "jsonpath={.items[*].status.phase}");
  /** A program that calls by its id, and goes on with `rest`. */
  async function callingJob(rest: string, more: Parameters<typeof ownJob>[1] = {}): Promise<Job> {
    const id = randomUUID();
    const { port } = server.address() as AddressInfo;
    return bashJob(await lab.bundle(`echo ${id} >/dev/tcp/127.0.0.1/${port}\n${rest}\n`), { id, ...more });
  }
  function bashJob(artifact: Artifact, more: Parameters<typeof ownJob>[1] = {}): Job {
    const job = ownJob(artifact, more);
    return { ...job, spec: { ...job.spec, command: ["bash", "./run"] } };
  }

  // The writes of a start: record, Job, service account, two Secrets, the commit, the resume.
  for (const [writes, what] of [
    [1, "its record"],
    [2, "its Job, before its Secrets"],
    [5, "all that it needs, before the commit"],
    [6, "the commit, before it is resumed"],
    [7, "all"],
  ] as const) {
    test(`whose starter is killed after it has made ${what} runs once`, async () => {
      const job = await callingJob("exit 5");
      const { cluster: _, exec: __, files, ...options } = await lab.options();
      const orders: StarterOrders = {
        access: { kind: "kubeconfig", file: cluster?.facts.plainKubeconfig ?? "" },
        ...{ options, files: await files(job.artifact, signal), job, dieAfterWrites: writes },
      };
      const args = ["--conditions=@osbert/source", "--import", "tsx", fixture, JSON.stringify(orders)];
      const end = await new Promise((resolve) => execFile(process.execPath, args, (error) => resolve(error?.signal)));
      expect(end).toBe("SIGKILL");
      if (writes < 6) expect(await runner.look(job.id, { waitMs: 0, signal })).toEqual({ kind: "unknown" });
      await Promise.all([runner, await lab.runner()].map((each) => each.start(job, signal)));
      expect(await ends(job.id), await runner.log(job.id, 1_000)).toEqual({
        kind: "ended",
        exitCode: 5,
        cause: "exit",
      });
      expect(runsOf(job.id)).toBe(1);
      await until("nothing is left of it", async () => (await isGone("job", job.id)) && (await isGone("pod", job.id)));
    });
  }

  test("whose starter was asleep until it had run, ended and gone is not run again", async () => {
    const job = await callingJob("exit 0");
    const options = await lab.options();
    let wake = () => {};
    const sleeping = new Promise<void>((resolve) => {
      wake = resolve;
    });
    let isAsleep = false;
    const slow = new Proxy(options.cluster, {
      get(target, name: keyof Cluster) {
        const method = target[name] as (...args: unknown[]) => unknown;
        return async (...args: unknown[]) => {
          if (name === "create" && args[0] === kinds.job) {
            isAsleep = true;
            await sleeping;
          }
          return method.apply(target, args);
        };
      },
    });
    // A generator is no promise.
    const late = await lab.runner({
      cluster: Object.assign(Object.create(slow), { list: options.cluster.list.bind(options.cluster) }),
    });
    const started = late.start(job, signal);
    await until("it is asleep", async () => isAsleep);
    await runner.start(job, signal);
    expect(await ends(job.id)).toMatchObject({ kind: "ended", exitCode: 0 });
    await runner.forget(job.id);
    await until("its Job is gone", () => isGone("job", job.id));
    wake();
    await started;
    await until(
      "what it has made in vain is gone",
      async () => (await isGone("job", job.id)) && (await isGone("serviceaccount", job.id)),
    );
    expect(runsOf(job.id)).toBe(1);
  });

  test("that somebody deletes is lost when nothing of it runs, and not started again", async () => {
    const job = await callingJob("while :; do sleep 0.1; done");
    await runner.start(job, signal);
    await until("it runs", async () => runsOf(job.id) === 1);
    await lab.kubectl(["delete", "job", jobName(job.id), "-n", lab.namespace, "--wait=false"]);
    expect(await ends(job.id)).toMatchObject({ kind: "lost" });
    // The object of a pod may be there for a moment when all its containers have ended.
    expect(await phases(job.id)).not.toMatch(/Running|Pending/);
    await runner.start(job, signal);
    expect(await runner.look(job.id, { waitMs: 0, signal })).toMatchObject({ kind: "lost" });
    await until("its pod is gone", () => isGone("pod", job.id));
    expect(runsOf(job.id)).toBe(1);
  });

  test("that is given up and stopped at any moment of its start does not run on", async () => {
    for (let momentMs = 0; momentMs < 2_400; momentMs += 400) {
      const job = await callingJob("while :; do sleep 0.1; done");
      const unwanted = new AbortController();
      const started = runner.start(job, unwanted.signal).catch(() => undefined);
      await sleep(momentMs);
      unwanted.abort(new Error("cancelled"));
      await runner.stop(job.id);
      await started;
      expect((await runner.look(job.id, { waitMs: 0, signal })).kind).not.toBe("running");
      await until("nothing of it runs", () => isGone("pod", job.id));
    }
  });

  test("that needs too much memory ends for that, and what it said is kept", async () => {
    const job = bashJob(
      await lab.bundle(`echo '{"progress":"begun"}'; x=$(head -c 300000000 /dev/zero | tr '\\0' x)`),
      {
        limits: { memoryBytes: 67_108_864 },
      },
    );
    await runner.start(job, signal);
    expect(await ends(job.id)).toMatchObject({ kind: "ended", cause: "memory" });
    expect((await runner.output(job.id, 0)).lines).toEqual(['{"progress":"begun"}']);
  });

  test("whose end several find at the same time has said what it said", async () => {
    const job = await callingJob(`echo '{"state":{"a":1}}'; echo for people >&2`);
    await runner.start(job, signal);
    const several = await Promise.all(Array.from({ length: 4 }, () => lab.runner()));
    // Some of them come when the pod is gone already; what one cannot find out it asks again.
    const looks = several.map(async (each) => {
      await until("it has ended", async () => (await each.look(job.id, { waitMs: 10_000, signal })).kind === "ended");
      return [
        await each.look(job.id, { waitMs: 0, signal }),
        await each.output(job.id, 0),
        await each.log(job.id, 100),
      ];
    });
    for (const look of await Promise.all(looks))
      expect(look).toEqual([
        { kind: "ended", exitCode: 0, cause: "exit" },
        { lines: ['{"state":{"a":1}}'], next: 18 },
        "for people\n",
      ]);
    await runner.forget(job.id);
    const select = ["-n", lab.namespace, "-l", `osbert.io/job=${jobName(job.id)}`, "-o", "name"];
    await until("only its log is kept", async () => {
      return (await lab.kubectl(["get", "secret", ...select])).trim().split("\n").length === 1;
    });
  });

  test("says more than a Secret holds, to the last byte and in order", async () => {
    const job = bashJob(
      await lab.bundle(
        `for i in {1..60000}; do echo "{\\"progress\\":\\"line number $i\\"}"; done; printf '{"progress":"end"}'`,
      ),
      {
        limits: { outputBytes: 4_000_000 },
      },
    );
    await runner.start(job, signal);
    expect(await ends(job.id)).toMatchObject({ exitCode: 0, cause: "exit" });
    const lines: string[] = [];
    for (let from = 0; ; ) {
      const { lines: more, next } = await runner.output(job.id, from);
      if (next === from) break;
      lines.push(...more);
      from = next;
    }
    expect(lines).toHaveLength(60_001);
    expect(lines.every((line, at) => at === 60_000 || line === `{"progress":"line number ${at + 1}"}`)).toBe(true);
    expect(lines.at(-1)).toBe('{"progress":"end"}');
  });

  test("prints nothing into logs of the cluster, and nothing of its input is in an object that is no Secret", async () => {
    const secret = `s3cret-${randomUUID()}`;
    const job = await callingJob('cat "$OSBERT_INPUT"; cat "$OSBERT_INPUT" >&2; while :; do sleep 0.1; done', {
      input: { parameters: { password: secret } },
    });
    await runner.start(job, signal);
    await until("it has printed", async () => (await runner.log(job.id, 10_000)).includes("***"));
    const select = ["-n", lab.namespace, "-l", `osbert.io/job=${jobName(job.id)}`];
    const logs = await lab.kubectl(["logs", ...select, "--all-containers", "--tail=-1"]);
    const objects = await lab.kubectl([
      "get",
      "job,pod,configmap,serviceaccount,networkpolicy",
      ...select,
      "-o",
      "yaml",
    ]);
    expect(objects).toContain(job.id);
    expect(`${logs}${objects}`).not.toContain(secret);
    await runner.stop(job.id);
  });

  test("without a network has a policy that denies all, and no token", async () => {
    const job = bashJob(
      await lab.bundle("[ ! -e /var/run/secrets/kubernetes.io ] || exit 3; while [ ! -e /tmp/x ]; do sleep 0.1; done"),
      {
        limits: { network: false },
      },
    );
    await runner.start(job, signal);
    const policy = await lab.kubectl(["get", "networkpolicy", jobName(job.id), "-n", lab.namespace, "-o", "json"]);
    expect(JSON.parse(policy).spec).toEqual({
      ...{ podSelector: { matchLabels: { "osbert.io/job": jobName(job.id) } }, policyTypes: ["Ingress", "Egress"] },
    });
    await runner.stop(job.id);
    expect(await runner.look(job.id, { waitMs: 0, signal })).toMatchObject({ cause: "stopped" });
    await until("its policy is gone", () => isGone("networkpolicy", job.id));
  });

  test("of an image that needs nothing: its own command, and no shell", async () => {
    const image = await lab.image({ work: '#!/bin/sh\necho "{\\"progress\\":\\"$1 $2\\"}"\n' });
    const job = ownJob(image);
    await runner.start({ ...job, spec: { ...job.spec, command: ["work", "for"] } }, signal);
    expect(await ends(job.id)).toMatchObject({ exitCode: 0, cause: "exit" });
    expect((await runner.output(job.id, 0)).lines).toEqual(['{"progress":"for provision"}']);
  });

  test("whose program is not there says so", async () => {
    const job = ownJob(await lab.bundle(""));
    await runner.start({ ...job, spec: { ...job.spec, command: ["no-such-program"] } }, signal);
    expect(await ends(job.id)).toEqual({ kind: "ended", exitCode: 127, cause: "exit" });
    expect(await runner.log(job.id, 1_000)).toBe("no-such-program: there is no such program in the image\n");
  });

  test("whose image is not there says so, runs nothing, and can be stopped", async () => {
    const artifact = {
      kind: "image",
      image: `${lab.node.registry}/suite/none`,
      digest: `sha256:${"0".repeat(64)}`,
    } as const;
    const job = ownJob(artifact);
    const refused = await runner.start(job, signal).catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(RunnerError);
    expect(refused).toMatchObject({ failure: "image not found" });
    await runner.stop(job.id);
    expect(await runner.look(job.id, { waitMs: 0, signal })).toMatchObject({ kind: "ended", cause: "stopped" });
  });

  test("that no node has room for waits, and says so", async () => {
    const picky = await lab.runner({ podSpec: { nodeSelector: { "osbert.io/no": "such-node" } } });
    const job = ownJob(await lab.bundle("exit 0"));
    await expect(picky.start(job, signal)).rejects.toThrow(/no node has room for it/);
    expect(await runner.look(job.id, { waitMs: 0, signal })).toEqual({ kind: "running" });
    expect(await runner.log(job.id, 1_000)).toMatch(/^waits: no node has room for it/);
    await runner.stop(job.id);
  });

  test("that does not begin in time is given up", async () => {
    const hurried = await lab.runner({
      podSpec: { nodeSelector: { "osbert.io/no": "such-node" } },
      startWithinMs: 1_000,
    });
    const job = ownJob(await lab.bundle("exit 0"));
    await hurried.start(job, signal).catch(() => undefined);
    expect(await hurried.look(job.id, { waitMs: 60_000, signal })).toMatchObject({ kind: "ended", cause: "start" });
    expect(await runner.log(job.id, 1_000)).toMatch(/no node has room for it/);
  });

  test("of files that are too many is refused with what to do", async () => {
    const job = ownJob(await lab.bundle(Array.from({ length: 60_000 }, () => randomUUID()).join("\n")));
    await expect(runner.start(job, signal)).rejects.toThrow(/make an image of it/);
    expect(await runner.look(job.id, { waitMs: 0, signal })).toEqual({ kind: "unknown" });
  });
});
