import {
  type DeprovisionInput,
  Failed,
  type ProvisionInput,
  type Service,
  type UpdateInput,
  type Work,
} from "@osbert/broker";
import type { Journal } from "@osbert/journal";
import { RetryLater } from "@osbert/journal";
import type { JsonObject } from "@osbert/protocol";
import type { Application, ApplicationService } from "../applications/application.js";
import type { Applications } from "../applications/applications.js";
import { type ClaimOutcome, claim, release } from "../flows/claims.js";
import { toDelivery } from "../flows/delivery.js";
import {
  type Condition,
  type ConditionType,
  conditionOf,
  type Delivery,
  type FlowRecord,
  flowPart,
  type NamespaceData,
  namespaceKey,
  namespaceResource,
  type Refusals,
  type WireRecord,
  wirePart,
} from "../flows/flow-record.js";
import type { FlowSettings, Readiness } from "../flows/flow-settings.js";
import { type FlowPlace, flowPlace, operationNumber } from "./flow-place.js";
import { byEventFlow } from "./hurry-waiting.js";

export interface FlowFunctionsPorts {
  readonly journal: () => Journal;
  readonly applications: () => Applications;
  readonly settings: FlowSettings;
}

/** What is offered: a service of an application, as it was when it was offered. */
export interface OfferedService {
  readonly application: Pick<Application, "name">;
  readonly service: Pick<ApplicationService, "id" | "readiness">;
  /** Whether the instance's plan gives events. */
  readonly events: boolean;
}

type FlowFunctions = Pick<Service, "provision" | "update" | "deprovision">;
// biome-ignore lint/suspicious/noExplicitAny: the plans of all applications are alike here.
type AnyPlans = any;

/** A Subscription that the cluster has refused so often it will refuse. */
const subscriptionRefusedTimes = 2;
/** Of these a provision fails when it goes on for long: nobody but an operator can do something about it. */
const hopelessReasons: ReadonlySet<string> = new Set(["KnativeMissing", "NamespaceGone"]);

/** A look at what others write is cheap; and whoever writes it wakes those who wait. */
const lookEveryMs = (looks: number) => Math.min(30_000, 1_000 * 2 ** Math.min(10, looks));

/**
 * What is done for an instance: a claim is put down, and what the follower of the namespace makes of it is waited for. The operation ends; the flow
 * lives on, and what becomes of it later never changes how the operation has ended.
 */
export function flowFunctions(
  ports: FlowFunctionsPorts,
  { application, service, events }: OfferedService,
): FlowFunctions {
  const { settings } = ports;
  const readiness = service.readiness ?? settings.readiness;
  return {
    async provision(work: Work, { instance, parameters }: ProvisionInput<AnyPlans, undefined>) {
      const place = flowPlace(instance);
      const begunAt = await work.step("begin", () => ports.journal().now());
      await awaitGrant(ports, work, place, application.name, service.id);
      if (!events) return;
      const delivery = toDelivery(parameters, place.namespace);
      await claimFlow(ports, work, "claim", place, { application: application.name, service: service.id, delivery });
      const wait = new FlowWait(ports, work, place, application.name, begunAt);
      await wait.until("the channel of the application", "SourceReady");
      await wait.until("the Broker of the namespace", "SinkReady");
      await wait.until("the policies", "PolicyReady");
      await wait.until("the Subscription", "SubscriptionReady");
      const end = await wait.until("events", "Ready");
      const failure = end === "late" ? await wait.lateFailure(readiness) : undefined;
      if (failure !== undefined) throw failure;
    },
    async update(work: Work, { instance, parameters, previous }: UpdateInput<AnyPlans, undefined>) {
      const place = flowPlace(instance);
      // A plan without events, perhaps after one that had them.
      if (!events) return releaseFlow(ports, work, place);
      const wanted = { application: application.name, service: service.id };
      // What an update does not mention stays as it was.
      const delivery = toDelivery({ ...previous.parameters, ...(parameters as JsonObject) }, place.namespace);
      const hadFlow = await work.step("look", async () => (await readFlow(ports, place, null)).flow !== undefined);
      await claimFlow(ports, work, "claim", place, { ...wanted, delivery });
      const refused = await work.poll(
        "delivered so",
        ({ elapsedMs }) => deliveredSo(ports, work, place, application.name, { elapsedMs, readiness }),
        { everyMs: lookEveryMs },
      );
      if (refused === "") return;
      // What holds is what was asked for before: a plan without events has none.
      const before = toDelivery(previous.parameters, place.namespace);
      if (hadFlow) await claimFlow(ports, work, "take the delivery back", place, { ...wanted, delivery: before });
      else await releaseFlow(ports, work, place);
      throw new Failed(`the cluster does not take this delivery: ${refused}`, {
        instanceUsable: true,
        updateRepeatable: false,
      });
    },
    deprovision: (work: Work, { instance }: DeprovisionInput<AnyPlans, undefined>) =>
      releaseFlow(ports, work, flowPlace(instance)),
  };
}

/** Whatever was offered when the instance was made: a flow that never claimed has nothing to let go of, and says so for those who come late. */
async function releaseFlow(ports: FlowFunctionsPorts, work: Work, place: FlowPlace): Promise<void> {
  const application = await work.step("release", async () => {
    const released = { ...place, operation: operationNumber(work) };
    const { result } = await ports.journal().transact(
      namespaceKey(place.namespace),
      namespaceResource.decide((resource, now) => release(resource, released, now)),
      { by: byEventFlow, parts: [flowPart(place.flow)] },
    );
    return result;
  });
  if (application === null) return;
  await work.poll("events have stopped", () => eventsHaveStopped(ports, work, place, application), {
    everyMs: lookEveryMs,
  });
}

/** #7193: what is late is waited for. Only what is known for sure to be missing, for long, fails. */
async function awaitGrant(
  { applications, settings }: FlowFunctionsPorts,
  work: Work,
  { namespace }: FlowPlace,
  application: string,
  service: string,
): Promise<void> {
  await work.poll(
    "granted",
    ({ elapsedMs }) => {
      const known = applications();
      const found = known.application(application);
      const isOffered = found?.services.some(({ id }) => id === service) ?? false;
      if (isOffered && known.isGranted(namespace, application, service)) return true;
      const isSure = known.state === "current";
      const missing = isOffered
        ? `the namespace ${namespace} is not granted ${service} of the application ${application}`
        : `there is no service ${service} of an application ${application}`;
      if (isSure && elapsedMs >= (isOffered ? settings.grantMs : settings.appearMs)) throw new Failed(missing);
      work.describe(isSure ? `waiting: ${missing}` : "waiting for the cluster to tell of applications");
      return undefined;
    },
    { everyMs: lookEveryMs },
  );
}

async function claimFlow(
  { journal }: FlowFunctionsPorts,
  work: Work,
  name: string,
  place: FlowPlace,
  wanted: { readonly application: string; readonly service: string; readonly delivery: Delivery | null },
): Promise<void> {
  const outcome = await work.step(name, async (): Promise<ClaimOutcome> => {
    const asked = { ...place, ...wanted, operation: operationNumber(work) };
    const { result } = await journal().transact(
      namespaceKey(place.namespace),
      namespaceResource.decide((resource, now) => claim(resource, asked, now)),
      { by: byEventFlow, parts: [flowPart(place.flow)] },
    );
    // Not a word for ever: room may be made.
    if (result === "full")
      throw new RetryLater(`the namespace ${place.namespace} has as many flows as it may have`, { afterMs: 60_000 });
    return result;
  });
  if (outcome === "too late") throw new Failed("the instance was deleted meanwhile");
}

/** Waits for the conditions of a flow, up to one moment for all of them. */
class FlowWait {
  readonly #ports: FlowFunctionsPorts;
  readonly #work: Work;
  readonly #place: FlowPlace;
  readonly #application: string;
  readonly #begunAt: number;

  constructor(ports: FlowFunctionsPorts, work: Work, place: FlowPlace, application: string, begunAt: number) {
    this.#ports = ports;
    this.#work = work;
    this.#place = place;
    this.#application = application;
    this.#begunAt = begunAt;
  }

  /** `late`: the time is over; what is missing heals later, or is the failure of who requires it. */
  until(what: string, type: ConditionType): Promise<"ready" | "late"> {
    const { journal, settings } = this.#ports;
    return this.#work.poll(
      `${type}`,
      async (): Promise<"ready" | "late" | undefined> => {
        const { flow, data, wire } = await readFlow(this.#ports, this.#place, this.#application);
        const condition = flow === undefined ? undefined : conditionOf(flow, type);
        if (condition?.status === "True") return "ready";
        const now = journal().now();
        const refusal =
          this.#refusedForGood(data?.broker.refused ?? null, settings.refusedTimes, settings.refusedMs) ??
          this.#refusedForGood(wire?.refused ?? null, subscriptionRefusedTimes, 0);
        if (refusal !== undefined) throw new Failed(refusal);
        const hopeless = flow?.conditions.find(
          ({ reason, since, reasonSince = since }) =>
            hopelessReasons.has(reason) && now - reasonSince >= settings.appearMs,
        );
        if (hopeless !== undefined) throw new Failed(hopeless.message);
        if (condition?.reason === "MeshMissing" || condition?.reason === "Gone") throw new Failed(condition.message);
        if (now - this.#begunAt >= settings.softDeadlineMs) return "late";
        this.#work.describe(`waiting for ${what}${condition === undefined ? "" : `: ${condition.message}`}`);
        return undefined;
      },
      { everyMs: lookEveryMs },
    );
  }

  /** What takes its time heals later, unless it is required at once. But the cluster must have taken all that there is to take. */
  async lateFailure(readiness: Readiness): Promise<Failed | undefined> {
    const { flow, data, wire } = await readFlow(this.#ports, this.#place, this.#application);
    const is = (type: ConditionType) => (flow === undefined ? undefined : conditionOf(flow, type)?.status);
    // Without a channel there is nothing to subscribe to: what is missing then is not ours.
    const isTaken =
      data?.broker.state === "present" &&
      (wire?.state === "present" || is("SourceReady") === "False") &&
      is("PolicyReady") !== "False";
    if (readiness === "eventual" && isTaken) return undefined;
    const ready: Condition | undefined = flow === undefined ? undefined : conditionOf(flow, "Ready");
    return new Failed(`the events do not flow yet: ${ready?.message ?? "nobody has looked at the namespace"}`);
  }

  /** What was refused before this operation began may be taken by now: it counts what was refused since. */
  #refusedForGood(refused: Refusals | null, times: number, forMs: number): string | undefined {
    if (refused === null || refused.times < times) return undefined;
    return refused.lastAt - Math.max(refused.since, this.#begunAt) >= forMs ? refused.message : undefined;
  }
}

/** The message of a refusal, or "" when the wire delivers as it was asked to. */
async function deliveredSo(
  ports: FlowFunctionsPorts,
  work: Work,
  place: FlowPlace,
  application: string,
  { elapsedMs, readiness }: { readonly elapsedMs: number; readonly readiness: Readiness },
): Promise<string | undefined> {
  const { flow, wire } = await readFlow(ports, place, application);
  if (flow === undefined) throw new Failed("there is no flow of this instance any more");
  const refused = wire?.refused ?? null;
  if (refused !== null && refused.times >= subscriptionRefusedTimes && refused.lastAt >= flow.deliveryAt)
    return refused.message;
  if (wire !== undefined && wire.deliveryAt >= flow.deliveryAt) return "";
  const worst = conditionOf(flow, "Ready");
  const why = wire?.trouble ?? (worst?.status === "True" ? undefined : worst?.message);
  // What is wanted is kept: it holds as soon as the events flow again.
  if (elapsedMs >= ports.settings.softDeadlineMs) return readiness === "eventual" ? "" : (why ?? "it takes too long");
  work.describe(`waiting for the Subscription to deliver so${why === undefined ? "" : `: ${why}`}`);
  return undefined;
}

/** Nobody else needs the wire, and it is gone; or others do, and it stays for them. */
async function eventsHaveStopped(
  ports: FlowFunctionsPorts,
  work: Work,
  place: FlowPlace,
  application: string,
): Promise<true | undefined> {
  const { wire, others } = await readFlow(ports, place, application);
  if (wire === undefined || others) return true;
  const { trouble = null } = wire;
  work.describe(`waiting for the events to stop${trouble === null ? "" : `: ${trouble}`}`);
  return undefined;
}

async function readFlow(
  { journal }: FlowFunctionsPorts,
  { flow, namespace }: FlowPlace,
  application: string | null,
): Promise<{
  readonly data: NamespaceData | undefined;
  readonly flow: FlowRecord | undefined;
  readonly wire: WireRecord | undefined;
  readonly others: boolean;
}> {
  const parts = [flowPart(flow), ...(application === null ? [] : [wirePart(application)])];
  const resource = namespaceResource.resource(await journal().read(namespaceKey(namespace), parts));
  const wire = application === null ? undefined : resource?.parts.get(wirePart(application));
  const data = resource?.data;
  // Who has let go counts no more, also before the wire was looked at again.
  const others = wire?.holders.some((holder) => holder !== flow && data?.holders.includes(holder)) ?? false;
  return { data, flow: resource?.parts.get(flowPart(flow)), wire, others };
}
