import { bundleDescriptions, bundleRoutes } from "@osbert/bundles/admin";
import type { ApiClient } from "@osbert/server/client";
import type { AdminOptions, AdminSession } from "../admin/admin-session.js";
import { runAdminCommand } from "../admin/run-admin-command.js";
import { exitStatuses } from "../client/exit-status.js";
import type { Surroundings } from "../client/surroundings.js";

/** Asks the routes of bundles. */
export type BundleClient = ApiClient<typeof bundleRoutes, typeof bundleDescriptions>;

/** What a command ends with that has told all there is, and that something of it failed. */
export const partlyFailed = Symbol("partly failed");

/** As `runAdminCommand`, with what asks the routes of bundles. */
export async function runBundleCommand(
  options: AdminOptions,
  surroundings: Surroundings,
  doing: string,
  work: (ask: BundleClient, session: AdminSession) => Promise<unknown>,
): Promise<void> {
  await runAdminCommand(options, surroundings, doing, async (session) => {
    const end = await work(session.client(bundleRoutes, bundleDescriptions), session);
    return end === partlyFailed ? exitStatuses.failed.status : exitStatuses.succeeded.status;
  });
}
