import { setTimeout as pause } from "node:timers/promises";
import type { TypedKind, TypedOperation } from "@osbert/journal";
import { type Journal, openJournal, Permanent, type Store } from "@osbert/journal";
import { memoryStore } from "@osbert/journal/memory";
import type { ServiceOffering } from "@osbert/protocol";
import { onTestFinished } from "vitest";
import type { BrokerPort } from "../src/brokers/broker-port.js";
import { bindingPart } from "../src/decisions/binding-part.js";
import { readsInterrupted } from "../src/decisions/interrupted.js";
import type { Asking, InstanceView } from "../src/index.js";
import { JournalInstances } from "../src/queue/instances.js";
import { settles } from "../src/queue/open-platform.js";
import { unlockKinds } from "../src/queue/unlock-kinds.js";
import type { BrokerData } from "../src/records/broker-record.js";
import type { CallFailure } from "../src/records/call-outcome.js";
import { type InstanceShape, instances } from "../src/records/instance-record.js";

/** What the broker of the lab answers to one operation. */
export type Answer =
  | { readonly kind: "done" }
  | { readonly kind: "refused"; readonly message?: string; readonly usable?: boolean; readonly failed?: boolean };

type Kind = keyof InstanceShape["operations"];
type LabOperation = TypedOperation<InstanceShape, Kind>;

export const offering: ServiceOffering = {
  id: "db-id",
  name: "db",
  description: "a database",
  bindable: true,
  plan_updateable: true,
  plans: [
    { id: "small-id", name: "small", description: "small", maintenance_info: { version: "1.0.0" } },
    { id: "large-id", name: "large", description: "large", binding_rotatable: true },
  ],
};

/** The whole queue without a broker: each operation is answered when, and as, the test says. Everything else is what a platform has. */
export async function queueLab({
  store = memoryStore(),
  before,
}: {
  readonly store?: Store;
  /** The process before this one: what its broker has been sent, has done and answers. */
  readonly before?: QueueLab;
} = {}): Promise<QueueLab> {
  const answers = before?.answers ?? new Map<string, Answer>();
  const sent = [...(before?.sent ?? [])];
  const done = [...(before?.done ?? [])];
  let standing: Answer | undefined;
  let isSilent = false;

  const play = async (operation: LabOperation): Promise<void> => {
    const part = `call/${operation.id}` as const;
    const { applied, osbId } = operation.data;
    const isNothingThere = operation.kind === "update" ? applied === null : operation.kind === "bind" && osbId === null;
    if (isNothingThere) throw refusal("there is nothing at the broker", "preflight-drift");
    const answer = await operation.poll(
      "answer to the call",
      async () => {
        if (!sent.includes(operation.id)) {
          await operation.change(({ data }) => {
            const { input } = operation;
            const osbId = operation.kind === "create" ? (input as { osbId: string }).osbId : data.osbId;
            const at = journal.now();
            return {
              data: { ...data, osbId, attempt: { operation: operation.id, call: operation.kind, since: at } },
              parts: instances.part(part, {
                call: "answer to the call",
                look: Number.MAX_SAFE_INTEGER,
                at,
                lost: 0,
                firstAt: at,
              }),
            };
          });
          sent.push(operation.id);
          // No answer comes, as long as this process lives.
          if (isSilent) await new Promise((_, reject) => operation.signal.addEventListener("abort", reject));
        }
        return answers.get(operation.id) ?? standing;
      },
      { everyMs: 10 },
    );
    if (answer.kind === "done") {
      const part = operation.kind === "bind" ? bindingPart(operation.part) : undefined;
      const record = part && (await operation.parts([part])).get(part);
      if (part && record) await operation.change({ parts: instances.part(part, { ...record, answer: "{}" }) });
      return;
    }
    // As all that could not be made: its id is never used again.
    if (operation.kind === "create") await operation.change(({ data }) => ({ data: { ...data, osbId: null } }));
    throw refusal(answer.message ?? "no", answer.failed === true ? "operation failed" : "rejected", answer.usable);
  };

  const kind = <Name extends Kind>(
    name: Name,
    result: (operation: TypedOperation<InstanceShape, Name>) => unknown,
  ): TypedKind<InstanceShape, Name> =>
    ({
      ...(name === "bind" || name === "unbind" ? { mode: "shared" } : {}),
      ...(name === "delete" || name === "unbind" ? { reads: readsInterrupted } : {}),
      open: "all",
      settle: settles[name],
      run: async (operation: TypedOperation<InstanceShape, Name>) => {
        await play(operation as unknown as LabOperation);
        if (!done.includes(operation.id)) done.push(operation.id);
        return result(operation);
      },
    }) as TypedKind<InstanceShape, Name>;

  const kinds = instances.kinds({
    create: kind("create", ({ input: { osbId, plan, parameters, maintenance } }) => ({
      osbId,
      applied: { plan, parameters, maintenance },
      dashboardUrl: null,
    })),
    adopt: kind("adopt", ({ input: { osbId, plan } }) => ({
      osbId,
      applied: { plan, parameters: null, maintenance: null },
      dashboardUrl: null,
    })),
    update: kind("update", ({ input: { text } }) => ({ text, dashboardUrl: null })),
    delete: kind("delete", () => ({ asked: true })),
    bind: kind("bind", () => ({ expiresAt: null, renewBefore: null })),
    unbind: kind("unbind", () => ({ asked: true })),
  });
  const journal: Journal = await openJournal({ store, kinds: { ...kinds, ...unlockKinds() } });
  onTestFinished(() => journal.stop({ drainMs: 0 }));
  let number = before?.ids() ?? 0;
  const platform = new JournalInstances({
    journal,
    brokers: port,
    offeringsCalled: () => [{ broker: "b", offering, leftAt: null, plansLeft: [] }],
    quotas: {
      countsBindings: () => false,
      reserve: async () => ({ findings: [], until: null, release: async () => undefined }),
    },
    platformName: "osbert",
    newId: () => `id-${++number}`,
  });
  const ref = { space: "s", name: "i" };
  return {
    journal,
    instances: platform,
    ref,
    store,
    answers,
    ids: () => number,
    sent: sent as readonly string[],
    done: done as readonly string[],
    answer: (operation: string, answer: Answer = { kind: "done" }) => void answers.set(operation, answer),
    fallSilent: () => {
      isSilent = true;
    },
    answerAll: (answer: Answer | null = { kind: "done" }) => {
      standing = answer ?? undefined;
    },
    asks: (subject: string, more: Partial<Asking> = {}): Asking => ({
      by: { actor: { type: "user", subject } },
      ...more,
    }),
    see: async () => {
      const view = await platform.read(ref);
      if (view === undefined) throw new Error("there is no instance");
      return view;
    },
    until: async (isSo: () => Promise<boolean> | boolean): Promise<void> => {
      for (let tries = 0; tries < 3_000; tries++) {
        if (await isSo()) return;
        await pause(10);
      }
      throw new Error("it never came to be");
    },
  };
}

export interface QueueLab {
  readonly journal: Journal;
  readonly instances: JournalInstances;
  readonly ref: { readonly space: string; readonly name: string };
  readonly store: Store;
  readonly answers: Map<string, Answer>;
  /** How many ids it has given away. */
  ids(): number;
  readonly sent: readonly string[];
  /** What the broker has done, in that order. */
  readonly done: readonly string[];
  answer(operation: string, answer?: Answer): void;
  /** The broker never answers what it is sent from now on. */
  fallSilent(): void;
  /** From now on everything is answered like this, unless it is said otherwise for one. */
  answerAll(answer?: Answer | null): void;
  asks(subject: string, more?: Partial<Asking>): Asking;
  see(): Promise<InstanceView>;
  /** Waits until it is so; for half a minute. */
  until(isSo: () => Promise<boolean> | boolean): Promise<void>;
}

function refusal(message: string, found: CallFailure["class"], usable?: boolean): Permanent {
  const facts = { status: 400, error: null, repeatable: null, uncertain: false, orphan: null };
  return new Permanent(message, { details: { ...facts, class: found, usable: usable ?? null } });
}

const port: BrokerPort = {
  broker: () =>
    ({
      health: { state: "ok", since: 0, message: null, failures: 0 },
      serialBindings: {},
      catalog: { revision: 1 },
    }) as unknown as BrokerData,
  namesOf: (broker) => [broker],
  offering: (_broker, id) => (id === offering.id ? { offering, leftAt: null, plansLeft: {} } : undefined),
  plan: (_broker, _offering, plan) => offering.plans.find(({ id }) => id === plan),
  client: () => undefined,
  saw: () => undefined,
  sawBindsCollide: () => undefined,
  checkParameters: () => ({ kind: "fine" }),
  freezes: () => [],
  visibilities: () => [],
  relist: async () => 0,
};
