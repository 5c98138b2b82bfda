import { setTimeout as pause } from "node:timers/promises";
import { type Journal, type Outcome, openJournal, type Store } from "@osbert/journal";
import { memoryStore } from "@osbert/journal/memory";
import type { Catalog, ServicePlan } from "@osbert/protocol";
import { type Client, createClient } from "@osbert/protocol/client";
import { brokerFetch } from "@osbert/protocol/node";
import { expect, onTestFinished } from "vitest";
import type { BrokerPort } from "../src/brokers/broker-port.js";
import { settleBind } from "../src/decisions/settle-bind.js";
import { settleCreate } from "../src/decisions/settle-create.js";
import { settleDelete } from "../src/decisions/settle-delete.js";
import { settleUnbind } from "../src/decisions/settle-unbind.js";
import { settleUpdate } from "../src/decisions/settle-update.js";
import { instanceKinds, type KindPorts } from "../src/operations/instance-kinds.js";
import { orphanKinds } from "../src/operations/orphan-kinds.js";
import type { Pauses } from "../src/operations/pauses.js";
import type { BrokerData } from "../src/records/broker-record.js";
import type { CallFailure } from "../src/records/call-outcome.js";
import {
  type BindingRecord,
  type DeleteInput,
  type InstanceData,
  type InstancePolicy,
  type InstanceShape,
  type IntentInput,
  instances,
} from "../src/records/instance-record.js";
import { brokerLane, keys } from "../src/records/keys.js";
import { type OrphanData, orphanRecords } from "../src/records/orphan-record.js";
import { openRotations } from "../src/rotations/open-rotations.js";
import { type MisbehavingBroker, type Rule, startMisbehaving } from "../src/testing/index.js";
import { shortPauses } from "./short-pauses.js";

const credentials = { username: "platform", password: "secret" };

export interface LabOptions {
  readonly rules?: readonly Rule[];
  /** Of the misbehaving broker's catalog: "misbehaving" can be fetched, "unfetchable" cannot. */
  readonly offering?: string;
  readonly store?: Store;
  readonly policy?: Partial<InstancePolicy>;
  readonly pauses?: Partial<Pauses>;
  readonly timeoutMs?: number;
  /** Of every plan. */
  readonly maximumPollingSeconds?: number;
  readonly quirks?: BrokerData["quirks"];
  readonly ports?: Partial<KindPorts>;
  /** Another broker than the misbehaving one. */
  readonly url?: string;
}

export interface Wanted {
  readonly plan?: string;
  readonly parameters?: string;
  readonly by?: string;
}

type Kind = keyof InstanceShape["operations"];

/** Operations played against a real broker over HTTP, without the queue's admission: what is wanted is written into the journal as it is. */
export async function executionLab(options: LabOptions = {}) {
  const broker = await startMisbehaving({ credentials, ...(options.rules !== undefined && { rules: options.rules }) });
  onTestFinished(() => broker.stop());
  const client = brokerClient(options.url ?? broker.url, options.timeoutMs ?? 5_000);
  const { catalog } = await client.catalog();
  if (catalog === "unchanged") throw new Error("a first reading cannot be unchanged");
  const { port, saw, collided } = brokerPort(client, catalog, options);
  const ports: KindPorts = {
    brokers: port,
    journal: () => journal,
    pauses: { ...shortPauses, ...options.pauses },
    ...options.ports,
  };
  const settles = {
    create: settleCreate,
    update: settleUpdate,
    delete: settleDelete,
    bind: settleBind,
    unbind: settleUnbind,
    adopt: settleCreate,
  };
  // A bind plans its renewal; to carry that out is not what is tried here.
  const noInstances = () => {
    throw new Error("nothing is renewed here");
  };
  const { kinds: renewals } = openRotations({ journal: () => journal, instances: noInstances });
  const journal: Journal = await openJournal({
    store: options.store ?? memoryStore(),
    kinds: { ...instanceKinds(ports, settles), ...orphanKinds(ports), ...renewals },
  });
  await journal.start();
  onTestFinished(() => journal.stop({ drainMs: 0 }));
  const offering = catalog.services.find(({ name }) => name === (options.offering ?? "misbehaving"));
  if (offering === undefined) throw new Error("there is no such offering");
  const prefix = offering.name === "misbehaving" ? "" : `${offering.name}-`;
  const planRef = (name = "good") => {
    const plan = offering.plans.find((one) => one.name === `${prefix}${name}`) ?? offering.plans[0];
    if (plan === undefined) throw new Error(`there is no plan ${name}`);
    return { id: plan.id, name: plan.name };
  };
  return {
    broker,
    journal,
    saw,
    collided,
    planRef,
    create: (name: string, { plan, parameters, by = "anna" }: Wanted = {}) =>
      accept(journal, name, "create", by, {
        input: { osbId: `osb-${name}`, plan: planRef(plan), parameters: parameters ?? null, maintenance: null },
        first: { offering: { id: offering.id, name: offering.name }, policy: options.policy },
      }),
    update: (name: string, { plan, parameters, by = "anna" }: Wanted) =>
      accept(journal, name, "update", by, {
        input: {
          text: {
            plan: plan === undefined ? null : planRef(plan),
            parameters: parameters ?? null,
            maintenance: null,
          },
          difference: [],
        },
      }),
    delete: (name: string, { by = "anna", mode = "drain" }: { by?: string; mode?: DeleteInput["mode"] } = {}) =>
      accept(journal, name, "delete", by, { input: { mode, reason: "it is not needed" } }),
    bind: (name: string, binding: string, { parameters, by = "anna" }: Wanted = {}) =>
      accept(journal, name, "bind", by, {
        input: {
          binding,
          osbId: `osb-${name}-${binding}`,
          parameters: parameters ?? null,
          appGuid: null,
          predecessor: null,
        },
        binding,
      }),
    unbind: (name: string, binding: string, by = "anna") =>
      accept(journal, name, "unbind", by, { input: { binding }, binding }),
    adopt: (name: string, osbId: string, by = "anna") =>
      accept(journal, name, "adopt", by, {
        input: { osbId, plan: planRef() },
        first: { offering: { id: offering.id, name: offering.name }, policy: options.policy },
      }),
    ended: (name: string, operation: string) => endOf(journal, name, operation),
    data: async (name: string) => (await readInstance(journal, name))?.data,
    binding: async (name: string, binding: string) =>
      (await readInstance(journal, name, [`binding/${binding}`]))?.parts.get(`binding/${binding}`) as
        | BindingRecord
        | undefined,
    orphans: () => orphansOf(journal),
    entries: (name: string) => journal.entries(keys.instance("dev", name)),
    /** Requests that change something, or look: "PUT osb-db", "DELETE osb-db". */
    sent: () =>
      broker
        .requests()
        .filter(({ call }) => call !== "catalog")
        .map(({ method, path }) => `${method} ${path.replace("/v2/service_instances/", "")}`),
    quiet: () => quiet(journal, broker),
    checkNothingUnknown: () => checkNothingUnknown(journal, broker),
  };
}

export type ExecutionLab = Awaited<ReturnType<typeof executionLab>>;

export function brokerClient(url: string, timeoutMs: number): Client {
  return createClient({ url, credentials, fetch: brokerFetch(), timeoutMs });
}

export function brokerPort(
  client: Client,
  catalog: Catalog,
  {
    quirks = { notFoundMeansGone: false },
    maximumPollingSeconds,
  }: Pick<LabOptions, "quirks" | "maximumPollingSeconds">,
) {
  const saw: string[] = [];
  const collided: string[] = [];
  const offering = (id: string) => catalog.services.find((one) => one.id === id);
  const port: BrokerPort = {
    broker: () => ({ quirks }) as BrokerData,
    offering: (_broker, id) => {
      const found = offering(id);
      return found === undefined ? undefined : { offering: found, leftAt: null, plansLeft: {} };
    },
    plan: (_broker, id, plan): ServicePlan | undefined => {
      const found = offering(id)?.plans.find((one) => one.id === plan);
      const most = maximumPollingSeconds === undefined ? {} : { maximum_polling_duration: maximumPollingSeconds };
      return found === undefined ? undefined : { ...found, ...most };
    },
    client: () => client,
    saw: (_broker, answer) => void saw.push(answer),
    sawBindsCollide: (_broker, id) => void collided.push(id),
    relist: async () => undefined,
    checkParameters: () => ({ kind: "fine" }),
    freezes: () => [],
  };
  return { port, saw, collided };
}

interface Accepting {
  readonly input: object;
  readonly first?: { readonly offering: InstanceData["offering"]; readonly policy: LabOptions["policy"] };
  readonly binding?: string;
}

async function accept(journal: Journal, name: string, kind: Kind, by: string, asked: Accepting): Promise<string> {
  const intent: IntentInput = {
    op: kind,
    identity: { platform: "osbert", value: { user: by } },
    catalog: 1,
    context: { platform: "osbert", instance_name: name },
  };
  const part = asked.binding === undefined ? undefined : (`binding/${asked.binding}` as const);
  const decide = instances.decide((resource, now) => {
    const data = resource?.data ?? newInstance(asked, by, now);
    const record =
      part === undefined || kind !== "bind" ? undefined : newBinding((asked.input as { osbId: string }).osbId, by, now);
    return {
      result: null,
      change: {
        data: record === undefined ? data : { ...data, bindings: data.bindings + 1 },
        ...(record !== undefined && part !== undefined && { parts: instances.part(part, record) }),
        accept: [
          {
            kind,
            input: { ...intent, ...asked.input },
            brief: { op: kind, summary: kind, paths: [], by, asked: "" },
            lane: brokerLane("broker"),
            ...(part !== undefined && { part }),
          } as never,
        ],
      },
    };
  });
  const { accepted } = await journal.transact(keys.instance("dev", name), decide, {
    by: { actor: { type: "user", subject: by } },
  });
  return accepted[0]?.id ?? "";
}

function newInstance({ first }: Accepting, by: string, now: number): InstanceData {
  if (first === undefined) throw new Error("there is no such instance");
  return {
    id: "id",
    broker: "broker",
    offering: first.offering,
    createdBy: by,
    createdAt: now,
    phase: "pending",
    osbId: null,
    formerOsbIds: [],
    applied: null,
    dashboardUrl: null,
    attempt: null,
    uncertainSince: null,
    usable: true,
    failures: [],
    lastDelete: null,
    policy: { onFailure: "auto", concurrency: "queue", orphans: "mitigate", ...first.policy },
    lock: null,
    revision: 1,
    changes: [],
    bindings: 0,
    held: {},
  };
}

function newBinding(osbId: string, by: string, now: number): BindingRecord {
  return {
    id: osbId,
    osbId,
    phase: "binding",
    createdBy: by,
    createdAt: now,
    parameters: null,
    appGuid: null,
    answer: null,
    expiresAt: null,
    renewBefore: null,
    predecessor: null,
    successor: null,
    message: null,
  };
}

/** The outcome, with the details of a failure as they are read by decisions. */
export async function endOf(
  journal: Journal,
  name: string,
  operation: string,
): Promise<Outcome & { readonly failure?: CallFailure }> {
  const outcome = await journal.ended(keys.instance("dev", name), operation, { withinMs: 15_000 });
  if (outcome === undefined) {
    const open = await journal.operations(keys.instance("dev", name));
    throw new Error(
      `it has not ended: ${JSON.stringify(open.items.map(({ kind, description }) => [kind, description]))}`,
    );
  }
  return outcome.kind === "failed" && outcome.error.details !== undefined
    ? { ...outcome, failure: outcome.error.details as unknown as CallFailure }
    : outcome;
}

async function readInstance(journal: Journal, name: string, parts: readonly string[] = []) {
  return instances.resource(await journal.read(keys.instance("dev", name), parts));
}

async function orphansOf(journal: Journal): Promise<readonly OrphanData[]> {
  const { items } = await journal.find({ prefix: keys.orphans });
  return items.map((row) => orphanRecords.resource(row).data);
}

/** Until nothing is left to do, here or at the broker. */
export async function quiet(journal: Journal, broker: MisbehavingBroker): Promise<void> {
  for (let look = 0; look < 750; look++) {
    const { items } = await journal.withWork({ limit: 100 });
    // A renewal waits for its day.
    const isAtWork = items.some(({ key, open }) => !key.startsWith(keys.rotations) && open.some(({ held }) => !held));
    if (!isAtWork && broker.state().pending === 0) return;
    await pause(20);
  }
  throw new Error("it does not come to rest");
}

/** What is at the broker is an instance's, or a binding's of one, or in the ledger and not ended. */
export async function checkNothingUnknown(journal: Journal, broker: MisbehavingBroker): Promise<void> {
  const known = new Set<string>();
  const { items } = await journal.find({ prefix: keys.instances });
  for (const item of items) {
    const { osbId } = instances.resource(item).data;
    const bindings = await journal.parts(item.key, "binding/");
    for (const { value } of instances.partsUnder("binding/", bindings).items)
      if (value.phase !== "failed") known.add(`${osbId}/${value.osbId}`);
    if (osbId !== null) known.add(osbId);
  }
  for (const row of await orphansOf(journal))
    if (row.endedAt === null)
      known.add(row.bindingOsbId === null ? row.instanceOsbId : `${row.instanceOsbId}/${row.bindingOsbId}`);
  const there = broker
    .state()
    .instances.flatMap(({ id, bindings }) => [id, ...bindings.map((binding) => `${id}/${binding.id}`)]);
  expect(there.filter((id) => !known.has(id))).toEqual([]);
}
