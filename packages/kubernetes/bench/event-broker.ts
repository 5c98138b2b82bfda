import { subscribe } from "node:diagnostics_channel";
import type { ClientRequest } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { type Broker, createBroker, defineService, type Service, type ServiceSource } from "@osbert/broker";
import { createHandler } from "@osbert/broker/http";
import { sqliteStore } from "@osbert/journal/sqlite";
import { openCluster } from "@osbert/kubernetes";
import type { Application, ApplicationService } from "../src/applications/application.js";
import type { Applications } from "../src/applications/applications.js";
import type {
  Answered,
  Asked,
  ConditionTold,
  FlowOrder,
  Memory,
  OpenOrder,
  Orders,
  Provisioned,
  Requests,
} from "./orders.js";

// The process under measure: a broker with event flow, its watches and its store, and nothing else. It does what main.ts orders, one order at a time.

// By its place: what is measured is what is published, and the wiring alone is not exported.
const wiringModule = new URL("../../../../../dist/wiring/create-wiring.js", import.meta.url).href;
const { createWiring } = (await import(wiringModule)) as typeof import("../src/wiring/create-wiring.js");

let requests = nothingAsked();
let looked = new Set<string>();
let opened: { readonly broker: Broker; readonly close: () => Promise<void> } | undefined;
let provisionEnded = (_succeeded: boolean): void => undefined;

// Everything that goes to the API server, whoever asks: calls, pages of lists, watches.
subscribe("http.client.request.start", (message) => {
  const { method, path } = (message as { readonly request: ClientRequest }).request;
  const { pathname, searchParams } = new URL(path, "http://server");
  const isWatch = searchParams.has("watch");
  const what = isWatch ? "watches" : method === "GET" ? "reads" : "writes";
  const name = `${isWatch ? "WATCH" : method} ${plural(pathname)}`;
  requests[what] += 1;
  requests.by[name] = (requests.by[name] ?? 0) + 1;
});

const doing: { readonly [Name in keyof Orders]: (order: Orders[Name]["order"]) => Promise<Orders[Name]["answer"]> } = {
  async open(order) {
    opened = await open(order);
    return null;
  },
  provision,
  async requests() {
    const counted = requests;
    requests = nothingAsked();
    return counted;
  },
  looked: async () => looked.size,
  memory,
  async stop() {
    await opened?.close();
    return null;
  },
};

process.once("disconnect", () => process.exit(1));
process.on("message", ({ id, name, order }: Asked) => {
  const done = (doing[name] as (order: unknown) => Promise<unknown>)(order);
  done.then(
    (value) => tell({ kind: "answer", id, value, failed: null }),
    (error: unknown) => tell({ kind: "answer", id, value: null, failed: String(error) }),
  );
});

async function open(order: OpenOrder): Promise<NonNullable<typeof opened>> {
  const { kubeconfig, store, integrationNamespace, applications, mirror, atOnce } = order;
  looked = new Set();
  const cluster = await openCluster({ access: { kind: "kubeconfig", file: kubeconfig } });
  const wiring = createWiring({
    cluster,
    settings: {
      ...{ integrationNamespace, mirror, softDeadlineMs: 86_400_000 },
      ...(atOnce && { debounceMs: 0, hysteresisMs: 0 }),
    },
    observe: (event) => {
      if (event.kind === "namespace looked at") looked.add(event.namespace);
      if (event.kind !== "flow condition") return;
      const { type, status } = event.condition;
      tell({ kind: "condition", application: event.application, type, status, at: Date.now() });
    },
  });
  const services = applications.map((name): Service => {
    const { application, service } = applicationOf(name);
    const plan = { events: true, apis: false };
    const functions = wiring.functions({ application, service, plan, isOffered: true });
    return defineService({
      ...{ id: `${name}-events`, name, description: `events of ${name}` },
      plans: { default: { id: `${name}-events-plan`, description: "events" } },
      provision: functions.provision,
      deprovision: functions.deprovision,
    } as never);
  });
  const source: ServiceSource = {
    open: ({ journal }) => wiring.open({ journal, cluster, applications: allGranted(applications) }),
    services,
    resolve: async () => undefined,
    audience: { has: () => true, version: () => "1", sees: () => true },
    instanceMetadata: async (address, serviceId) => wiring.instanceMetadata?.(address, serviceId),
    kinds: wiring.kinds,
    close: () => wiring.close(),
  };
  const broker = createBroker({
    ...{ services: source, store: sqliteStore(store), stderr: "bugs" },
    journal: {
      observe: (event) => {
        if (event.kind === "settled" && event.operationKind === "provision")
          provisionEnded(event.outcome === "succeeded");
      },
    },
  });
  await broker.start();
  return {
    broker,
    async close() {
      await broker.stop({ drainMs: 5_000 });
      cluster.close();
    },
  };
}

const provisionsAtOnce = 32;

async function provision(flows: readonly FlowOrder[]): Promise<Provisioned> {
  if (opened === undefined) throw new Error("nothing is open");
  const handle = createHandler(opened.broker, { credentials: "none" });
  const begun = performance.now();
  let [ended, succeeded] = [0, 0];
  const all = new Promise<void>((resolve) => {
    provisionEnded = (isGood) => {
      ended += 1;
      if (isGood) succeeded += 1;
      if (ended === flows.length) resolve();
    };
  });
  const left = flows.values();
  const ask = async () => {
    for (const { namespace, application } of left) {
      const body = {
        ...{ service_id: `${application}-events`, plan_id: `${application}-events-plan` },
        ...{ organization_guid: "o", space_guid: "s" },
      };
      const { status } = await handle({
        method: "PUT",
        url: `/${namespace}/v2/service_instances/${application}?accepts_incomplete=true`,
        header: (name) => (name.toLowerCase() === "x-broker-api-version" ? "2.17" : undefined),
        body: new TextEncoder().encode(JSON.stringify(body)),
      });
      if (status !== 202) throw new Error(`a provision was answered with ${status}`);
    }
  };
  await Promise.all(Array.from({ length: provisionsAtOnce }, ask));
  await all;
  return { succeeded, tookMs: performance.now() - begun };
}

/** With what nobody needs given back, as far as the runtime does that. */
async function memory(): Promise<Memory> {
  for (let times = 0; times < 3; times++) {
    globalThis.gc?.();
    await sleep(200);
  }
  const { rss, heapUsed } = process.memoryUsage();
  return { rssBytes: rss, heapBytes: heapUsed, peakBytes: process.resourceUsage().maxRSS * 1_024 };
}

/** Everybody may have everything: what applications cost is measured elsewhere. */
function allGranted(names: readonly string[]): Applications {
  const all = new Map(names.map((name) => [name, applicationOf(name).application]));
  return {
    state: "current",
    application: (name) => all.get(name),
    service: () => undefined,
    isGranted: () => true,
    onChange: () => () => undefined,
    close: () => undefined,
  };
}

/** What the wiring looks at of an application. */
function applicationOf(name: string): { readonly application: Application; readonly service: ApplicationService } {
  const service = { id: `${name}-events` } as ApplicationService;
  return { application: { name, services: [service] } as unknown as Application, service };
}

/** Of /apis/GROUP/VERSION/namespaces/NAMESPACE/PLURAL/NAME, and of its shorter forms. */
function plural(path: string): string {
  const [root, , ...segments] = path.split("/").filter((segment) => segment !== "");
  const rest = root === "apis" ? segments.slice(1) : segments;
  const inside = rest[0] === "namespaces" && rest.length > 2 ? rest.slice(2) : rest;
  return [inside[0] ?? path, ...(inside[2] === undefined ? [] : [inside[2]])].join("/");
}

type Counted = { -readonly [Name in keyof Omit<Requests, "by">]: number } & { readonly by: Record<string, number> };

function nothingAsked(): Counted {
  return { writes: 0, reads: 0, watches: 0, by: {} };
}

function tell(message: Answered | ConditionTold): void {
  process.send?.(message);
}
