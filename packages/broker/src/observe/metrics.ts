import { countRequest, metricRegistry, metricSet, type Registry } from "@osbert/server/metrics";
import type { News } from "@osbert/server/observe";
import type { BrokerBacklog } from "./backlog.js";
import type { BrokerEvent, Observer } from "./event.js";
import { metricDefinitions } from "./metric-definitions.js";
import { within } from "./readiness.js";

export interface MetricsOptions {
  /** Beside the broker's own, those of the process: memory, CPU, event loop. Default true. */
  readonly process?: boolean;
}

/** What is asked of a broker at each scrape. */
export interface Measured {
  /** Operations that run in this process. */
  readonly running: number;
  backlog(): Promise<BrokerBacklog>;
  /** What is wrong with the store; `null`: nothing. */
  storeTrouble(): Promise<string | null>;
}

/** Prometheus metrics of one broker: `observe` goes to `createBroker`, the whole to `serve`, which answers `/metrics` with it. */
export interface Metrics {
  readonly observe: Observer;
  readonly contentType: string;
  /** All metrics as text, with how much is open now. Resolves within two seconds or so, whatever the store does. */
  scrape(broker: Measured): Promise<string>;
  /** For metrics of your own beside these, and for other ways to publish them. */
  readonly registry: Registry;
}

const patienceMs = 2_000;
const mostSteps = 200;

export function metrics(options: MetricsOptions = {}): Metrics {
  const registry = metricRegistry({ process: options.process ?? true });
  const all = metricSet(metricDefinitions, registry);
  const {
    accepted,
    operations,
    operationDuration,
    stepDuration,
    retries,
    running,
    open,
    due,
    waiting,
    stuck,
    oldest,
    backlogComplete,
    storeUp,
    storeDuration,
    storeFailures,
    takenOver,
    leasesLost,
    abandoned,
    setAside,
  } = all;
  const steps = new Set<string>();

  const observe = (event: BrokerEvent): void => {
    switch (event.kind) {
      case "request answered": {
        const { route, service, plan } = event;
        countRequest(all, event, { verb: route ?? "none", service: service ?? "none", plan: plan ?? "none" });
        return;
      }
      case "accepted":
        accepted.inc(labelsOf(event));
        return;
      case "settled": {
        const labels = { ...labelsOf(event), outcome: event.outcome };
        operations.inc(labels);
        operationDuration.observe(labels, event.tookMs / 1_000);
        return;
      }
      case "step finished": {
        const { kind, service } = labelsOf(event);
        stepDuration.observe({ kind, service, step: stepName(event.step) }, event.tookMs / 1_000);
        return;
      }
      case "retrying":
        retries.inc(labelsOf(event));
        return;
      case "abandoned":
        abandoned.inc(labelsOf(event));
        return;
      case "store answered":
        storeDuration.observe({ call: event.call }, event.tookMs / 1_000);
        if (event.failed) storeFailures.inc({ call: event.call });
        return;
      case "taken over":
        takenOver.inc(event.resources);
        return;
      case "lease lost":
        leasesLost.inc();
        return;
      case "set aside":
        setAside.inc();
        return;
      // Those of `uncounted`.
      case "passed over":
      case "attempt started":
      case "waiting":
      case "cancel requested":
      case "unknown kind":
      case "pruned":
      case "archive failed":
      case "store failed":
      case "store answered again":
      case "presence lost":
      case "catalog warning":
      case "catalog refused":
        return;
    }
  };

  /** Authors may name a step for what it is about, and there is no end to that. */
  const stepName = (name: string): string => {
    if (!steps.has(name) && steps.size >= mostSteps) return "other";
    steps.add(name);
    return name;
  };

  const measure = (backlog: BrokerBacklog | undefined, isUp: boolean): void => {
    for (const each of [open, due, stuck, oldest, backlogComplete]) each.reset();
    storeUp.set(isUp ? 1 : 0);
    waiting.remove();
    if (backlog === undefined) return;
    waiting.set(backlog.waiting);
    for (const { service, ...known } of backlog.services) {
      open.set({ service }, known.open);
      due.set({ service }, known.due);
      stuck.set({ service }, known.stuck);
      oldest.set({ service }, known.oldestAgeMs / 1_000);
      backlogComplete.set({ service }, known.complete ? 1 : 0);
    }
  };

  // A store that hangs is not asked once more by each scrape.
  let looking: Promise<BrokerBacklog | undefined> | undefined;
  const look = (broker: Measured) => {
    looking ??= Promise.resolve(broker.backlog())
      .catch(() => undefined)
      .finally(() => {
        looking = undefined;
      });
    return within(looking, patienceMs, undefined);
  };

  return {
    observe: Object.assign(observe, { needs: ({ kind }: News) => !uncounted.has(kind) }),
    registry,
    contentType: registry.contentType,
    async scrape(broker) {
      const [backlog, trouble] = await Promise.all([
        look(broker),
        broker.storeTrouble().catch(() => "the broker has not started"),
      ]);
      // Without a pause between the two, so that two scrapes at a time do not mix.
      measure(backlog, backlog !== undefined && trouble === null);
      running.set(broker.running);
      return registry.metrics();
    },
  };
}

/** Nothing is counted of these: where nobody else needs them, they need not be made. */
const uncounted: ReadonlySet<string> = new Set<BrokerEvent["kind"]>([
  "passed over",
  "attempt started",
  "waiting",
  "cancel requested",
  "unknown kind",
  "pruned",
  "archive failed",
  "store failed",
  "store answered again",
  "presence lost",
  "catalog warning",
  "catalog refused",
]);

function labelsOf({
  operationKind,
  service,
  plan,
}: {
  operationKind: string;
  service: string | null;
  plan: string | null;
}) {
  return { kind: operationKind, service: service ?? "unknown", plan: plan ?? "unknown" };
}
