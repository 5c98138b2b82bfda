import { randomUUID } from "node:crypto";
import type { Job, Runner } from "@osbert/bundles";
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import { apply, type Kubectl } from "../../../tools/cluster/kubectl.js";
import { clusterTimeoutMs, freshNamespace, sharedCluster } from "../../../tools/cluster/test-cluster.js";
import { required } from "../../../tools/required.js";
import { until } from "../../../tools/until.js";
import type { Cluster } from "../src/cluster/cluster.js";
import { ClusterError } from "../src/cluster/cluster-error.js";
import type { ClusterObject, ObjectKind } from "../src/cluster/cluster-object.js";
import { openCluster } from "../src/cluster/open-cluster.js";
import type { PodExec } from "../src/cluster/pod-exec.js";
import { JobClearing } from "../src/jobs/job-clearing.js";
import { jobName } from "../src/jobs/job-names.js";
import { JobRecords } from "../src/jobs/job-record.js";
import { openJobRunner } from "../src/jobs/job-runner.js";
import { fillOptions, type JobRunnerEvent, type JobRunnerOptions } from "../src/jobs/job-runner-options.js";
import { kinds } from "../src/jobs/kinds.js";
import { ownJob } from "./job-lab.js";

const shared = required("tests of tricks that a cluster plays on Jobs", await sharedCluster());
const { signal } = new AbortController();
const hourMs = 3_600_000;

/** No node is needed: the tests are the kubelet, and say what has become of pods. */
describe.skipIf(shared === undefined)("a Job", { timeout: clusterTimeoutMs }, () => {
  let cluster: Cluster;
  const [namespace, target] = [freshNamespace("tricks"), freshNamespace("user")];
  const administrator: Kubectl = (args, input) =>
    shared?.kubectl(args, input) ?? Promise.reject(new Error("there is no cluster"));
  const kubectl = (...args: readonly string[]) => administrator(args);
  beforeAll(async () => {
    if (shared === undefined) return;
    cluster = await openCluster({ access: { kind: "kubeconfig", file: shared.facts.kubeconfig } });
    const named = (name: string) => ({ apiVersion: "v1", kind: "Namespace", metadata: { name } });
    await apply(shared.kubectl, [named(namespace), named(target)]);
  }, clusterTimeoutMs);
  afterAll(async () => {
    cluster?.close();
    if (shared !== undefined) await kubectl("delete", "namespace", namespace, target, "--wait=false");
  });
  afterEach(() => vi.restoreAllMocks());

  /** The same cluster, where something happens before an object is made. */
  const beforeCreating = (happens: (kind: ObjectKind, object: ClusterObject) => void | Promise<void>): Cluster =>
    new Proxy(cluster, {
      get(real, name: keyof Cluster) {
        if (name !== "create") return (real[name] as (...args: unknown[]) => unknown).bind(real);
        return async (...[kind, object, more]: Parameters<Cluster["create"]>) => {
          await happens(kind, object);
          return real.create(kind, object, more);
        };
      },
    });
  /** What the container says that keeps what a bundle prints. */
  const keeper = { isDone: true, out: "" };
  const exec: PodExec = {
    run: async (_, { command }) => {
      if (command.some((word) => word.includes("echo stopped"))) throw new ClusterError("unavailable");
      const isLook = command.some((word) => word.includes("echo done"));
      const said = command.includes("out") ? keeper.out : "";
      return { exitCode: 0, output: Buffer.from(isLook ? `${keeper.isDone ? "done" : "open"}\nexit\n0\n0\n` : said) };
    },
  };
  const options = (more: Partial<JobRunnerOptions> = {}): JobRunnerOptions => ({
    ...{ cluster, exec, namespace, helperImage: "helper", baseImage: null, sandbox: "never", graceMs: 100 },
    files: () => Promise.reject(new Error("there are none")),
    ...more,
  });
  const imageJob = (more: Partial<Job> = {}): Job => {
    const job = ownJob({ kind: "image", image: "registry.example/bundle", digest: `sha256:${"0".repeat(64)}` }, {});
    return { ...job, spec: { ...job.spec, command: ["work"] }, ...more };
  };
  const podName = async (id: string) =>
    (await kubectl("get", "pod", "-n", namespace, "-l", `osbert.io/job=${jobName(id)}`, "-o", "name")).trim();
  async function becomes(id: string, bundle: object): Promise<void> {
    await until("there is a pod", async () => (await podName(id)) !== "");
    const status = (name: string, state: object) => ({
      ...{ name, state, image: "x", imageID: "", ready: true, restartCount: 0 },
    });
    const running = { running: { startedAt: new Date().toISOString() } };
    const patch = {
      status: { phase: "Running", containerStatuses: [status("bundle", bundle), status("keeper", running)] },
    };
    const words = ["--subresource=status", "--type=merge", "-p", JSON.stringify(patch)];
    await kubectl("patch", await podName(id), "-n", namespace, ...words);
  }
  /** Begins it, and is the kubelet that runs it. */
  async function begins(runner: Runner, job: Job): Promise<void> {
    // There is no node, which it says.
    await runner.start(job, signal).catch(() => undefined);
    await becomes(job.id, { running: { startedAt: new Date().toISOString() } });
  }
  const ended = { terminated: { exitCode: 0, reason: "Completed", finishedAt: new Date().toISOString() } };

  test("that runs goes on when the clock of the broker is an hour ahead, or the kubelet does not say since when", async () => {
    const runner = await openJobRunner(options());
    const job = imageJob();
    await begins(runner, job);
    vi.spyOn(Date, "now").mockReturnValue(Date.now() + hourMs);
    expect(await runner.look(job.id, { waitMs: 0, signal })).toEqual({ kind: "running" });
    await becomes(job.id, { running: {} });
    expect(await runner.look(job.id, { waitMs: 0, signal })).toEqual({ kind: "running" });
    await runner.stop(job.id);
  });

  test("that waits for its image goes on waiting when the clock of the broker is an hour ahead", async () => {
    const runner = await openJobRunner(options());
    const job = imageJob();
    const started = runner.start(job, signal).catch(() => undefined);
    await becomes(job.id, { waiting: { reason: "ErrImagePull", message: "later" } });
    await started;
    vi.spyOn(Date, "now").mockReturnValue(Date.now() + hourMs);
    expect(await runner.look(job.id, { waitMs: 0, signal })).toEqual({ kind: "running" });
    await runner.stop(job.id);
  });

  test("whose last words are still on their way is not settled without them", async () => {
    const runner = await openJobRunner(options());
    const job = imageJob();
    await begins(runner, job);
    Object.assign(keeper, { isDone: false, out: '{"progress":"half of it"}\n' });
    await becomes(job.id, ended);
    expect(await runner.look(job.id, { waitMs: 15_000, signal })).toEqual({ kind: "running" });
    Object.assign(keeper, { isDone: true, out: '{"progress":"half of it"}\n{"credentials":{"password":"x"}}\n' });
    expect(await runner.look(job.id, { waitMs: 15_000, signal })).toMatchObject({ kind: "ended", exitCode: 0 });
    expect((await runner.output(job.id, 0)).lines).toHaveLength(2);
  });

  test("whose words the cluster refuses to keep leaves none of them behind, however often it is tried", async () => {
    const job = imageJob();
    Object.assign(keeper, { isDone: true, out: `${"x".repeat(1_200_000)}\n` });
    let isFull = true;
    const full = beforeCreating((kind, { metadata }) => {
      if (isFull && kind === kinds.secret && metadata.name.endsWith("-1"))
        throw new ClusterError("forbidden", "exceeded quota");
    });
    const runner = await openJobRunner(options({ cluster: full }));
    await begins(runner, job);
    await becomes(job.id, ended);
    for (let tries = 0; tries < 3; tries++)
      await expect(runner.look(job.id, { waitMs: 0, signal })).rejects.toThrow(/quota/);
    const secrets = await kubectl(
      ...["get", "secret", "-n", namespace, "-l", `osbert.io/job=${jobName(job.id)}`, "-o", "name"],
    );
    // Its input alone.
    expect(secrets.trim()).toBe(`secret/${jobName(job.id)}`);
    isFull = false;
    expect(await runner.look(job.id, { waitMs: 0, signal })).toMatchObject({ kind: "ended", exitCode: 0 });
  });

  /** A starter that falls asleep before it makes an object of this kind. */
  function sleeper(kind: unknown): { readonly cluster: Cluster; readonly asleep: Promise<void>; wake: () => void } {
    let [wake, fallAsleep] = [() => {}, () => {}];
    const sleeping = new Promise<void>((resolve) => {
      wake = resolve;
    });
    const asleep = new Promise<void>((resolve) => {
      fallAsleep = resolve;
    });
    const slow = beforeCreating(async (made) => {
      if (made !== kind) return;
      fallAsleep();
      await sleeping;
    });
    return { cluster: slow, asleep, wake };
  }

  test("that was stopped while its starter slept leaves no role behind in the namespace of the user", async () => {
    const role = "view";
    const late = sleeper(kinds.roleBinding);
    const runner = await openJobRunner(options({ role }));
    const job = imageJob({ input: { instance: { context: { namespace: target } } } });
    const started = (await openJobRunner(options({ role, cluster: late.cluster }))).start(job, signal);
    await late.asleep;
    await runner.stop(job.id);
    late.wake();
    await started;
    const left = () => kubectl("get", "rolebinding", "-n", target, "-o", "name");
    await until("there is no role of it", async () => (await left()).trim() === "");
    expect(await runner.look(job.id, { waitMs: 0, signal })).toMatchObject({ kind: "ended", cause: "stopped" });
  });

  const clearing = (nowMs: () => number, events: JobRunnerEvent[] = []) => {
    const settings = fillOptions(options({ observe: (event) => events.push(event) }));
    const records = new JobRecords(cluster, namespace);
    return { clearing: new JobClearing(settings, records, nowMs), records };
  };

  test("whose start is tried for hours is not given up by others; one that nobody tries is", async () => {
    let nowMs = 0;
    const { clearing: sweeper, records } = clearing(() => nowMs);
    const [tried, abandoned] = [imageJob(), imageJob()];
    const refusing = beforeCreating((kind) => {
      if (kind === kinds.job) throw new ClusterError("forbidden", "exceeded quota");
    });
    const starter = await openJobRunner(options({ cluster: refusing }));
    await expect(starter.start(abandoned, signal)).rejects.toThrow(/quota/);
    vi.spyOn(Date, "now").mockReturnValue(Date.now() + 3 * hourMs);
    for (let hours = 0; hours < 3; hours++) {
      await expect(starter.start(tried, signal)).rejects.toThrow(/quota/);
      nowMs = hours * hourMs;
      await sweeper.sweep();
    }
    expect((await records.read(tried.id))?.state.kind).toBe("placed");
    expect((await records.read(abandoned.id))?.state.kind).toBe("ended");
  });

  test("of which somebody has spoilt the record does not stop others from being found, started and swept", async () => {
    const events: JobRunnerEvent[] = [];
    const runner = await openJobRunner(options({ observe: (event) => events.push(event) }));
    const job = imageJob();
    await begins(runner, job);
    await kubectl("create", "configmap", "spoilt", "-n", namespace, "--from-literal=job={", "--from-literal=state={");
    const labels = ["osbert.io/job-state=started", "osbert.io/job-clear=due", "osbert.io/job=x"];
    await kubectl("label", "configmap", "spoilt", "-n", namespace, ...labels);
    expect((await runner.jobs()).map(({ id }) => id)).toContain(job.id);
    const { clearing: sweeper } = clearing(() => 0);
    await sweeper.sweep();
    expect(events).toContainEqual(expect.objectContaining({ kind: "not read", job: null }));
    await kubectl("delete", "configmap", "spoilt", "-n", namespace);
    await runner.stop(job.id);
  });

  test("of which somebody has put the id on a namespace of another name does not take that along", async () => {
    const runner = await openJobRunner(options());
    const job = imageJob();
    await begins(runner, job);
    await runner.stop(job.id);
    const [foreign, strange] = [freshNamespace("foreign"), freshNamespace("strange")];
    const named = (name: string, id: string) => ({
      ...{ apiVersion: "v1", kind: "Namespace" },
      metadata: { name, labels: { "osbert.io/job": "x" }, annotations: { "osbert.io/job-id": id } },
    });
    await apply(administrator, [named(foreign, job.id), named(strange, "no id/../")]);
    vi.spyOn(Date, "now").mockReturnValue(Date.now() + 2 * hourMs);
    const settings = fillOptions(options({ sandbox: "classic" }));
    await new JobClearing(settings, new JobRecords(cluster, namespace), () => 0).sweep();
    const found = await cluster.read(kinds.namespace, { namespace: "", name: foreign });
    expect(found?.metadata.deletionTimestamp).toBeUndefined();
    await kubectl("delete", "namespace", foreign, strange, "--wait=false");
  });

  test("does not run in a namespace of its name that somebody else has made", async () => {
    const runner = await openJobRunner(options({ sandbox: "always" }));
    const job = imageJob();
    const foreign = { apiVersion: "v1", kind: "Namespace", metadata: { name: jobName(job.id) } };
    await apply(administrator, [foreign]);
    await expect(runner.start(job, signal)).rejects.toThrow(/somebody else/);
    await kubectl("delete", "namespace", jobName(job.id), "--wait=false");
  });

  test("whose input is more than a Secret holds is refused at once, and nothing is written", async () => {
    const runner = await openJobRunner(options());
    const job = imageJob({ id: randomUUID(), input: { parameters: { text: "x".repeat(1_100_000) } } });
    await expect(runner.start(job, signal)).rejects.toThrow(/input is 1100\d\d\d bytes/);
    expect(await cluster.read(kinds.configMap, { namespace, name: jobName(job.id) })).toBeUndefined();
  });
});
