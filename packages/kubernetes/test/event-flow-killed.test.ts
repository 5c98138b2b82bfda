import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { beforeAll, expect, inject, onTestFinished, test } from "vitest";
import { apply } from "../../../tools/cluster/kubectl.js";
import {
  clusterTimeoutMs,
  freshNamespace,
  sharedCluster,
  type TestCluster,
} from "../../../tools/cluster/test-cluster.js";
import { required } from "../../../tools/required.js";
import { until } from "../../../tools/until.js";
import { FlowLab } from "./flow-lab.js";
import type { FlowProcessConfig, Halt } from "./flow-process.js";
import { FlowProcess, FlowProcesses, platform } from "./flow-processes.js";
import type { Loose } from "./loose.js";

const minutes = 400_000;
let cluster: TestCluster | undefined;
beforeAll(async () => {
  cluster = required("tests of killed brokers of event flow", await sharedCluster({ knative: true }));
}, clusterTimeoutMs);

const shops = ["alpha", "beta"];

/** Where all of it ends up if a process dies there: around every kind of write, and between the steps of operations. */
const halts: readonly Halt["at"][] = [
  "before apply of Broker",
  "after apply of Broker",
  "before apply of Subscription",
  "after apply of Subscription",
  "after step is recorded",
  "before remove of Subscription",
  "after remove of Subscription",
  "before remove of Broker",
  "after remove of Broker",
  "before operation is settled",
];

/** A lab with so many namespaces; the last one has a Broker of a user's own. */
async function openLab(test: TestCluster, count: number) {
  const lab = await FlowLab.open(test);
  onTestFinished(() => lab.close());
  for (const name of shops) await lab.channel(name);
  const namespaces = await Promise.all(Array.from({ length: count }, () => lab.namespace(false)));
  return { lab, namespaces };
}

function configOf(lab: FlowLab, namespaces: readonly string[], store: FlowProcessConfig["store"]): FlowProcessConfig {
  const { kubeconfig } = lab.test.facts;
  // A look at everything from time to time, so that nobody has to wait for ten minutes for a wake-up that died with its process.
  const settings = { ...lab.settings, resyncMs: 5_000 };
  return { kubeconfig, store, settings, applications: shops, namespaces };
}

/** What has to hold when all is quiet, whatever happened before: by namespace, the applications that it has instances of. */
async function expectFlows(lab: FlowLab, wanted: ReadonlyMap<string, readonly string[]>): Promise<void> {
  for (const [namespace, names] of wanted) {
    const label = "events.osbert.io/application";
    const found = async (): Promise<readonly string[]> =>
      (await lab.subscriptions(namespace)).map((each): string => each.metadata.labels[label]).sort();
    await until(`the Subscriptions of ${namespace}`, async () => (await found()).join() === [...names].sort().join());
    await until(`the Broker of ${namespace}`, async () => {
      const there = await lab.get("broker", namespace, "default");
      const isOurs = there?.metadata.labels?.["app.kubernetes.io/managed-by"] === "osbert";
      return names.length > 0 ? there !== undefined : there === undefined || !isOurs;
    });
  }
  const fed = [...wanted].filter(([, names]) => names.length > 0);
  for (const [namespace] of fed) await lab.trigger(namespace);
  for (const name of shops) {
    for (const [namespace] of fed.filter(([, names]) => names.includes(name))) await lab.arrives(name, namespace);
    // A dispatcher may still carry on for a moment what nobody wants any more; two Subscriptions would carry everything twice for good.
    await until(`an event of ${name} to come once to each that has it, and to no other`, async () => {
      const { id } = await lab.send(name);
      const times = (namespace: string) =>
        lab.sink.received.filter((event) => event.id === id && event.path === `/${namespace}`).length;
      const having = fed.filter(([, names]) => names.includes(name));
      for (let looks = 0; looks < 20 && having.some(([namespace]) => times(namespace) === 0); looks++) await sleep(50);
      const wrong = [...wanted].filter(([namespace, names]) => times(namespace) !== (names.includes(name) ? 1 : 0));
      if (wrong.length > 0) throw new Error(JSON.stringify(wrong.map(([namespace]) => [namespace, times(namespace)])));
      return true;
    });
  }
}

async function makeUsersBroker(lab: FlowLab, namespace: string): Promise<string> {
  await apply(lab.test.kubectl, [
    { apiVersion: "eventing.knative.dev/v1", kind: "Broker", metadata: { namespace, name: "default" } },
  ]);
  return identityOf(await lab.get("broker", namespace, "default"));
}

function identityOf({ metadata: { uid, generation, labels, annotations, managedFields } }: Loose): string {
  const managers = (managedFields ?? [])
    .map(({ manager }: Loose) => manager)
    .filter((name: string) => name === "osbert");
  return JSON.stringify({ uid, generation, labels, annotations, managers });
}

test(
  "killed before and after every write to the cluster, nothing is lost, nothing is wired twice, and what is a user's own stays as it is",
  async () => {
    if (cluster === undefined) return;
    const folder = await mkdtemp(join(tmpdir(), "osbert-flows-"));
    onTestFinished(() => rm(folder, { recursive: true, force: true }));
    const { lab, namespaces } = await openLab(cluster, 3);
    const [first = "", second = "", users = ""] = namespaces;
    const usersBroker = await makeUsersBroker(lab, users);
    const config = configOf(lab, namespaces, { file: join(folder, "flows.db") });
    const left = [...halts];
    const processes = new FlowProcesses(1, () => {
      const at = left.shift();
      return new FlowProcess(at === undefined ? config : { ...config, halt: { by: "SIGKILL", at, count: 1 } });
    });
    // Instances come and go, until it was killed everywhere.
    const wanted = new Map<string, Map<string, string>>(namespaces.map((name) => [name, new Map()]));
    for (let round = 0; round < 6 && left.length > 0; round++) {
      for (const [at, namespace] of namespaces.entries()) {
        const name = shops[(round + at) % shops.length] ?? "";
        for (const instance of [`${namespace}-${round}-a`, `${namespace}-${round}-b`]) {
          await platform.provision(processes, namespace, instance, name);
          wanted.get(namespace)?.set(instance, name);
        }
      }
      if (round % 2 === 0)
        for (const [namespace, of] of wanted) await settledAll(processes, namespace, of, "succeeded");
      for (const [namespace, of] of wanted) {
        // The first keeps one instance of each round, the others let go of everything.
        const leaving = [...of].slice(namespace === first ? 1 : 0);
        for (const [instance, name] of leaving) {
          await platform.deprovision(processes, namespace, instance, name);
          of.delete(instance);
        }
      }
      const isBrokerGone = async () => (await lab.get("broker", second, "default")) === undefined;
      await until("the Broker that nobody needs to go", async () => {
        processes.revive();
        return isBrokerGone();
      });
    }
    expect(processes.kills).toBeGreaterThanOrEqual(halts.length - 1);
    const last = `${second}-last`;
    await platform.provision(processes, second, last, "beta");
    wanted.get(second)?.set(last, "beta");
    for (const [namespace, of] of wanted) await settledAll(processes, namespace, of, "succeeded");
    await expectFlows(lab, new Map([...wanted].map(([namespace, of]) => [namespace, [...new Set(of.values())]])));
    expect(identityOf(await lab.get("broker", users, "default"))).toBe(usersBroker);
  },
  minutes,
);

test(
  "two replicas that both watch do everything once, and one goes on for the other when that is killed at any moment",
  async () => {
    if (cluster === undefined) return;
    const postgres = inject("postgresUrl");
    if (postgres === null) throw new Error("PostgreSQL is never left out");
    const { lab, namespaces } = await openLab(cluster, 3);
    const config = configOf(lab, namespaces, { postgres, schema: freshNamespace("flows").replaceAll("-", "_") });
    const processes = new FlowProcesses(2, () => new FlowProcess(config));
    const wanted = new Map<string, Map<string, string>>(namespaces.map((name) => [name, new Map()]));
    for (const [round, place] of [0, 1, 0].entries()) {
      for (const namespace of namespaces) {
        for (const name of shops) {
          const instance = `${namespace}-${round}-${name}`;
          await platform.provision(processes, namespace, instance, name);
          wanted.get(namespace)?.set(instance, name);
        }
      }
      await processes.killOne(place);
      for (const [namespace, of] of wanted) {
        for (const [instance, name] of [...of].slice(0, -1)) {
          await platform.deprovision(processes, namespace, instance, name);
          of.delete(instance);
        }
      }
    }
    const [emptied = ""] = namespaces;
    for (const [instance, name] of wanted.get(emptied) ?? [])
      await platform.deprovision(processes, emptied, instance, name);
    wanted.set(emptied, new Map());
    for (const [namespace, of] of wanted) await settledAll(processes, namespace, of, "succeeded");
    await expectFlows(lab, new Map([...wanted].map(([namespace, of]) => [namespace, [...new Set(of.values())]])));
  },
  minutes,
);

test(
  "a process that was frozen before a write, and goes on when another has done its work, does no harm",
  async () => {
    if (cluster === undefined) return;
    const postgres = inject("postgresUrl");
    if (postgres === null) throw new Error("PostgreSQL is never left out");
    const { lab, namespaces } = await openLab(cluster, 1);
    const [namespace = ""] = namespaces;
    const config = configOf(lab, namespaces, { postgres, schema: freshNamespace("frozen").replaceAll("-", "_") });
    const frozen = (at: Halt["at"]) => new FlowProcess({ ...config, halt: { by: "SIGSTOP", at, count: 1 } });
    const alone = (one: FlowProcess) => ({
      ask: async (...asked: Parameters<FlowProcess["request"]>) => {
        const answer = await one.request(...asked);
        if (answer === undefined) throw new Error("it was killed");
        return answer;
      },
    });

    // Its Subscription is not wanted any more when it makes it.
    const maker = frozen("before apply of Subscription");
    await platform.provision(alone(maker), namespace, "one", "alpha");
    await maker.halted;
    const other = new FlowProcess(config);
    await platform.deprovision(alone(other), namespace, "one", "alpha");
    expect(await platform.settled(alone(other), namespace, "one")).toMatch(/succeeded|gone/);
    maker.goOn();
    await maker.wentOn;
    await until("its late Subscription to come and go, or its Broker", async () => {
      const isFree = (await lab.get("broker", namespace, "default")) === undefined;
      return isFree && (await lab.subscriptions(namespace)).length === 0;
    });
    await maker.kill();
    await other.kill();

    // Its Broker is needed again when it deletes it.
    const remover = frozen("before remove of Broker");
    await platform.provision(alone(remover), namespace, "two", "alpha");
    expect(await platform.settled(alone(remover), namespace, "two")).toBe("succeeded");
    await platform.deprovision(alone(remover), namespace, "two", "alpha");
    await remover.halted;
    const heir = new FlowProcess(config);
    await platform.provision(alone(heir), namespace, "three", "beta");
    expect(await platform.settled(alone(heir), namespace, "three")).toBe("succeeded");
    const { uid } = (await lab.get("broker", namespace, "default")).metadata;
    remover.goOn();
    await remover.wentOn;
    await platform.provision(alone(remover), namespace, "four", "alpha");
    expect(await platform.settled(alone(remover), namespace, "four")).toBe("succeeded");
    expect((await lab.get("broker", namespace, "default")).metadata.uid).toBe(uid);
    await expectFlows(lab, new Map([[namespace, ["alpha", "beta"]]]));
  },
  minutes,
);

async function settledAll(
  processes: FlowProcesses,
  namespace: string,
  instances: ReadonlyMap<string, string>,
  state: string,
): Promise<void> {
  for (const instance of instances.keys())
    expect(await platform.settled(processes, namespace, instance), instance).toBe(state);
}
