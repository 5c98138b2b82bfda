import { eventDescriptions, eventRoutes, flowDescriptions, flowRoutes } from "@osbert/kubernetes/admin";
import type { ApiClient } from "@osbert/server/client";
import type { AdminOptions, AdminSession } from "../admin/admin-session.js";
import { runAdminCommand } from "../admin/run-admin-command.js";
import { exitStatuses } from "../client/exit-status.js";
import type { Surroundings } from "../client/surroundings.js";

const routes = [...flowRoutes, ...eventRoutes] as const;
/** What the routes of events take and answer. */
export const descriptions = { ...flowDescriptions, ...eventDescriptions } as const;

/** Asks the routes of events. */
export type EventClient = ApiClient<typeof routes, typeof descriptions>;

/** As `runAdminCommand`, with what asks the routes of events. */
export async function runEventCommand(
  options: AdminOptions,
  surroundings: Surroundings,
  doing: string,
  work: (ask: EventClient, session: AdminSession) => Promise<void>,
): Promise<void> {
  await runAdminCommand(options, surroundings, doing, async (session) => {
    await work(session.client(routes, descriptions), session);
    return exitStatuses.succeeded.status;
  });
}
