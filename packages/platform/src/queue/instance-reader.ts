import { setTimeout as pause } from "node:timers/promises";
import type { Attribution, Journal, Outcome, Page, Resource } from "@osbert/journal";
import type { Inputs } from "../decisions/desk.js";
import type { InstanceResource } from "../decisions/queue-state.js";
import { PlatformError } from "../errors.js";
import type { InstanceQuery, InstanceSummary, InstanceView, JournalLine, OperationView } from "../platform.js";
import { brokerLabelsOf } from "../records/instance-labels.js";
import { type AppliedState, type CreateInput, instances } from "../records/instance-record.js";
import { type InstanceRef, instanceRef, keys } from "../records/keys.js";
import { keyOf, pickRef } from "./checked-request.js";
import { instanceSummary, instanceView, stateAfter } from "./instance-view.js";
import { journalLine } from "./journal-line.js";
import type { Seen } from "./resource-after.js";

/** How often it is read anew because the queue has grown since its inputs were read. */
const mostTries = 10;
/** Open operations of which inputs are read: more than there can be. */
const mostInputs = 1_000;
const followEveryMs = 250;
const longestLinePage = 500;
const usualPage = 100;

/** What is known of instances: read from the journal, and never written. */
export class InstanceReader {
  readonly #journal: Journal;

  constructor(journal: Journal) {
    this.#journal = journal;
  }

  async read(ref: InstanceRef): Promise<InstanceView | undefined> {
    const seen = await this.see(ref);
    return seen && instanceView(pickRef(ref), seen.resource, seen.inputs, this.#journal.now());
  }

  async operation(ref: InstanceRef, operation: string): Promise<OperationView | undefined> {
    for (let tries = 0; tries < mostTries; tries++) {
      const status = await this.#journal.operation(keyOf(ref), operation);
      if (status === undefined) return undefined;
      if (status.status !== "open") return { operation, state: status.status, message: endMessage(status.outcome) };
      // It may end between the two looks: then the next one says how.
      const intent = (await this.read(ref))?.queue.find((queued) => queued.operation === operation);
      if (intent !== undefined) return { operation, state: "open", intent };
    }
    throw new PlatformError("unavailable", "the instance is changed all the time; try again");
  }

  async after(ref: InstanceRef, operation: string): Promise<AppliedState | null> {
    const seen = await this.see(ref);
    const state = seen === undefined ? undefined : stateAfter(seen.resource, seen.inputs, operation);
    if (state === undefined) throw new PlatformError("not-found", `there is no open operation ${operation}`);
    return state;
  }

  async list(query: InstanceQuery): Promise<Page<InstanceSummary>> {
    const { space, broker, phase, after } = query;
    const limit = Math.max(1, query.limit ?? usualPage);
    const prefix = space === undefined ? keys.instances : keys.instancesOf(space);
    const labels = space === undefined && broker !== undefined ? brokerLabelsOf(phase) : null;
    const where = labels?.map((name) => ({ prefix, label: { name, value: broker ?? "" } })) ?? [{ prefix }];
    const found = where.map((which) => this.#journal.find({ ...which, ...(after !== undefined && { after }), limit }));
    const page = mergePages(await Promise.all(found), limit);
    const items = page.items.flatMap((resource) => {
      const ref = instanceRef(resource.key);
      if (ref === undefined || resource.data === null) return [];
      const summary = instanceSummary(ref, instances.resource(resource));
      const isMeant = (broker === undefined || summary.broker === broker) && isMeantPhase(summary, phase);
      return isMeant ? [summary] : [];
    });
    return { items, next: page.next };
  }

  async journal(
    ref: InstanceRef,
    page: { readonly after?: number; readonly before?: number; readonly limit?: number } = {},
  ): Promise<readonly JournalLine[]> {
    const limit = Math.min(page.limit ?? 100, longestLinePage);
    const entries = await this.#journal.entries(keyOf(ref), { ...page, limit });
    return entries.map(journalLine);
  }

  async *follow(ref: InstanceRef, after: number, signal: AbortSignal): AsyncIterable<JournalLine> {
    let seen = after;
    while (!signal.aborted) {
      const lines = await this.journal(ref, { after: seen });
      for (const line of lines) {
        if (signal.aborted) return;
        yield line;
        seen = line.seq;
      }
      if (lines.length === 0) await pause(followEveryMs, undefined, { signal }).catch(() => undefined);
    }
  }

  /** The resource of one moment, and what its open operations were given. */
  async see(ref: InstanceRef): Promise<Seen | undefined> {
    const key = keyOf(ref);
    for (let tries = 0; tries < mostTries; tries++) {
      const look = instances.decide<InstanceResource | undefined>((resource) => ({ result: resource }));
      const { result } = await this.#journal.transact(key, look, { by: reader, partsUnder: ["binding/"], open: "all" });
      if (result === undefined || result.data === null) return undefined;
      const inputs = result.open.length === 0 ? new Map() : await this.inputs(key);
      if (result.open.every(({ id }) => inputs.has(id))) return { resource: result, inputs };
    }
    throw new PlatformError("unavailable", "the instance is changed all the time; try again");
  }

  /** The instance as it is now, for whoever will look at it. `seen`: where it is known without a read. */
  async told(ref: InstanceRef, seen: (() => Seen) | undefined): Promise<() => InstanceView> {
    if (seen === undefined) {
      const view = await this.mustRead(ref);
      return () => view;
    }
    const { space, name } = ref;
    const now = this.#journal.now();
    return () => {
      const { resource, inputs } = seen();
      return instanceView({ space, name }, resource, inputs, now);
    };
  }

  async mustRead(ref: InstanceRef): Promise<InstanceView> {
    const view = await this.read(ref);
    if (view === undefined) throw new PlatformError("not-found", "there is no such instance");
    return view;
  }

  /** What the open operations of a resource were given. */
  async inputs(key: string): Promise<Inputs> {
    const { items } = await this.#journal.operations(key, { limit: mostInputs });
    return new Map(items.map(({ id, author, input }) => [id, { by: author.subject, input }]));
  }

  /** What an operation was given, as long as its entries are kept. */
  async inputOf(ref: InstanceRef, operation: string): Promise<unknown> {
    const seq = Number.parseInt(operation, 10);
    const [entry] = await this.#journal.entries(keyOf(ref), { after: seq - 1, limit: 1 });
    const isIt = entry?.operation === operation && entry.kind === "accepted";
    if (!isIt) throw new PlatformError("too-late", `nobody knows any more what operation ${operation} was given`);
    return (entry.payload as { readonly input?: unknown }).input;
  }

  /** What the create was given that has failed, if there is nothing else of the instance. */
  async failedCreate(ref: InstanceRef): Promise<CreateInput | null> {
    const data = instances.resource(await this.#journal.read(keyOf(ref)))?.data;
    const failed = data?.applied === null ? data.failures.findLast(({ op }) => op === "create") : undefined;
    if (failed === undefined) return null;
    return (await this.inputOf(ref, failed.operation).catch(() => null)) as CreateInput | null;
  }
}

/** Nothing is written in its name. */
const reader: Attribution = { actor: { type: "system", subject: "platform" } };

function endMessage(outcome: Outcome | null): string | null {
  switch (outcome?.kind) {
    case "failed":
      return outcome.error.message;
    case "cancelled":
      return outcome.reason;
    case "succeeded":
    case undefined:
      return null;
  }
}

/** One page of several, in the order of keys: as far as each of them goes. */
function mergePages(pages: readonly Page<Resource>[], limit: number): Page<Resource> {
  const [one, ...others] = pages;
  if (one !== undefined && others.length === 0) return one;
  const [until] = pages.flatMap(({ next }) => next ?? []).sort();
  // One that has come from one to the other meanwhile is in both.
  const found = new Map(pages.flatMap(({ items }) => items.map((item) => [item.key, item])));
  const reached = [...found.values()]
    .filter(({ key }) => until === undefined || key <= until)
    .sort((first, second) => (first.key < second.key ? -1 : 1));
  if (reached.length <= limit) return { items: reached, next: until ?? null };
  const items = reached.slice(0, limit);
  return { items, next: items.at(-1)?.key ?? null };
}

function isMeantPhase(summary: InstanceSummary, phase: InstanceQuery["phase"]): boolean {
  // What is gone is told only to whoever asks for it.
  return phase === undefined ? summary.phase !== "gone" && summary.phase !== "abandoned" : summary.phase === phase;
}
