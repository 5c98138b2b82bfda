import { type Attribution, type Journal, RetryLater, type TypedKind, type TypedOperation } from "@osbert/journal";
import type { BrokerPort } from "../brokers/broker-port.js";
import { afterMoves, lookAgainMs, reasonToStop, roomFor, untilOpenMs } from "../decisions/campaign.js";
import { PlatformError } from "../errors.js";
import type { Instances } from "../platform.js";
import {
  type CampaignData,
  type CampaignShape,
  campaignRecords,
  type TargetRecord,
  type TargetState,
} from "../records/campaign-record.js";
import { planLabel } from "../records/instance-labels.js";
import { instances as instanceRecords } from "../records/instance-record.js";
import { type InstanceRef, instanceRef, keys } from "../records/keys.js";

export interface RunCampaignPorts {
  readonly journal: () => Journal;
  readonly brokers: BrokerPort;
  readonly instances: () => Pick<Instances, "upgrade" | "cancel">;
}

type CampaignOperation = TypedOperation<CampaignShape, "run">;

/** Where an instance of the campaign goes. */
interface Move {
  readonly target: string;
  readonly from: TargetState | null;
  readonly to: TargetRecord;
}

const targetsAtOnce = 200;
const lookMs = 1_000;
const longestMessage = 1_000;

/**
 * Upgrades instance after instance. Each look begins with what is kept, asks for what is to be done next, and writes where every instance has
 * got to, in one commit. Killed before that, it asks again with the same idempotency key, and is told of the upgrade that it has asked for.
 */
export function runCampaign(ports: RunCampaignPorts): TypedKind<CampaignShape, "run"> {
  return {
    lane: "campaigns",
    deadlineMs: null,
    run: (operation) => operation.poll("campaign", () => lookOnce(ports, operation), { everyMs: lookMs }),
    settle: ({ data }, _operation, outcome) => {
      if (outcome.kind !== "succeeded")
        return { data: { ...data, state: "stopped", message: "the campaign itself failed; it can be tried again" } };
      // Whoever asked for more in the moment in which it ended found it at work, and relies on that.
      return isOver(data) ? {} : { accept: [{ kind: "run" }] };
    },
  };
}

/** Nothing is left to do before somebody says so. */
function isOver({ state, counts, endedAt }: CampaignData): boolean {
  switch (state) {
    case "finished":
      return true;
    case "stopped":
      return counts.running === 0;
    case "cancelled":
      return endedAt !== null;
    case "collecting":
    case "retrying":
    case "running":
      return false;
  }
}

async function lookOnce(ports: RunCampaignPorts, operation: CampaignOperation): Promise<null | undefined> {
  const data = campaignRecords.resource(await ports.journal().read(operation.key))?.data;
  if (data === undefined) return null;
  switch (data.state) {
    case "collecting":
      return collect(ports, operation, data);
    case "retrying":
      return retryFailed(ports, operation);
    case "cancelled":
      return drop(ports, operation, data);
    case "running":
    case "stopped":
      return upgrade(ports, operation, data);
    case "finished":
      return null;
  }
}

/** A page of instances. How far it has got is in the same commit as what it has found. */
async function collect(ports: RunCampaignPorts, operation: CampaignOperation, data: CampaignData): Promise<undefined> {
  const { journal, brokers } = ports;
  const { broker, plan, offering, space, cursor } = data;
  const page = await journal().find({
    label: plan === null ? { name: "broker", value: broker } : { name: "plan", value: planLabel(plan) },
    prefix: space === null ? keys.instances : keys.instancesOf(space),
    limit: targetsAtOnce,
    ...(cursor !== null && { after: cursor }),
  });
  const moves = page.items.flatMap((resource): readonly Move[] => {
    const { data: instance } = instanceRecords.resource(resource);
    const { applied } = instance;
    if (applied === null || instance.broker !== broker) return [];
    if ((offering !== null && instance.offering.id !== offering) || (plan !== null && applied.plan.id !== plan))
      return [];
    const version = brokers.plan(broker, instance.offering.id, applied.plan.id)?.maintenance_info?.version;
    if (version === undefined || version === applied.maintenance) return [];
    const target = resource.key.slice(keys.instances.length);
    return [{ target, from: null, to: { state: "pending", operation: null, message: null, tries: 0 } }];
  });
  // Somebody may have cancelled it meanwhile: that stays.
  await write(ports, operation, moves, (after) =>
    page.next === null
      ? { ...after, state: after.state === "collecting" ? "running" : after.state, cursor: null }
      : { ...after, cursor: page.next },
  );
  throw new RetryLater("there is more to do", { afterMs: 10 });
}

async function retryFailed(ports: RunCampaignPorts, operation: CampaignOperation): Promise<undefined> {
  const failed = await targetsIn(operation, "failed", targetsAtOnce);
  const moves = failed.map(
    ([target, record]): Move => ({ target, from: "failed", to: { ...record, state: "pending", operation: null } }),
  );
  const isLast = failed.length < targetsAtOnce;
  await write(ports, operation, moves, (after) =>
    isLast && after.state === "retrying" ? { ...after, state: "running", failedInARow: 0, message: null } : after,
  );
  throw new RetryLater("there is more to do", { afterMs: 10 });
}

/** What has not begun never does; what is in a queue is taken out of it, if it is not too late. */
async function drop(
  ports: RunCampaignPorts,
  operation: CampaignOperation,
  data: CampaignData,
): Promise<null | undefined> {
  const pending = await targetsIn(operation, "pending", targetsAtOnce);
  const running = await targetsIn(operation, "running", targetsAtOnce);
  const ended = await endedOf(ports, running, "dropped");
  const left = running.filter(([target]) => ended.every((move) => move.target !== target));
  for (const [target, record] of left)
    if (record.operation !== null)
      await ports.instances().cancel(refOf(target), record.operation, askingOf(operation, data)).catch(ignoreRefusal);
  const dropped = pending.map(
    ([target, record]): Move => ({ target, from: "pending", to: { ...record, state: "dropped" } }),
  );
  const isOver = left.length === 0 && pending.length < targetsAtOnce;
  const moves = [...ended, ...dropped];
  const after = await write(ports, operation, moves, (told) => (isOver ? { ...told, endedAt: now(ports) } : told));
  if (isOver) return null;
  throw untilItMoves(after, now(ports));
}

async function upgrade(
  ports: RunCampaignPorts,
  operation: CampaignOperation,
  data: CampaignData,
): Promise<null | undefined> {
  const running = await targetsIn(operation, "running", targetsAtOnce);
  const ended = await endedOf(ports, running, "failed");
  const seen = judged(afterMoves(data, ended.map(countedMove)));
  const room = roomFor(seen, running.length - ended.length, now(ports));
  const next = room === 0 ? [] : await targetsIn(operation, "pending", room);
  const begun: Move[] = [];
  for (const [target, record] of next) begun.push(await begin(ports, operation, data, target, record));
  const after = await write(ports, operation, [...ended, ...begun], (counted) => {
    const told = judged(counted);
    const isIdle = told.counts.running === 0;
    const isFinished = told.state === "running" && isIdle && told.counts.pending === 0;
    return isFinished ? { ...told, state: "finished", endedAt: now(ports) } : told;
  });
  if (isOver(after)) return null;
  const closedMs = untilOpenMs(after.window, now(ports));
  if (after.counts.running === 0 && closedMs > 0) throw new RetryLater("until the window opens", { afterMs: closedMs });
  throw untilItMoves(after, now(ports));
}

/** Who changes what it is to do hurries it. What it waits for may be locked, or its broker down, for days. */
function untilItMoves(data: CampaignData, at: number): RetryLater {
  return new RetryLater("until something has moved", { afterMs: lookAgainMs(data, at) });
}

/** The rate of errors counts with every end. */
function judged(data: CampaignData): CampaignData {
  const reason = data.state === "running" ? reasonToStop(data) : null;
  return reason === null ? data : { ...data, state: "stopped", message: reason };
}

async function begin(
  { instances }: RunCampaignPorts,
  operation: CampaignOperation,
  data: CampaignData,
  target: string,
  record: TargetRecord,
): Promise<Move> {
  const asking = {
    ...askingOf(operation, data),
    ...(data.identity !== null && { identity: data.identity }),
    idempotencyKey: `campaign.${data.id}.${record.tries}`,
  };
  const tries = record.tries + 1;
  const from = "pending";
  try {
    const admitted = await instances().upgrade(refOf(target), undefined, asking);
    if (admitted.kind !== "accepted" && admitted.kind !== "repeated")
      return { target, from, to: { state: "skipped", operation: null, message: null, tries } };
    return { target, from, to: { state: "running", operation: admitted.operation, message: null, tries } };
  } catch (error) {
    if (!(error instanceof PlatformError)) throw error;
    return { target, from, to: { state: "failed", operation: null, message: clipped(error.message), tries } };
  }
}

/** Of those under way, the ones that have ended. */
async function endedOf(
  { journal }: RunCampaignPorts,
  running: readonly (readonly [target: string, record: TargetRecord])[],
  whenCancelled: TargetState,
): Promise<readonly Move[]> {
  const moves: Move[] = [];
  for (const [target, record] of running) {
    const status = await journal().operation(`${keys.instances}${target}`, record.operation ?? "");
    if (status?.status === "open") continue;
    moves.push({ target, from: "running", to: endOf(record, status?.outcome ?? null, whenCancelled) });
  }
  return moves;
}

type Status = NonNullable<Awaited<ReturnType<Journal["operation"]>>>;

function endOf(record: TargetRecord, outcome: Status["outcome"], whenCancelled: TargetState): TargetRecord {
  switch (outcome?.kind) {
    case "succeeded":
      return { ...record, state: "succeeded", message: null };
    case "failed":
      return { ...record, state: "failed", message: clipped(outcome.error.message) };
    case "cancelled":
      return { ...record, state: whenCancelled, message: clipped(outcome.reason) };
    case undefined:
      return { ...record, state: "failed", message: "nobody knows any more what became of it" };
  }
}

/**
 * The parts of where instances have got to, and the counts, in one commit; none where nothing has changed, because it may wait for days. Others may
 * have changed what the campaign is to do: that stays.
 */
async function write(
  ports: RunCampaignPorts,
  operation: CampaignOperation,
  moves: readonly Move[],
  decide: (counted: CampaignData) => CampaignData,
): Promise<CampaignData> {
  let after: CampaignData = operation.data;
  const parts = Object.fromEntries(
    moves.flatMap(({ target, from, to }) => [
      ...(from === null ? [] : [[`${from}/${target}`, null] as const]),
      [`${to.state}/${target}`, to] as const,
    ]),
  );
  await operation.change(({ data }) => {
    const counted = moves.length === 0 ? data : { ...afterMoves(data, moves.map(countedMove)), movedAt: now(ports) };
    after = decide(counted);
    return after === data ? {} : { data: after, parts };
  });
  return after;
}

function countedMove({ from, to }: Move): { readonly from: TargetState | null; readonly to: TargetState } {
  return { from, to: to.state };
}

async function targetsIn(
  operation: CampaignOperation,
  state: TargetState,
  limit: number,
): Promise<readonly (readonly [target: string, record: TargetRecord])[]> {
  const { items } = await operation.partsUnder(`${state}/`, { limit });
  return items.map(({ id, value }) => [id.slice(state.length + 1), value] as const);
}

function refOf(target: string): InstanceRef {
  const ref = instanceRef(`${keys.instances}${target}`);
  if (ref === undefined) throw new Error(`${target} is not an instance`);
  return ref;
}

/** Whoever has started the campaign is the author of all its upgrades. */
function askingOf({ actor, requestId }: CampaignOperation, { id }: CampaignData): { readonly by: Attribution } {
  return { by: { actor, cause: `campaign ${id}`, ...(requestId !== null && { requestId }) } };
}

function ignoreRefusal(error: unknown): void {
  if (!(error instanceof PlatformError)) throw error;
}

function clipped(message: string): string {
  return message.slice(0, longestMessage);
}

function now({ journal }: RunCampaignPorts): number {
  return journal().now();
}
