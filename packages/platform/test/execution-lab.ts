import { setTimeout as pause } from "node:timers/promises";
import { type CrashPoint, type Journal, type Outcome, openJournal, type Store } from "@osbert/journal";
import { memoryStore } from "@osbert/journal/memory";
import type { Catalog, ServicePlan } from "@osbert/protocol";
import { type Client, type ClientFetch, type ClientResponse, createClient } from "@osbert/protocol/client";
import { brokerFetch } from "@osbert/protocol/node";
import { expect, onTestFinished } from "vitest";
import type { BrokerPort } from "../src/brokers/broker-port.js";
import { cancelReasons } from "../src/decisions/cancel-reasons.js";
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
  /**
   * The platform is killed at that moment of those that are counted, and another one goes on with its store. Counted are the crash points of the
   * journal, and before and after each call, from the first `arm` on.
   */
  readonly dieAt?: number;
  /** What is asked of the store before the one that goes on begins to. */
  readonly whenDead?: (lab: DeadLab) => Promise<unknown>;
}

/** A platform that runs nothing. */
export interface DeadLab {
  accept(name: string, kind: Kind, input: object): Promise<string>;
  /** What is open; because the instance is being deleted, unless another reason is given. */
  cancelAll(name: string, reason?: string): Promise<void>;
  /** Stops an open create, and goes on with it, as a delete does that is refused. Answers which one goes on; "": none was open. */
  resume(name: string): Promise<string>;
  orphans(): Promise<readonly OrphanData[]>;
}

export interface Wanted {
  readonly plan?: string;
  readonly parameters?: string;
  readonly by?: string;
  /** Of a create. */
  readonly osbId?: string;
  /** Of a bind: the binding that is rotated. */
  readonly predecessor?: string;
  /** Of an update. */
  readonly op?: "refresh";
}

type Kind = keyof InstanceShape["operations"];

/** Operations played against a real broker over HTTP, without the queue's admission: what is wanted is written into the journal as it is. */
export async function executionLab(options: LabOptions = {}) {
  const broker = await startMisbehaving({ credentials, ...(options.rules !== undefined && { rules: options.rules }) });
  onTestFinished(() => broker.stop());
  const url = options.url ?? broker.url;
  const { catalog } = await brokerClient(url, options.timeoutMs ?? 5_000).catalog();
  if (catalog === "unchanged") throw new Error("a first reading cannot be unchanged");
  const killer = killAt(options.dieAt);
  const saw: string[] = [];
  const collided: string[] = [];
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
  const store = options.store ?? memoryStore();
  const open = async (): Promise<Journal> => {
    const life = killer.begin();
    const client = brokerClient(url, options.timeoutMs ?? 5_000, life.fetch);
    const own = () => opened;
    const ports: KindPorts = {
      brokers: brokerPort(client, catalog, options, { saw, collided }),
      journal: own,
      pauses: { ...shortPauses, ...options.pauses },
      ...options.ports,
    };
    const { kinds: renewals } = openRotations({ journal: own, instances: noInstances });
    const opened: Journal = await openJournal({
      store,
      kinds: { ...instanceKinds(ports, settles), ...orphanKinds(ports), ...renewals },
      ...(options.dieAt !== undefined && { leaseMs: 400, reached: life.reached }),
    });
    life.dies = () => {
      restarted = opened
        .kill()
        .then(open)
        .then((next) => {
          journal = next;
        });
    };
    onTestFinished(() => opened.stop({ drainMs: 0 }));
    if (killer.isKilled())
      await options.whenDead?.({
        accept: (name, kind, input) => acceptAt(opened, name, kind, "anna", { input }, false),
        cancelAll: async (name, reason) => {
          const { items } = await opened.operations(keys.instance("dev", name));
          for (const { id } of items) await cancel(opened, name, id, reason);
        },
        resume: (name) => resumeCreate(opened, name),
        orphans: () => orphansOf(opened),
      });
    await opened.start();
    return opened;
  };
  let restarted: Promise<void> = Promise.resolve();
  let journal = await open();
  /** Of the platform that lives: one that is killed meanwhile is asked no more. */
  const alive = async <T>(work: (journal: Journal) => Promise<T>): Promise<T> => {
    for (;;) {
      await restarted;
      const asked = journal;
      try {
        return await work(asked);
      } catch (error) {
        if (asked === journal && !killer.isDying()) throw error;
      }
    }
  };
  // What is asked for is asked for by the test, which is not killed: nobody dies before it knows the operation.
  const accept = async (name: string, kind: Kind, by: string, asked: Accepting): Promise<string> => {
    const goOn = killer.pause();
    await restarted;
    const operation = await acceptAt(journal, name, kind, by, asked, goOn !== undefined);
    if (goOn === undefined) return operation;
    goOn();
    await alive((now) => release(now, name, operation));
    return operation;
  };
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
    get journal() {
      return journal;
    },
    saw,
    collided,
    planRef,
    /** From now on moments are counted. */
    arm: killer.arm,
    /** And from now on no more. */
    disarm: killer.disarm,
    /** How many there were. */
    moments: killer.moments,
    create: (name: string, { plan, parameters, by = "anna", osbId = `osb-${name}` }: Wanted = {}) =>
      accept(name, "create", by, {
        input: { osbId, plan: planRef(plan), parameters: parameters ?? null, maintenance: null },
        first: { offering: { id: offering.id, name: offering.name }, policy: options.policy },
      }),
    update: (name: string, { plan, parameters, by = "anna", op }: Wanted) =>
      accept(name, "update", by, {
        input: {
          ...(op !== undefined && { op }),
          text: {
            plan: plan === undefined ? null : planRef(plan),
            parameters: parameters ?? null,
            maintenance: null,
          },
          difference: [],
        },
      }),
    delete: (name: string, { by = "anna", mode = "drain" }: { by?: string; mode?: DeleteInput["mode"] } = {}) =>
      accept(name, "delete", by, { input: { mode, reason: "it is not needed" } }),
    bind: (name: string, binding: string, { parameters, by = "anna", predecessor }: Wanted = {}) =>
      accept(name, "bind", by, {
        input: {
          binding,
          osbId: `osb-${name}-${binding}`,
          parameters: parameters ?? null,
          appGuid: null,
          predecessor: predecessor === undefined ? null : `osb-${name}-${predecessor}`,
        },
        binding,
      }),
    unbind: (name: string, binding: string, by = "anna") => accept(name, "unbind", by, { input: { binding }, binding }),
    adopt: (name: string, osbId: string, by = "anna") =>
      accept(name, "adopt", by, {
        input: { osbId, plan: planRef() },
        first: { offering: { id: offering.id, name: offering.name }, policy: options.policy },
      }),
    /** As the commit of a delete does it. */
    cancel: (name: string, operation: string) => cancel(journal, name, operation),
    ended: (name: string, operation: string) => alive((now) => endOf(now, name, operation)),
    data: async (name: string) => (await alive((now) => readInstance(now, name)))?.data,
    binding: async (name: string, binding: string) =>
      (await alive((now) => readInstance(now, name, [`binding/${binding}`])))?.parts.get(`binding/${binding}`) as
        | BindingRecord
        | undefined,
    orphans: () => alive(orphansOf),
    entries: (name: string) => alive((now) => now.entries(keys.instance("dev", name))),
    /** Requests that change something, or look: "PUT osb-db", "DELETE osb-db". */
    sent: () =>
      broker
        .requests()
        .filter(({ call }) => call !== "catalog")
        .map(({ method, path }) => `${method} ${path.replace("/v2/service_instances/", "")}`),
    quiet: () => alive((now) => quiet(now, broker)),
    checkNothingUnknown: () => alive((now) => checkNothingUnknown(now, broker)),
  };
}

export type ExecutionLab = Awaited<ReturnType<typeof executionLab>>;

export function brokerClient(url: string, timeoutMs: number, over: ClientFetch = brokerFetch()): Client {
  return createClient({ url, credentials, fetch: over, timeoutMs });
}

/** Moments between two effects of an operation. Those of accepting, pruning, claims and leases are the journal's own affair. */
const moments: ReadonlySet<CrashPoint | "call"> = new Set([
  "before attempt",
  "before step",
  "after step, before it is recorded",
  "after step is recorded",
  "before wait is recorded",
  "after wait is recorded",
  "before retry is recorded",
  "after retry is recorded",
  "before operation is settled",
  "after operation is settled",
  "call",
]);

/** Counts moments, and kills at one of them, once. */
function killAt(dieAt = Number.POSITIVE_INFINITY) {
  let [count, isArmed, isKilled, isDying] = [0, false, false, false];
  const arm = () => {
    isArmed = true;
  };
  return {
    arm,
    disarm: () => {
      isArmed = false;
    },
    /** Answers what counts on; `undefined`: nothing is counted. */
    pause: () => {
      if (!isArmed) return undefined;
      isArmed = false;
      return arm;
    },
    moments: () => count,
    isKilled: () => isKilled,
    isDying: () => isDying,
    begin() {
      isDying = false;
      let isDead = false;
      const life: { dies: () => void; reached: typeof reached; fetch: ClientFetch } = {
        dies: () => undefined,
        reached,
        fetch: over,
      };
      function reached(point: CrashPoint | "call" = "call"): void {
        if (!isArmed || isKilled || isDead || !moments.has(point) || ++count !== dieAt) return;
        isKilled = true;
        isDead = true;
        isDying = true;
        life.dies();
      }
      const real = brokerFetch();
      async function over(...asked: Parameters<ClientFetch>): Promise<ClientResponse> {
        reached();
        if (isDead) throw new Error("the dead send nothing");
        const response = await real(...asked);
        reached();
        return response;
      }
      return life;
    },
  };
}

export function brokerPort(
  client: Client,
  catalog: Catalog,
  {
    quirks = { notFoundMeansGone: false },
    maximumPollingSeconds,
  }: Pick<LabOptions, "quirks" | "maximumPollingSeconds">,
  { saw, collided }: { readonly saw: string[]; readonly collided: string[] },
): BrokerPort {
  const offering = (id: string) => catalog.services.find((one) => one.id === id);
  return {
    broker: () => ({ quirks }) as BrokerData,
    namesOf: (broker) => [broker],
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
    relist: async () => 0,
    checkParameters: () => ({ kind: "fine" }),
    freezes: () => [],
    visibilities: () => [],
  };
}

interface Accepting {
  readonly input: object;
  readonly first?: { readonly offering: InstanceData["offering"]; readonly policy: LabOptions["policy"] };
  readonly binding?: string;
}

async function acceptAt(
  journal: Journal,
  name: string,
  kind: Kind,
  by: string,
  asked: Accepting,
  held: boolean,
): Promise<string> {
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
            held,
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

async function resumeCreate(journal: Journal, name: string): Promise<string> {
  const { items } = await journal.operations(keys.instance("dev", name));
  const create = items.find(({ kind }) => kind === "create");
  if (create === undefined) return "";
  await cancel(journal, name, create.id);
  const osbId = (await readInstance(journal, name))?.data.osbId ?? null;
  const next = { osbId: osbId ?? `osb-${name}-next`, resumed: osbId !== null };
  return acceptAt(journal, name, "create", "anna", { input: { ...(create.input as object), ...next } }, false);
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

function cancel(
  journal: Journal,
  name: string,
  operation: string,
  reason: string = cancelReasons.deleting,
): Promise<unknown> {
  const by = { actor: { type: "user", subject: "anna" } } as const;
  return journal.cancel(keys.instance("dev", name), operation, reason, by);
}

/** Whoever was killed while it did this does it again. */
async function release(journal: Journal, name: string, operation: string): Promise<void> {
  const decide = instances.decide((resource) => {
    const isHeld = resource?.open.some(({ id, held }) => id === operation && held) === true;
    return { result: null, ...(isHeld && { change: { release: [operation] } }) };
  });
  await journal.transact(keys.instance("dev", name), decide, { by: { actor: { type: "system", subject: "test" } } });
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
