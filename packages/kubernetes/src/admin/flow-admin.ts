import type { AdminRoutes } from "@osbert/broker";
import type { Attribution, Page } from "@osbert/journal";
import { BrokerError } from "@osbert/protocol";
import { type Paging, readPaging, routeTable } from "@osbert/server";
import { flowRoutes } from "./flow-routes.js";
import type { HistoryView, NamespaceSummary, NamespaceView } from "./flow-views.js";

/** What the routes ask and do. */
export interface FlowAdminPorts {
  /** In the order of their names. */
  namespaces(page: Paging): Promise<Page<NamespaceSummary>>;
  /** `undefined`: nothing is kept of such a namespace. */
  namespace(name: string): Promise<NamespaceView | undefined>;
  /** Newest first. */
  history(name: string, page: Paging): Promise<Page<HistoryView> | undefined>;
  /** Has it looked at now. False: nothing is kept of such a namespace. */
  look(name: string, by: Attribution): Promise<boolean>;
}

/** What event flow adds to the admin API. */
export function flowAdmin(ports: FlowAdminPorts): AdminRoutes {
  const table = routeTable(flowRoutes, "there is nothing at this path of the admin API for event flow");
  return {
    owns: (path) => path === "/admin/v1/events/namespaces" || path.startsWith("/admin/v1/events/namespaces/"),
    match(method, path) {
      const { name, namespace } = table.match(method, path);
      return {
        name: `events ${name}`,
        async respond(request) {
          switch (name) {
            case "namespaces":
              return ports.namespaces(readPaging(request.query));
            case "namespace":
              return (await ports.namespace(namespace)) ?? unknown(namespace);
            case "history":
              return (await ports.history(namespace, readPaging(request.query))) ?? unknown(namespace);
            case "look": {
              const { by } = await request.action();
              if (!(await ports.look(namespace, by))) unknown(namespace);
              return { namespace };
            }
          }
        },
      };
    },
  };
}

function unknown(namespace: string): never {
  throw new BrokerError("not-found", `no events flow, or flowed lately, into a namespace ${JSON.stringify(namespace)}`);
}
