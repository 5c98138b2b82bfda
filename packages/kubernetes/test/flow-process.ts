import type { CrashPoint } from "@osbert/journal";
import { postgresStore } from "@osbert/journal/postgres";
import { sqliteStore } from "@osbert/journal/sqlite";
import pg from "pg";
import type { Cluster } from "../src/cluster/cluster.js";
import type { FlowSettings } from "../src/flows/flow-settings.js";
import { flowBroker, SaidApplications } from "./flow-broker.js";

// A broker of event flow as a process of its own: `flow-process.ts <config>`. Whoever has started it sends it requests, and may kill it. It dies, or
// stands still, where it is told to.

export interface FlowProcessConfig {
  readonly kubeconfig: string;
  readonly store: { readonly file: string } | { readonly postgres: string; readonly schema: string };
  readonly settings: Partial<FlowSettings>;
  readonly applications: readonly string[];
  readonly namespaces: readonly string[];
  readonly halt?: Halt;
}

/** Where it is killed or frozen: at a point for the n-th time. */
export interface Halt {
  readonly by: "SIGKILL" | "SIGSTOP";
  readonly at: FlowPoint | CrashPoint;
  readonly count: number;
}

/** Around what is written to the cluster: before, its decision is durable; after, nobody knows yet that it was done. */
export type FlowPoint = `${"before" | "after"} ${"apply" | "remove"} of ${"Broker" | "Subscription"}`;

export type FlowRequest = {
  readonly id: number;
  readonly method: string;
  readonly path: string;
  readonly body?: object;
};
export type FlowMessage =
  | { readonly kind: "ready" }
  | { readonly kind: "halts" }
  /** What it was frozen before is done, or could not be. */
  | { readonly kind: "went on" }
  | { readonly kind: "answer"; readonly id: number; readonly status: number; readonly body: unknown };

const config = JSON.parse(process.argv[2] ?? "{}") as FlowProcessConfig;
const seen = new Map<string, number>();

const send = (message: FlowMessage) =>
  new Promise<void>((resolve) => {
    if (process.send === undefined) resolve();
    else process.send(message, () => resolve());
  });

function isHalt(point: FlowPoint | CrashPoint): boolean {
  const count = (seen.get(point) ?? 0) + 1;
  seen.set(point, count);
  return config.halt?.at === point && config.halt.count === count;
}

async function reached(point: FlowPoint): Promise<boolean> {
  if (config.halt === undefined || !isHalt(point)) return false;
  await send({ kind: "halts" });
  process.kill(process.pid, config.halt.by);
  return true;
}

function halting(cluster: Cluster): Cluster {
  const isOurs = (kind: string): kind is "Broker" | "Subscription" => kind === "Broker" || kind === "Subscription";
  const around = async <Result>(what: "apply" | "remove", kind: string, work: (isLate: boolean) => Promise<Result>) => {
    if (!isOurs(kind)) return work(false);
    const isLate = await reached(`before ${what} of ${kind}`);
    try {
      return await work(isLate);
    } finally {
      if (isLate) await send({ kind: "went on" });
      await reached(`after ${what} of ${kind}`);
    }
  };
  // As if the request had been under way all the time: whoever is late does not notice it before the write is done.
  const late = <Options extends object>(options: Options | undefined, isLate: boolean) =>
    isLate ? { ...options, signal: new AbortController().signal } : options;
  return new Proxy(cluster, {
    get(target, name) {
      if (name === "apply")
        return ((kind, object, options) =>
          around("apply", kind.kind, (isLate) =>
            target.apply(kind, object, late(options, isLate)),
          )) satisfies Cluster["apply"];
      if (name === "remove")
        return ((kind, place, preconditions, options) =>
          around("remove", kind.kind, (isLate) =>
            target.remove(kind, place, preconditions, late(options, isLate)),
          )) satisfies Cluster["remove"];
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

function openStore() {
  const { store } = config;
  if ("file" in store) return sqliteStore(store.file);
  return postgresStore(new pg.Pool({ connectionString: store.postgres, max: 6 }), { schema: store.schema });
}

const applications = new SaidApplications();
for (const name of config.applications) {
  applications.add(name);
  for (const namespace of config.namespaces) applications.grant(namespace, name);
}
const broker = await flowBroker({
  ...{ facts: { kubeconfig: config.kubeconfig }, applications, offered: config.applications },
  ...{ settings: config.settings, store: openStore(), cluster: halting },
  journal: {
    leaseMs: 1_000,
    reached: (point) => {
      if (isHalt(point) && config.halt !== undefined) process.kill(process.pid, config.halt.by);
    },
  },
});
process.on("message", (request: FlowRequest) => {
  broker.request(request.method, request.path, request.body).then(
    ({ status, body }) => send({ kind: "answer", id: request.id, status, body }),
    (error: unknown) => send({ kind: "answer", id: request.id, status: 0, body: String(error) }),
  );
});
// Whoever has started it is gone.
process.once("disconnect", () => process.exit(1));
await send({ kind: "ready" });
