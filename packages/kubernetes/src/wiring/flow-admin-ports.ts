import type { Journal } from "@osbert/journal";
import type { FlowAdminPorts } from "../admin/flow-admin.js";
import { type HistoryView, historyKinds, historyView, namespaceSummary, namespaceView } from "../admin/flow-views.js";
import { followed } from "../flows/claims.js";
import { flowPrefix, namespaceKey, namespaceKeyPrefix, namespaceResource, wirePrefix } from "../flows/flow-record.js";

const defaultLimit = 100;
const entriesAtOnce = 200;
/** For one request. */
const mostPages = 10;

/** What an operator sees and does of flows, read from the journal: the same in all processes. */
export function flowAdminPorts(journal: () => Journal): FlowAdminPorts {
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
          result: resource === undefined || resource.data === null ? undefined : namespaceView(resource),
        })),
        { by: { actor: { type: "system", subject: "events" } }, partsUnder: [flowPrefix, wirePrefix] },
      );
      return result;
    },
    async history(name, { after, limit = defaultLimit }) {
      const key = namespaceKey(name);
      if ((await journal().read(key)) === undefined) return undefined;
      const items: HistoryView[] = [];
      let before = after === undefined ? Number.MAX_SAFE_INTEGER : Number(after);
      if (!Number.isSafeInteger(before) || before < 0) before = 0;
      for (let pages = 0; pages < mostPages; pages++) {
        const entries = await journal().entries(key, { before, limit: entriesAtOnce });
        for (const entry of entries) {
          before = entry.seq;
          if (!historyKinds.has(entry.kind)) continue;
          items.push(historyView(entry));
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
