import { PlatformError } from "../../src/errors.js";
import type {
  Admitted,
  Asking,
  BindingView,
  BrokerView,
  CampaignView,
  InstanceView,
  JournalLine,
  OrphanView,
  Platform,
  QueuedIntent,
  RotationView,
} from "../../src/platform.js";
import type { Freeze } from "../../src/records/freeze-record.js";
import type { AppliedState } from "../../src/records/instance-record.js";
import type { InstanceRef } from "../../src/records/keys.js";
import type { Quota } from "../../src/records/quota-record.js";
import type { Visibility } from "../../src/records/visibility-record.js";

const at = Date.UTC(2030, 0, 1);

/** A platform that keeps what it is told, and answers every question about it: for tests of the API alone. */
export function memoryPlatform() {
  const kept = new Map<string, InstanceView>();
  const brokers = new Map<string, BrokerView>();
  const asked: { readonly what: string; readonly asking: Asking; readonly wanted: unknown }[] = [];
  const lines: JournalLine[] = [];
  const listeners = new Set<() => void>();
  let following = 0;

  const keyOf = ({ space, name }: InstanceRef) => `${space}/${name}`;
  const read = (ref: InstanceRef): InstanceView => {
    const view = kept.get(keyOf(ref));
    if (view === undefined) throw new PlatformError("not-found", "there is no such instance");
    return view;
  };
  const write = (ref: InstanceRef, change: Partial<InstanceView>): InstanceView => {
    const before = kept.get(keyOf(ref)) ?? fresh(ref);
    const view = { ...before, ...change, revision: before.revision + 1 };
    kept.set(keyOf(ref), view);
    return view;
  };
  const accept = (
    what: string,
    ref: InstanceRef,
    wanted: unknown,
    asking: Asking,
    change: Partial<InstanceView> = {},
  ) => {
    asked.push({ what, asking, wanted });
    const before = kept.get(keyOf(ref));
    if (asking.ifMatch !== undefined && asking.ifMatch !== before?.revision)
      throw new PlatformError("stale", "it was changed meanwhile", { details: { revision: before?.revision } });
    if (asking.dryRun) return { kind: "dry run", report: aReport, desired: change.applied ?? null } as Admitted;
    return { kind: "accepted", operation: `op-${asked.length}`, instance: write(ref, change) } as Admitted;
  };
  const control = (
    what: string,
    ref: InstanceRef,
    wanted: unknown,
    asking: Asking,
    change: Partial<InstanceView> = {},
  ) => {
    read(ref);
    const admitted = accept(what, ref, wanted, asking, change);
    if (admitted.kind === "dry run") throw new Error("no control can be tried");
    return admitted.instance;
  };
  const acceptExisting = (what: string, ref: InstanceRef, wanted: unknown, asking: Asking) => {
    read(ref);
    return accept(what, ref, wanted, asking);
  };
  const brokerOf = (name: string): BrokerView => {
    const broker = brokers.get(name);
    if (broker === undefined) throw new PlatformError("not-found", "there is no such broker");
    return broker;
  };
  const orphan = (key: string): OrphanView => ({ ...anOrphan, key });

  const platform: Platform = {
    start: async () => undefined,
    stop: async () => undefined,
    instances: {
      create: async (ref, wanted, asking) =>
        accept("create", ref, wanted, asking, { applied: stateOf(wanted.plan, wanted.parameters) }),
      async update(ref, wanted, asking) {
        const { applied } = read(ref);
        if (wanted.plan === undefined && wanted.parameters === undefined)
          return { kind: "unchanged", instance: read(ref) };
        const plan = wanted.plan ?? applied?.plan.name ?? "";
        return accept("update", ref, wanted, asking, { applied: stateOf(plan, wanted.parameters), queue: [aQueued] });
      },
      delete: async (ref, wanted, asking) => acceptExisting("delete", ref, wanted, asking),
      refresh: async (ref, asking) => acceptExisting("refresh", ref, null, asking),
      upgrade: async (ref, version, asking) => acceptExisting("upgrade", ref, version, asking),
      adopt: async (ref, wanted, asking) => accept("adopt", ref, wanted, asking),
      bind: async (ref, wanted, asking) =>
        accept("bind", ref, wanted, asking, { bindings: [...read(ref).bindings, bindingOf(wanted.name)] }),
      unbind: async (ref, binding, asking) => acceptExisting("unbind", ref, binding, asking),
      rotate: async (ref, binding, successor, asking) => accept("rotate", ref, { binding, successor }, asking),
      credentials: async (ref, binding) => {
        if (read(ref).bindings.every(({ name }) => name !== binding))
          throw new PlatformError("not-found", "no binding");
        return '{"credentials":{"port":12345678901234567890,"password":"of the binding"}}';
      },
      cancel: async (ref, operation, asking) => control("cancel", ref, operation, asking),
      retry: async (ref, operation, asking) => acceptExisting("retry", ref, operation, asking),
      hold: async (ref, operation, reason, asking) => control("hold", ref, { operation, reason }, asking),
      release: async (ref, operation, asking) => control("release", ref, operation, asking),
      lock: async (ref, lock, asking) => {
        const whole = { effect: "queue", deletesExempt: false, until: null, ...lock } as const;
        return control("lock", ref, lock, asking, { lock: { ...whole, by: asking.by.actor.subject, at } });
      },
      unlock: async (ref, asking) => control("unlock", ref, null, asking, { lock: null }),
      restore: async (ref, asking) => control("restore", ref, null, asking),
      setPolicy: async (ref, policy, asking) =>
        control("setPolicy", ref, policy, asking, { policy: { ...read(ref).policy, ...policy } }),
      read: async (ref) => kept.get(keyOf(ref)),
      async operation(ref, operation) {
        const intent = kept.get(keyOf(ref))?.queue.find((queued) => queued.operation === operation);
        return intent && { operation, state: "open", intent };
      },
      after: async (ref) => read(ref).applied,
      list: async ({ space, phase, limit = 50 }) => ({
        items: [...kept.values()]
          .filter((view) => (space === undefined || view.space === space) && (phase ?? view.phase) === view.phase)
          .slice(0, limit)
          .map((view) => ({ ...view, open: view.queue.length, bindings: view.bindings.length })),
        next: null,
      }),
      journal: async (_ref, { after = 0, before = Number.POSITIVE_INFINITY, limit = 100 } = {}) =>
        lines.filter(({ seq }) => seq > after && seq < before).slice(0, limit),
      async *follow(_ref, after, signal) {
        following++;
        try {
          for (let seen = after; !signal.aborted; ) {
            for (const line of lines.filter(({ seq }) => seq > seen)) {
              seen = line.seq;
              yield line;
            }
            await new Promise<void>((resolve) => {
              listeners.add(resolve);
              signal.addEventListener("abort", () => resolve(), { once: true });
            });
          }
        } finally {
          following--;
        }
      },
    },
    brokers: {
      async register(name, wanted, asking) {
        if (brokers.has(name)) throw new PlatformError("exists", "the name is taken");
        asked.push({ what: "register", asking, wanted });
        brokers.set(name, { ...aBroker, name, url: wanted.url, authentication: wanted.authentication.kind });
        return brokerOf(name);
      },
      async change(name, wanted, asking) {
        asked.push({ what: "change", asking, wanted });
        brokers.set(name, { ...brokerOf(name), ...(wanted.url !== undefined && { url: wanted.url }) });
        return brokerOf(name);
      },
      async remove(name, options) {
        brokerOf(name);
        if (!options.force) throw new PlatformError("has-instances", "it has instances", { details: { instances: 3 } });
        brokers.delete(name);
      },
      relist: async (name) => brokerOf(name),
      read: async (name) => brokers.get(name),
      list: async () => [...brokers.values()],
      offerings: (broker) =>
        ["one", "other"].filter((name) => broker === undefined || name === broker).flatMap((name) => offeredBy(name)),
      offeringsCalled: (idOrName, broker) =>
        ["one", "other"]
          .filter((name) => broker === undefined || name === broker)
          .flatMap((name) => offeredBy(name))
          .filter(({ offering: { id, name } }) => id === idOrName || name === idOrName),
      offeringsBehind: ({ broker, name, after }) => {
        const all = ["one", "other"].flatMap((one) => offeredBy(one));
        const from = all.findIndex((one) => one.broker === after?.broker && one.offering.name === after.name) + 1;
        return all
          .slice(from)
          .filter((one) => broker === undefined || one.broker === broker)
          .filter((one) => name === undefined || one.offering.name === name);
      },
    },
    rotations: { due: async () => ({ items: [aRotation], next: null }) },
    campaigns: {
      async start(wanted, asking) {
        asked.push({ what: "campaign", asking, wanted });
        return aCampaign;
      },
      read: async (id) => (id === "c" ? aCampaign : undefined),
      list: async () => ({ items: [aCampaign], next: null }),
      targets: async (_id, { state }) => ({ items: [{ ...aTarget, state }], next: null }),
      cancel: async () => aCampaign,
      retry: async () => aCampaign,
    },
    freezes: {
      list: () => [aFreeze],
      async freeze(wanted, asking) {
        asked.push({ what: "freeze", asking, wanted });
        return { ...aFreeze, ...wanted };
      },
      thaw: async () => undefined,
    },
    quotas: {
      list: () => [aQuota],
      async set(name, wanted, asking) {
        asked.push({ what: "set quota", asking, wanted });
        return { ...aQuota, ...wanted, name };
      },
      remove: async () => undefined,
      usage: async () => [{ ...aQuota, used: 2 }],
    },
    visibilities: {
      list: () => [aVisibility],
      async set(name, wanted, asking) {
        asked.push({ what: "set visibility", asking, wanted });
        return { ...aVisibility, ...wanted, name };
      },
      remove: async () => undefined,
    },
    orphans: {
      list: async () => ({ items: [orphan("orphan/one/a")], next: null }),
      mitigate: async (key) => orphan(key),
      dismiss: async (key, reason, asking) => {
        asked.push({ what: "dismiss", asking, wanted: { key, reason } });
        return { ...orphan(key), state: "dismissed", endReason: reason };
      },
    },
  };
  return {
    platform,
    asked,
    following: () => following,
    tell: (count: number) => {
      for (let told = 0; told < count; told++) lines.push({ ...aLine, seq: lines.length + 1 });
      for (const listener of listeners) listener();
    },
  };
}

function stateOf(plan: string, parameters: string | undefined): AppliedState {
  return { plan: { id: `id of ${plan}`, name: plan }, parameters: parameters ?? null, maintenance: null };
}

function fresh({ space, name }: InstanceRef): InstanceView {
  return {
    ...{ id: `id of ${name}`, space, name, broker: "one", offering: { id: "o", name: "database" }, osbId: null },
    ...{ createdBy: "alice", createdAt: at, phase: "ready", usable: true, certainty: { certain: true } },
    ...{ dashboardUrl: null, applied: null, desired: null, lastDelete: null, lock: null, bindings: [] },
    inFlight: { operation: "op-1", call: "provision", since: at },
    queue: [],
    failures: [
      {
        ...{
          operation: "op-0",
          op: "update",
          paths: ["/plan"],
          class: "rejected",
          message: "no",
          at,
          repeatable: true,
        },
      },
    ],
    policy: { onFailure: "auto", concurrency: "queue", orphans: "mitigate" },
    revision: 0,
  };
}

function bindingOf(name: string): BindingView {
  return {
    ...{ id: `id of ${name}`, name, osbId: "b", phase: "bound", createdBy: "alice", createdAt: at, appGuid: null },
    ...{ expiresAt: null, renewBefore: null, predecessor: null, successor: null, message: null },
  };
}

const aReport = {
  ok: true,
  findings: [{ severity: "warning", rule: "broker-unreachable", path: null, message: "it does not answer" }],
} as const;

const aQueued: QueuedIntent = {
  ...{ operation: "op-9", op: "update", summary: "size 1 → 2", author: "bob", acceptedAt: at, ageMs: 5, position: 1 },
  ...{ state: "queued", description: null, heldFor: null, heldBy: [], overrides: [] },
  difference: [{ op: "replace", path: "/parameters/size", old: "1", value: "18446744073709551615" }],
};

const aLine: JournalLine = {
  ...{ seq: 1, at, family: "intent", kind: "create", operation: "op-1", by: "alice", cause: null, requestId: null },
  ...{ summary: "a line\nwith a break", payload: { text: "a\nb" } },
};

const aBroker: BrokerView = {
  ...{ name: "", url: "", authentication: "none", limits: { inFlight: 8, timeoutMs: 60_000 }, relistMs: 300_000 },
  ...{ registeredBy: "root", registeredAt: at, waiting: false },
  health: { state: "ok", since: at, message: null, failures: 0 },
  catalog: { revision: 1, readAt: at, fault: null, offerings: 1 },
};

const anOrphan: OrphanView = {
  ...{ key: "", broker: "one", space: "team", instance: "db", instanceOsbId: "i", bindingOsbId: null },
  ...{ offering: { id: "o", name: "database" }, plan: { id: "p", name: "small" }, operation: "op-1", reason: "lost" },
  ...{
    suspectedAt: at,
    mayComeLate: false,
    isConflict: false,
    state: "open",
    tries: 1,
    lastAnswer: null,
    endedAt: null,
    endedBy: null,
    endReason: null,
  },
};

const aRotation: RotationView = {
  ...{
    space: "team",
    instance: "db",
    binding: "app",
    expiresAt: "2031-01-01T00:00:00Z",
    renewBefore: null,
    renewAt: at,
  },
  ...{ state: "scheduled", successor: null, message: null },
};

const aCampaign: CampaignView = {
  ...{ id: "c", broker: "one", offering: null, plan: null, space: null, window: { fromMinute: 0, untilMinute: 60 } },
  ...{ atOnce: 5, stopAtErrorRate: 0.2, by: "root", startedAt: at, endedAt: null, state: "running", failedInARow: 0 },
  counts: { pending: 1, running: 0, succeeded: 0, failed: 0, skipped: 0, dropped: 0 },
  message: null,
};

const aTarget = { space: "team", instance: "db", operation: null, message: null, tries: 0 };

const aQuota: Quota = {
  ...{ name: "few", counts: "instances", space: "team", broker: null, offering: null, plan: null },
  ...{ limit: 3, by: "root", at: 0 },
};

/** Of a plan that nobody offers. */
const aVisibility: Visibility = {
  ...{ name: "for-team", broker: "one", offering: "rare", plan: null },
  ...{ spaces: ["team"], by: "root", at: 0 },
};

const aFreeze: Freeze = {
  ...{ id: "f", space: null, broker: null, plan: null, by: "root", at, reason: "night", effect: "queue" },
  ...{ deletesExempt: false, until: null },
};

function offeredBy(broker: string) {
  return ["database", `only-${broker}`].map((name) => ({
    broker,
    leftAt: null,
    plansLeft: [],
    offering: {
      ...{ id: `${broker}-${name}`, name, description: "A database", bindable: true },
      plans: [{ id: `${broker}-small`, name: "small", description: "Small" }],
    },
  }));
}
