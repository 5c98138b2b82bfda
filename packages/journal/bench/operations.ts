import { randomUUID } from "node:crypto";
import {
  type Attribution,
  type Journal,
  type JournalEvent,
  type Json,
  type OperationKinds,
  openJournal,
  type Store,
} from "@osbert/journal";
import { memoryStore } from "@osbert/journal/memory";
import { interposedStore } from "@osbert/journal/testing";

export type Change = Parameters<Store["commit"]>[0];

export const by: Attribution = { actor: { type: "user", subject: "c0ffee-user" }, requestId: "bench-request" };

/** About 300 bytes of JSON: what a platform sends along when it asks for a database. */
export const input: Json = {
  service: "6f1b9d1e-4f1c-4c41-9d43-5b7c1a0d9f11",
  plan: "0c8b7a52-16b5-4d0e-8b3e-2f1d3c4b5a69",
  context: { platform: "cloudfoundry", organization: "org-guid-here", space: "space-guid-here", name: "orders-db" },
  parameters: { diskGb: 20, version: "16", extensions: ["pg_trgm", "postgis"], backup: { keepDays: 14 } },
};

const dayMs = 24 * 60 * 60 * 1000;

export const kinds = {
  "no step": { run: async () => null },
  "one step": {
    run: async (operation) => operation.step("create database", () => ({ database: "db-0815", port: 5432 })),
  },
  sleeper: { run: (operation) => operation.sleep("a day", dayMs), deadlineMs: null },
} satisfies OperationKinds;

export type Kind = keyof typeof kinds;

/** Accepts one operation on a new resource. Answers when that is durable. */
export async function acceptNew(journal: Journal, kind: Kind, key: string = randomUUID()): Promise<void> {
  const change = { accept: [{ kind, input }] };
  await journal.transact(key, () => ({ result: null, change }), { by, likelyNew: true });
}

/** A journal whose engine can be waited for. */
export interface Bench {
  readonly journal: Journal;
  /** Accepts one operation on a new resource and waits until it has ended or gone to sleep. */
  readonly lifecycle: (kind: Kind) => Promise<void>;
}

export async function openBench(store: Store): Promise<Bench> {
  const waiting = new Map<string, () => void>();
  const observe = (event: JournalEvent) => {
    if (event.kind !== "settled" && event.kind !== "waiting") return;
    waiting.get(event.key)?.();
    waiting.delete(event.key);
  };
  const journal = await openJournal({ store, kinds, observe });
  return {
    journal,
    async lifecycle(kind) {
      const key = randomUUID();
      const over = new Promise<void>((resolve) => waiting.set(key, resolve));
      await acceptNew(journal, kind, key);
      await over;
    },
  };
}

/** The changes that the journal asks its store to commit while it does something: what a ceiling has to commit, too. */
export async function changesOf(run: (bench: Bench) => Promise<void>): Promise<readonly Change[]> {
  const changes: Change[] = [];
  const bench = await openBench(recording(changes));
  await run(bench);
  await bench.journal.stop();
  return changes;
}

/** A store in memory that notes what is committed. */
export function recording(changes: Change[]): Store {
  return interposedStore(memoryStore(), ({ method, args }, go) => {
    if (method === "commit") changes.push(args[0] as Change);
    return go();
  });
}

export function changesOfAccept(): Promise<readonly Change[]> {
  return changesOf(({ journal }) => acceptNew(journal, "no step"));
}

export function changesOfLifecycle(kind: Kind): Promise<readonly Change[]> {
  return changesOf(async ({ journal, lifecycle }) => {
    await journal.start();
    await lifecycle(kind);
  });
}
