import { type Journal, Permanent, type TypedKind } from "@osbert/journal";
import { unmanage } from "../decisions/unmanage.js";
import type { BrokerShape } from "../records/broker-record.js";
import { instances } from "../records/instance-record.js";
import type { Breaker } from "./breaker.js";
import { instancesOf, openOrphansOf } from "./left-at-broker.js";

export interface RemoveBrokerPorts {
  readonly journal: () => Journal;
  readonly breaker: Breaker;
  /** The broker is no more in the index of all. */
  readonly withdraw: (name: string) => Promise<void>;
}

const instancesAtOnce = 100;

/**
 * Takes a broker away. It was marked before, so that no process takes new instances for it, and only then are instances looked for, and what
 * may be left there. Instances of a broker that is removed by force lose the label that they are found by, so that each look begins with what is
 * left; rows of the ledger stay, and go on when a broker of that name is registered again.
 */
export function removeBroker({ journal, breaker, withdraw }: RemoveBrokerPorts): TypedKind<BrokerShape, "remove"> {
  return {
    mode: "shared",
    lane: "brokers",
    deadlineMs: null,
    run: async (operation) => {
      const { name, url } = operation.data;
      const by = { actor: operation.actor, cause: `the broker ${name} is removed` };
      await operation.poll(
        "instances",
        async ({ signal }) => {
          const found = await instancesOf(journal(), name, instancesAtOnce);
          if (found.length === 0) {
            const [orphan] = operation.input.force ? [] : await openOrphansOf(journal(), name, 1);
            if (orphan === undefined) return true;
            throw new Permanent(`something may be left at the broker, such as ${orphan}`);
          }
          if (!operation.input.force) throw new Permanent(`the broker has instances, such as ${found[0]}`);
          for (const key of found) {
            signal.throwIfAborted();
            const decide = instances.decide((resource, now) => {
              const change = resource && unmanage(resource, operation.actor.subject, url, now);
              return { result: null, ...(change && { change }) };
            });
            // What was written ahead tells what the broker may have done.
            await journal().transact(key, decide, { by, open: "all", partsUnder: ["binding/", "call/"] });
          }
          return undefined;
        },
        { everyMs: 10 },
      );
      await withdraw(name);
      await breaker.forgetLane(name);
      const pages = await operation.partsUnder("page/", { limit: 1_000 });
      await operation.change(({ data }) => ({
        data: { ...data, catalog: { ...data.catalog, revision: data.catalog.revision + 1, pages: 0, offerings: 0 } },
        parts: Object.fromEntries(pages.items.map(({ id }) => [id, null])),
      }));
      return null;
    },
    settle: ({ data, open }, { id }, outcome) => {
      const others = open.filter((operation) => operation.id !== id);
      if (outcome.kind !== "succeeded")
        return {
          data: { ...data, removed: false },
          ...(others.some(({ kind }) => kind === "follow") ? {} : { accept: [{ kind: "follow" as const }] }),
        };
      // Nothing secret outlives it.
      return {
        data: { ...data, authentication: { kind: "none" }, clientCertificate: null, removed: true },
        cancel: { others: true, reason: "the broker was removed" },
        gone: true,
      };
    },
  };
}
