import type { Backlog } from "@osbert/journal";
import type { BrokerCatalog } from "../catalog/catalog.js";
import { laneOf, sourceLane } from "../records/lane.js";

/** How much is open in all processes of a broker. */
export interface BrokerBacklog {
  /** Instances on which an operation waits for its time: a `sleep`, a `RetryLater` or the next try. */
  readonly waiting: number;
  /** Instances that some process is busy with. */
  readonly running: number;
  /** One for each service of the catalog, and "unknown" for those that it has no more. */
  readonly services: readonly ServiceBacklog[];
}

export interface ServiceBacklog {
  readonly service: string;
  /** Instances with open operations. Several binds of one instance at a time count as one. */
  readonly open: number;
  /** Those of them with which nobody has begun although their time has come. */
  readonly due: number;
  /** Open operations whose last five attempts failed, without a step recorded in between. */
  readonly stuck: number;
  /** Of the oldest open operation; 0 if there is none. */
  readonly oldestAgeMs: number;
  /** False: there are so many that `stuck` and `oldestAgeMs` are told of those alone that are due first. */
  readonly complete: boolean;
}

/** The journal's lanes as services. Pure. */
export function brokerBacklog({ at, lanes, running }: Backlog, catalog: BrokerCatalog): BrokerBacklog {
  const names = new Map([...catalog.services].map(([id, { service }]) => [laneOf(id), service.name]));
  const services = new Map<string, ServiceBacklog>();
  for (const service of [...names.values(), "unknown"]) services.set(service, { ...nothing, service });
  let open = 0;
  let due = 0;
  for (const lane of lanes) {
    if (lane.lane === sourceLane) continue;
    const service = names.get(lane.lane) ?? "unknown";
    const sum = services.get(service) ?? { ...nothing, service };
    services.set(service, {
      service,
      open: sum.open + lane.open,
      due: sum.due + lane.due,
      stuck: sum.stuck + lane.failing,
      oldestAgeMs: Math.max(sum.oldestAgeMs, lane.oldestAcceptedAt === null ? 0 : at - lane.oldestAcceptedAt),
      complete: sum.complete && lane.complete,
    });
    open += lane.open;
    due += lane.due;
  }
  return { running, waiting: Math.max(0, open - due - running), services: [...services.values()] };
}

const nothing = { open: 0, due: 0, stuck: 0, oldestAgeMs: 0, complete: true };
