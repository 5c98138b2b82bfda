import { hash } from "node:crypto";
import type { Attribution, Journal, OpenOperation, TransactOptions } from "@osbert/journal";
import type { BrokerPort } from "../brokers/broker-port.js";
import { type Control, control } from "../decisions/controls.js";
import {
  type Admission,
  type Admitting,
  type Desk,
  deskOf,
  type Inputs,
  type Offered,
  type Request,
} from "../decisions/desk.js";
import { readsInterrupted } from "../decisions/interrupted.js";
import { preflight } from "../decisions/preflight.js";
import type { InstanceChange } from "../decisions/queue-state.js";
import { PlatformError } from "../errors.js";
import type { Admitted, Asking, InstanceView } from "../platform.js";
import { type AskedBefore, type IntentName, instances } from "../records/instance-record.js";
import type { InstanceRef } from "../records/keys.js";
import type { PreflightFinding } from "../records/preflight-report.js";
import type { Counted } from "../records/quota-record.js";
import { keyOf } from "./checked-request.js";
import type { InstanceReader } from "./instance-reader.js";
import type { JournalQuotas, QuotaVerdict } from "./quotas.js";
import { resourceAfter, type Seen } from "./resource-after.js";

export interface AdmissionsPorts {
  readonly journal: Journal;
  readonly brokers: BrokerPort;
  readonly quotas: Pick<JournalQuotas, "reserve" | "countsBindings">;
  /** The word before originating identities, and in contexts. */
  readonly platformName: string;
  /** Ids at brokers: never one twice. */
  readonly newId: () => string;
}

/** What a request wants to see of its instance besides the queue. */
export type Sees = Pick<TransactOptions, "parts" | "partsUnder" | "likelyNew">;

const none: readonly string[] = [];
const noInputs: Inputs = new Map();

/** Marks of calls: what was sent, and what was not, is told by nothing else. */
const usualPrefixes: readonly string[] = ["binding/", "call/"];

/** How often a decision is made anew because the queue has grown since its inputs were read. */
const mostTries = 10;

/** Takes in what is asked of an instance: it is decided and kept in one commit, made anew if the queue has grown since it was read. */
export class Admissions {
  readonly #ports: AdmissionsPorts;
  readonly #journal: Journal;
  readonly #reader: InstanceReader;

  constructor(ports: AdmissionsPorts, reader: InstanceReader) {
    this.#ports = ports;
    this.#journal = ports.journal;
    this.#reader = reader;
  }

  /** `takes`: the place that it takes in the quota of its space; it is reserved until the commit has it, or there is none. */
  async ask(
    ref: InstanceRef,
    op: IntentName,
    wanted: object,
    asking: Asking,
    decide: (desk: Desk) => Admitting,
    sees: Sees,
    takes?: Counted,
  ): Promise<Admitted> {
    const key = keyOf(ref);
    if (takes === undefined) return this.#askNow(key, ref, op, wanted, asking, decide, sees, undefined);
    const quota = await this.#ports.quotas.reserve(ref, takes, asking);
    if (quota.until === null) return this.#askNow(key, ref, op, wanted, asking, decide, sees, quota);
    try {
      return await this.#askNow(key, ref, op, wanted, asking, decide, sees, quota);
    } finally {
      await quota.release();
    }
  }

  async #askNow(
    key: string,
    ref: InstanceRef,
    op: IntentName,
    wanted: object,
    asking: Asking,
    decide: (desk: Desk) => Admitting,
    sees: Sees,
    quota: QuotaVerdict | undefined,
  ): Promise<Admitted> {
    const request = this.#request(ref, op, wanted, asking, quota);
    let inputs = noInputs;
    for (let tries = 0; tries < mostTries; tries++) {
      const asked = inputs === request.inputs ? request : { ...request, inputs };
      const { result, accepted, seen } = await this.#decide(key, asked, asking.by, decide, sees);
      switch (result.kind) {
        case "read more":
          inputs = await this.#reader.inputs(key);
          continue;
        case "accepted": {
          const operation = (accepted.find(({ kind }) => kind === "delete") ?? accepted[0])?.id ?? "";
          return tellingOf({ kind: "accepted", operation }, await this.#reader.told(ref, seen));
        }
        case "repeated":
          return tellingOf({ kind: "repeated", operation: result.operation }, await this.#reader.told(ref, seen));
        case "asked before": {
          const operation = await this.#operationOf(key, result.asked);
          return tellingOf({ kind: "repeated", operation }, await this.#reader.told(ref, seen));
        }
        case "done":
        case "unchanged":
          return tellingOf({ kind: "unchanged" }, await this.#reader.told(ref, seen));
        case "dry run":
          return result;
      }
    }
    throw new PlatformError("unavailable", "the instance is changed all the time; try again");
  }

  /** `seen`: the instance after the commit, where that can be told without a read. */
  async #decide(
    key: string,
    request: Request,
    by: Attribution,
    decide: (desk: Desk) => Admitting,
    { parts = none, partsUnder = none, likelyNew = false }: Sees,
  ) {
    const isPlain = partsUnder.length === 0 && request.keyPart === null;
    const prefixes = isPlain
      ? usualPrefixes
      : [...usualPrefixes, ...partsUnder, ...(request.keyPart === null ? [] : ["asked/"])];
    // The last call of the decision is the one that counts.
    let last: { readonly desk: Desk; readonly change: InstanceChange | undefined } | undefined;
    const { result, accepted } = await this.#journal.transact(
      key,
      instances.decide<Admission>((resource, now) => {
        last = undefined;
        const desk = deskOf(resource, now, request);
        if (desk === undefined) return { result: { kind: "read more" } };
        const decided = decide(desk);
        const change = request.dryRun ? undefined : decided.change;
        last = { desk, change };
        return { result: decided.result, ...(change !== undefined && { change }) };
      }),
      {
        by,
        parts: parts.length === 0 ? readsInterrupted : [...parts, ...readsInterrupted],
        partsUnder: prefixes,
        open: "all",
        likelyNew,
      },
    );
    return { result, accepted, seen: seenBy(key, last, accepted) };
  }

  async control(ref: InstanceRef, asked: Control, asking: Asking): Promise<InstanceView> {
    const request = { ...this.#request(ref, "update", asked, asking), keyPart: null, inputs: null };
    const decide = (desk: Desk) => control(desk, asked);
    await this.#decide(keyOf(ref), request, asking.by, decide, {});
    return this.#reader.mustRead(ref);
  }

  #request(ref: InstanceRef, op: IntentName, wanted: object, asking: Asking, quota?: QuotaVerdict): Request {
    const { platformName, newId } = this.#ports;
    const { actor } = asking.by;
    const { subject } = actor;
    const isPerson = actor.type !== "system";
    return {
      by: subject,
      asked: hashOf(JSON.stringify([op, wanted])),
      ifMatch: asking.ifMatch ?? null,
      keyPart: asking.idempotencyKey === undefined ? null : `asked/${hashOf(`${subject}\n${asking.idempotencyKey}`)}`,
      dryRun: asking.dryRun ?? false,
      intent: {
        identity: isPerson ? { platform: platformName, value: asking.identity ?? { username: subject } } : null,
        context: {
          platform: platformName,
          space_guid: ref.space,
          organization_guid: ref.space,
          instance_name: ref.name,
        },
      },
      catalogOf: (broker) => this.#ports.brokers.broker(broker)?.catalog.revision ?? 0,
      inputs: noInputs,
      newId: newId(),
      preflight: (intent, desk, offered) => {
        // The place may be another's by now.
        if (quota?.until != null && desk.now >= quota.until)
          throw new PlatformError("unavailable", "it took too long; try again");
        return this.#preflight(ref, intent, desk, offered, quota?.findings ?? []);
      },
    };
  }

  #preflight(
    ref: InstanceRef,
    intent: Parameters<typeof preflight>[0],
    { data, desired, now }: Desk,
    offered: Offered,
    found: readonly PreflightFinding[],
  ) {
    const { brokers } = this.#ports;
    // What could not be created has no plan, and is deleted all the same (E10-28): nothing may become a trap.
    const plan = desired?.plan.id ?? data?.applied?.plan.id ?? (intent.op === "delete" ? "" : undefined);
    return preflight(intent, {
      space: ref.space,
      name: ref.name,
      brokerName: offered.broker,
      health: brokers.broker(offered.broker)?.health,
      offering: brokers.offering(offered.broker, offered.offering.id),
      instance:
        data === undefined || plan === undefined
          ? null
          : { phase: data.phase, plan, usable: data.usable, bindings: data.bindings },
      freezes: brokers.freezes(),
      visibilities: brokers.visibilities(),
      found,
      now,
      checkParameters: brokers.checkParameters,
    });
  }

  /** Whether binds of the offering go one after the other. */
  isSerial({ data, now }: Desk): boolean {
    const until =
      data === undefined ? undefined : this.#ports.brokers.broker(data.broker)?.serialBindings[data.offering.id];
    return until !== undefined && until > now;
  }

  /** The first operation that was accepted for a request after what was kept before it. */
  async #operationOf(key: string, { after, body }: AskedBefore): Promise<string> {
    const entries = await this.#journal.entries(key, { after, limit: 1_000 });
    const found = entries.find(({ kind, payload }) => {
      const brief =
        kind === "accepted" ? (payload as { readonly brief?: { readonly asked?: string } }).brief : undefined;
      return brief?.asked === body;
    });
    if (found?.operation == null)
      throw new PlatformError("too-late", "what came of that request is not known any more");
    return found.operation;
  }
}

/** An answer with the instance as it was then, which is made when somebody looks at it: not everybody does. */
function tellingOf<Answer extends object>(
  answer: Answer,
  tell: () => InstanceView,
): Answer & { readonly instance: InstanceView } {
  let view: InstanceView | undefined;
  const telling = {
    get instance() {
      view ??= tell();
      return view;
    },
  };
  return Object.assign(telling, answer);
}

function seenBy(
  key: string,
  last: { readonly desk: Desk; readonly change: InstanceChange | undefined } | undefined,
  accepted: readonly OpenOperation[],
): (() => Seen) | undefined {
  if (last === undefined) return undefined;
  const { desk, change } = last;
  if (change !== undefined) return resourceAfter(key, desk, change, accepted);
  const { resource, data, request } = desk;
  if (resource === undefined || data === undefined) return undefined;
  return () => ({ resource, inputs: request.inputs ?? noInputs });
}

function hashOf(text: string): string {
  return hash("sha256", text, "base64url").slice(0, 22);
}
