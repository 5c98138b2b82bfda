import type { AdminRoutes } from "@osbert/broker";
import type { HeldRemoval } from "@osbert/bundles";
import { BrokerError } from "@osbert/protocol";
import { readPaging, routeTable } from "@osbert/server";
import { eventRoutes } from "../admin/event-routes.js";
import type { ApplicationCatalog } from "../applications/application-catalog.js";
import type { ApplicationRecord } from "../applications/catalog-records.js";
import type { ApplicationFinding } from "../applications/offer-applications.js";
import type { ImportReport } from "../import/import-flows.js";

export interface EventAdminPorts {
  readonly catalog: Pick<ApplicationCatalog, "state" | "why" | "stored" | "confirm">;
  readonly findings: () => readonly ApplicationFinding[];
  readonly wiring: AdminRoutes | undefined;
  /** Takes over what the application broker has left. `undefined`: nobody can. */
  readonly importFlows: ImportFlowsNow | undefined;
}

const defaultLimit = 100;

/** Runs an import in the broker that is asked. */
export type ImportFlowsNow = (order: { readonly dryRun: boolean; readonly operator: string }) => Promise<ImportReport>;

export function eventAdmin({ catalog, findings, wiring, importFlows }: EventAdminPorts): AdminRoutes {
  const table = routeTable(eventRoutes, "there is nothing at this path of the admin API for events");
  const isOwn = (path: string) => eventRoutes.some(([, own]) => own === path);
  return {
    owns: (path) => path === "/admin/v1/events" || path.startsWith("/admin/v1/events/") || wiring?.owns(path) === true,
    match(method, path) {
      if (!isOwn(path) && wiring?.owns(path) === true) return wiring.match(method, path);
      const { name } = table.match(method, path);
      return {
        name: `events ${name}`,
        async respond(request) {
          switch (name) {
            case "applications":
              return applicationsView(catalog, request.query);
            case "findings":
              return { items: findings().slice(0, mostFindings), count: findings().length };
            case "confirmRemoval": {
              const { body, by } = await request.action();
              const { what, observation } = body;
              if ((what !== "applications" && what !== "grants") || typeof observation !== "string")
                throw new BrokerError(
                  "bad-request",
                  "what must be applications or grants, and observation the held one's",
                );
              const refusal = await catalog.confirm(what, observation, by);
              if (refusal !== undefined) throw new BrokerError("conflict", refusal);
              return { confirmed: observation };
            }
            case "importFlows": {
              const { body, by } = await request.action();
              if (importFlows === undefined) throw new BrokerError("bad-request", "this broker imports nothing");
              if (body.dry_run !== undefined && typeof body.dry_run !== "boolean")
                throw new BrokerError("bad-request", "dry_run must be true or false");
              if (catalog.state !== "current") {
                const words = `what applications offer is not known yet (${catalog.why ?? catalog.state}); ask again later`;
                throw new BrokerError("unavailable", words, { retryAfterSeconds: 5 });
              }
              return importView(await importFlows({ dryRun: body.dry_run === true, operator: by.actor.subject }));
            }
          }
        },
      };
    },
  };
}

const mostFindings = 1_000;

function applicationsView({ stored, state, why }: EventAdminPorts["catalog"], query: URLSearchParams): object {
  const { after = "", limit = defaultLimit } = readPaging(query);
  const names = [...stored.applications.keys()].filter((name) => name > after).sort();
  const page = names.slice(0, limit);
  const { isKnown, changedAt, held } = stored.data;
  return {
    ...{ state, why, is_known: isKnown, changed_at: isKnown ? iso(changedAt) : null },
    held: { applications: heldView(held.applications), grants: heldView(held.grants) },
    items: page.map((name) => applicationView(stored.applications.get(name) as ApplicationRecord)),
    next: names.length > page.length ? (page.at(-1) ?? null) : null,
  };
}

function applicationView({ application, removedAt, services, findings }: ApplicationRecord): object {
  const { name, kind, displayName, externalId } = application;
  return {
    ...{ name, kind, display_name: displayName, external_id: externalId, removed_at: when(removedAt) },
    services: services.map(({ service, removedAt: goneAt }) => ({
      ...{ id: service.id, name: service.name, events: service.events, apis: service.apis.length },
      removed_at: when(goneAt),
    })),
    findings,
  };
}

function heldView(held: HeldRemoval | null): object | null {
  if (held === null) return null;
  const { observation, count, of, specs, since, confirmed } = held;
  return {
    ...{ observation, count, of, names: specs, since: iso(since) },
    confirmed: confirmed === null ? null : { by: confirmed.by, at: iso(confirmed.at) },
  };
}

function importView({ dryRun, instances, findings }: ImportReport): object {
  return {
    dry_run: dryRun,
    instances: instances.map(({ serviceId, planId, ...rest }) => ({ ...rest, service_id: serviceId, plan_id: planId })),
    findings,
  };
}

function when(at: number | null): string | null {
  return at === null ? null : iso(at);
}

function iso(at: number): string {
  return new Date(at).toISOString();
}
