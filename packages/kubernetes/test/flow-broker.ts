import { type Broker, createBroker, defineService, type Service, type ServiceSource } from "@osbert/broker";
import { createHandler } from "@osbert/broker/http";
import type { JournalOptions, Store } from "@osbert/journal";
import { memoryStore } from "@osbert/journal/memory";
import type { ClusterFacts } from "../../../tools/cluster/options.js";
import { until } from "../../../tools/until.js";
import type { Application } from "../src/applications/application.js";
import type { Applications, ApplicationsChange } from "../src/applications/applications.js";
import type { Cluster, WatchState } from "../src/cluster/cluster.js";
import { openCluster } from "../src/cluster/open-cluster.js";
import type { WatchPace } from "../src/cluster/watch-pace.js";
import { deliverySchema } from "../src/flows/delivery.js";
import type { FlowSettings } from "../src/flows/flow-settings.js";
import type { FlowEvent } from "../src/watch/flow-event.js";
import { createWiring } from "../src/wiring/create-wiring.js";
import type { Loose } from "./loose.js";

/** Applications that a test says there are: stands for those that are read from the cluster, which have tests of their own. */
export class SaidApplications implements Applications {
  state: WatchState = "current";
  readonly #applications = new Map<string, Application>();
  readonly #granted = new Set<string>();
  readonly #listeners = new Set<(change: ApplicationsChange) => void>();

  add(name: string): void {
    this.#applications.set(name, applicationOf(name));
    this.#tell({ kind: "application", application: name });
  }

  remove(name: string): void {
    this.#applications.delete(name);
    this.#tell({ kind: "application", application: name });
  }

  grant(namespace: string, application: string, granted = true): void {
    const key = `${namespace}/${application}`;
    if (granted) this.#granted.add(key);
    else this.#granted.delete(key);
    this.#tell({ kind: "grants", namespace, application });
  }

  application(name: string) {
    return this.#applications.get(name);
  }

  service(id: string) {
    const application = this.#applications.get(id.replace(/-events$/, ""));
    const [service] = application?.services ?? [];
    return application === undefined || service === undefined ? undefined : { application, service };
  }

  isGranted(namespace: string, application: string) {
    return this.#granted.has(`${namespace}/${application}`);
  }

  onChange(listener: (change: ApplicationsChange) => void) {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  close() {}

  #tell(change: ApplicationsChange): void {
    for (const listener of this.#listeners) listener(change);
  }
}

function applicationOf(name: string): Application {
  const service = {
    id: `${name}-events`,
    name,
    displayName: name,
    description: name,
    events: true,
    apis: [],
    parameters: null,
  };
  return {
    ...{ name, uid: name, displayName: name, provider: "", description: name, longDescription: null },
    ...{ labels: {}, tags: [], externalId: null, services: [service] },
  } as unknown as Application;
}

export interface FlowBrokerOptions {
  readonly facts: Pick<ClusterFacts, "kubeconfig">;
  readonly applications: SaidApplications;
  readonly offered: readonly string[];
  readonly settings: Partial<FlowSettings>;
  readonly store?: Store;
  readonly pace?: Partial<WatchPace>;
  readonly journal?: Partial<Omit<JournalOptions, "store" | "kinds">>;
  readonly cluster?: (cluster: Cluster) => Cluster;
  readonly readiness?: "required" | "eventual";
}

/** A broker whose services are applications' events, spoken to without sockets; each namespace under its own path. */
export interface FlowBroker {
  readonly broker: Broker;
  readonly cluster: Cluster;
  readonly events: FlowEvent[];
  request(method: string, path: string, body?: object): Promise<{ readonly status: number; readonly body: Loose }>;
  provision(namespace: string, instance: string, application: string, parameters?: object): Promise<number>;
  deprovision(namespace: string, instance: string, application: string): Promise<number>;
  lastOperation(namespace: string, instance: string): Promise<Loose>;
  /** Waits for the end of the operation. */
  settles(namespace: string, instance: string, state: "succeeded" | "failed"): Promise<Loose>;
  health(namespace: string, instance: string): Promise<string | undefined>;
  /** Waits until the operation, which goes on, tells this of itself. */
  tells(namespace: string, instance: string, words: RegExp): Promise<void>;
  /** Waits for how the flow is. */
  becomes(namespace: string, instance: string, health: string): Promise<void>;
  /** What was written to the cluster for a namespace: such as `applied broker default`. */
  written(namespace: string): readonly string[];
  /** All that became of the conditions of the flows of a namespace, as the journal has it: such as `SinkReady False`. */
  history(namespace: string): Promise<readonly string[]>;
  stop(): Promise<void>;
}

export async function flowBroker(options: FlowBrokerOptions): Promise<FlowBroker> {
  const { applications, offered, settings, facts } = options;
  const opened = await openCluster({
    access: { kind: "kubeconfig", file: facts.kubeconfig },
    ...(options.pace !== undefined && { pace: options.pace }),
  });
  const cluster = options.cluster?.(opened) ?? opened;
  const events: FlowEvent[] = [];
  const wiring = createWiring({ cluster, settings, observe: (event) => void events.push(event) });
  const services = offered.map((name): Service => {
    const { readiness } = options;
    const application = applicationOf(name);
    const [service] = application.services;
    if (service === undefined) throw new Error("an application of the tests offers something");
    const functions = wiring.functions({
      application,
      service: { ...service, ...(readiness !== undefined && { readiness }) },
      plan: { events: true, apis: false },
      isOffered: true,
    });
    const parameters = {
      type: "object",
      properties: { delivery: deliverySchema },
      additionalProperties: false,
    } as const;
    return defineService({
      ...{ id: `${name}-events`, name, description: `events of ${name}` },
      plans: {
        default: { id: `${name}-events-plan`, description: "events", provision: parameters, update: parameters },
      },
      ...functions,
    } as never);
  });
  const source: ServiceSource = {
    open: ({ journal }) => wiring.open({ journal, cluster, applications }),
    services,
    resolve: async () => undefined,
    audience: { has: () => true, version: () => "1", sees: () => true },
    instanceMetadata: async (address, serviceId) => wiring.instanceMetadata?.(address, serviceId),
    kinds: wiring.kinds,
    close: () => wiring.close(),
  };
  const broker = createBroker({
    ...{ services: source, store: options.store ?? memoryStore(), stderr: "bugs" },
    ...(options.journal !== undefined && { journal: options.journal }),
  });
  await broker.start();
  const handle = createHandler(broker, { credentials: "none" });
  const request: FlowBroker["request"] = async (method, path, body) => {
    const headers: Record<string, string> = { "x-broker-api-version": "2.17" };
    const bytes = new TextEncoder().encode(body === undefined ? "" : JSON.stringify(body));
    const answer = await handle({ method, url: path, header: (name) => headers[name.toLowerCase()], body: bytes });
    return {
      status: answer.status,
      body: answer.body.length === 0 ? undefined : JSON.parse(Buffer.from(answer.body).toString()),
    };
  };
  const path = (namespace: string, instance: string) => `/${namespace}/v2/service_instances/${instance}`;
  const ids = (application: string) => ({ service_id: `${application}-events`, plan_id: `${application}-events-plan` });
  const flows: FlowBroker = {
    broker,
    cluster,
    events,
    request,
    async provision(namespace, instance, application, parameters) {
      const body = { ...ids(application), organization_guid: "o", space_guid: "s", ...(parameters && { parameters }) };
      return (await request("PUT", `${path(namespace, instance)}?accepts_incomplete=true`, body)).status;
    },
    async deprovision(namespace, instance, application) {
      const query = new URLSearchParams({ ...ids(application), accepts_incomplete: "true" });
      return (await request("DELETE", `${path(namespace, instance)}?${query}`)).status;
    },
    async lastOperation(namespace, instance) {
      return (await request("GET", `${path(namespace, instance)}/last_operation`)).body;
    },
    async settles(namespace, instance, state) {
      let last: Loose;
      await until(`the operation of ${instance} to end`, async () => {
        last = await flows.lastOperation(namespace, instance);
        if (last.state === "in progress") throw new Error(JSON.stringify(last));
        return true;
      });
      if (last.state !== state) throw new Error(`the operation has ended as ${JSON.stringify(last)}`);
      return last;
    },
    async health(namespace, instance) {
      return (await request("GET", path(namespace, instance))).body?.metadata?.attributes?.health;
    },
    async tells(namespace, instance, words) {
      let last: Loose;
      await until(`the operation of ${instance} to tell ${words}`, async () => {
        last = await flows.lastOperation(namespace, instance);
        if (last.state === "in progress" && words.test(last.description ?? "")) return true;
        throw new Error(JSON.stringify(last));
      });
    },
    async becomes(namespace, instance, health) {
      await until(`${instance} to be ${health}`, async () => (await flows.health(namespace, instance)) === health);
    },
    written: (namespace) =>
      events.flatMap((event) =>
        event.kind === "cluster changed" && event.namespace === namespace
          ? [`${event.done} ${event.what} ${event.name}`]
          : [],
      ),
    async history(namespace) {
      const entries = await broker.journal.entries(`events.namespace.${namespace}`, { after: 0, limit: 1_000 });
      return entries.flatMap(({ kind, payload }: Loose) =>
        kind === "flow-condition" ? [`${payload.type} ${payload.status}`] : [],
      );
    },
    async stop() {
      await broker.stop({ drainMs: 0 });
      cluster.close();
    },
  };
  return flows;
}
