import type { Journal } from "@osbert/journal";
import type { FlowAdminPorts } from "../admin/flow-admin.js";
import {
  type HistoryView,
  historyKinds,
  historyView,
  namespaceSummary,
  namespaceView,
  type ServiceName,
} from "../admin/flow-views.js";
import type { Applications } from "../applications/applications.js";
import { followed } from "../flows/claims.js";
import {
  type FlowRecord,
  flowPrefix,
  namespaceKey,
  namespaceKeyPrefix,
  namespaceResource,
  wirePrefix,
} from "../flows/flow-record.js";
import { byEventFlow } from "./hurry-waiting.js";
import { storedNamespace } from "./stored-namespace.js";

const defaultLimit = 100;
const entriesAtOnce = 200;
/** For one request. */
const mostPages = 10;

/** Of entries that tell of flows which are still there. */
async function storedFlows(journal: Journal, key: string): Promise<ReadonlyMap<string, FlowRecord> | undefined> {
  const { result } = await journal.transact(
    key,
    namespaceResource.decide((resource) => ({
      result: resource === undefined ? undefined : resource.data === null ? new Map() : storedNamespace(resource).flows,
    })),
    { by: byEventFlow, partsUnder: [flowPrefix] },
  );
  return result;
}

/** What an operator sees and does of flows, read from the journal: the same in all processes. */
export function flowAdminPorts(journal: () => Journal, applications: () => Applications): FlowAdminPorts {
  const serviceName: ServiceName = (application, service) =>
    applications()
      .application(application)
      ?.services.find(({ id }) => id === service)?.name ?? null;
  return {
    async namespaces({ after, limit = defaultLimit }) {
      const query = { prefix: namespaceKeyPrefix, limit, ...(after !== undefined && { after: namespaceKey(after) }) };
      const { items, next } = await journal().find(query);
      const found = items.map((item) => namespaceResource.resource(item)).filter(({ data }) => data !== null);
      return { items: found.map(namespaceSummary), next: next?.slice(namespaceKeyPrefix.length) ?? null };
    },
    async namespace(name) {
      const key = namespaceKey(name);
      const { result } = await journal().transact(
        key,
        namespaceResource.decide((resource) => ({
          result: resource === undefined || resource.data === null ? undefined : namespaceView(resource, serviceName),
        })),
        { by: byEventFlow, partsUnder: [flowPrefix, wirePrefix] },
      );
      return result;
    },
    async history(name, { after, limit = defaultLimit }) {
      const key = namespaceKey(name);
      const stored = await storedFlows(journal(), key);
      if (stored === undefined) return undefined;
      const items: HistoryView[] = [];
      let before = after === undefined ? Number.MAX_SAFE_INTEGER : Number(after);
      if (!Number.isSafeInteger(before) || before < 0) before = 0;
      for (let pages = 0; pages < mostPages; pages++) {
        const entries = await journal().entries(key, { before, limit: entriesAtOnce });
        for (const entry of entries) {
          before = entry.seq;
          if (!historyKinds.has(entry.kind)) continue;
          items.push(historyView(entry, stored, serviceName));
          if (items.length >= limit) return { items, next: String(before) };
        }
        if (entries.length < entriesAtOnce) return { items, next: null };
      }
      return { items, next: String(before) };
    },
    async look(name, by) {
      const { result } = await journal().transact(
        namespaceKey(name),
        namespaceResource.decide((resource) => {
          if (resource === undefined || resource.data === null) return { result: false };
          return { result: true, change: followed(resource) };
        }),
        { by },
      );
      return result;
    },
  };
}
