import type { Attribution, Journal, SharedLaneRules, TypedDecision } from "@osbert/journal";
import type { AnswerClass } from "@osbert/protocol";
import { aboutBroker, answeredCall, isDown, laneRuleOf, wentDown } from "../decisions/broker-health.js";
import { type BrokerData, type BrokerHealth, type BrokerShape, brokerRecords } from "../records/broker-record.js";
import { brokerLane, keys } from "../records/keys.js";
import type { BrokerCopies } from "./broker-copies.js";

/** Who has done what no person asked for. */
export const byItself: Attribution = { actor: { type: "system", subject: "platform" } };

const longestMessage = 500;
const serialMs = 24 * 60 * 60_000;
const mostSerial = 200;

/**
 * Keeps requests from a broker that is down: its lane is paused in all processes, so that what is asked of it waits and does not fail. The operation
 * that follows the broker probes it and frees the lane; it is the one that makes the lane what the broker's health says, with each of its looks.
 *
 * The health is written first, in one commit with the wish for a look, and the lane is paused then: killed in between, that look pauses it. What pauses
 * it may be late, and find that the look has freed the lane before; so whoever sees a lane that is paused although its broker is well asks for one
 * more look. Nothing that is killed or frozen in between leaves a lane paused until the catalog is read again, which may be days.
 */
export class Breaker {
  readonly #journal: () => Journal;
  readonly #copies: BrokerCopies;
  readonly #inARow = new Map<string, number>();
  /** Of each broker, one change at a time: a hundred requests that fail together are one reason. */
  readonly #changing = new Set<string>();
  /** Brokers whose lanes were found to be paused without a reason, with the timer of the look at them. */
  readonly #doubted = new Map<string, NodeJS.Timeout>();
  #lanes: SharedLaneRules | undefined;
  #isClosed = false;

  constructor(journal: () => Journal, copies: BrokerCopies) {
    this.#journal = journal;
    this.#copies = copies;
  }

  /** Before the journal is started: what it runs keeps to the rules of lanes only then. */
  async open(): Promise<void> {
    this.#lanes = await this.#journal().lanes();
    this.#lanes.onChange(() => this.#doubtPauses());
    this.#copies.onChange(() => this.#doubtPauses());
  }

  close(): void {
    for (const timer of this.#doubted.values()) clearTimeout(timer);
    this.#doubted.clear();
    this.#isClosed = true;
  }

  /** Requests in a row of which this process has heard nothing. */
  inARow(broker: string): number {
    return this.#inARow.get(broker) ?? 0;
  }

  isPaused(broker: string): boolean {
    return this.#lanes?.value.some(({ lane, paused }) => lane === brokerLane(broker) && paused) ?? false;
  }

  /** Looks at them a moment later: most were about to be freed. */
  #doubtPauses(): void {
    if (this.#isClosed) return;
    for (const name of this.#copies.names()) {
      if (this.#doubted.has(name) || !this.#isPausedForNothing(name)) continue;
      const timer = setTimeout(() => void this.#resolveDoubt(name), doubtMs);
      timer.unref();
      this.#doubted.set(name, timer);
    }
  }

  /** It doubts again as long as it is so: what follows the broker may be in a process that is dead, and not known to be. */
  async #resolveDoubt(name: string): Promise<void> {
    if (this.#isPausedForNothing(name))
      await this.#journal()
        .transact(
          keys.broker(name),
          brokerRecords.decide((resource) => {
            if (resource === undefined || resource.data.removed || laneRuleOf(resource.data).paused)
              return { result: null };
            return { result: null, change: { hurry: followsOf(resource.open) } };
          }),
          { by: byItself },
        )
        .catch(() => undefined);
    this.#doubted.delete(name);
    this.#doubtPauses();
  }

  #isPausedForNothing(name: string): boolean {
    const data = this.#copies.data(name);
    return data !== undefined && this.isPaused(name) && !laneRuleOf(data).paused;
  }

  /** Told after every call. */
  saw(broker: string, answer: AnswerClass, message: string | null): void {
    const health = this.#copies.data(broker)?.health;
    if (health === undefined) return;
    const about = aboutBroker(answer);
    if (about === "reached") {
      this.#inARow.delete(broker);
      if (health.state !== "ok" || health.failures > 0) void this.#change(broker, answeredCall);
      return;
    }
    const inARow = this.inARow(broker) + 1;
    this.#inARow.set(broker, inARow);
    if (about === "unauthorized") this.#trip(broker, health, "unauthorized", message);
    else if (isDown(health, inARow)) this.#trip(broker, health, "failing", message);
  }

  /** Binds of an offering that cannot stand each other go one after the other, for a day. */
  sawBindsCollide(broker: string, offering: string): void {
    void this.#changeData(broker, (data, now) => {
      const present = Object.entries(data.serialBindings).filter(([id, until]) => until > now && id !== offering);
      const serialBindings = Object.fromEntries([...present.slice(-mostSerial), [offering, now + serialMs]]);
      return { ...data, serialBindings };
    });
  }

  /** Makes the lane what the broker's health and limits say. */
  async keepLane(data: BrokerData): Promise<void> {
    const lane = brokerLane(data.name);
    const wanted = laneRuleOf(data);
    const present = this.#lanes?.value.find((rule) => rule.lane === lane);
    if (present?.paused === wanted.paused && present.limit === wanted.limit) return;
    await this.#lanes?.set(lane, wanted, { by: byItself });
  }

  async forgetLane(broker: string): Promise<void> {
    await this.#lanes?.set(brokerLane(broker), { paused: false, limit: null }, { by: byItself });
  }

  #trip(broker: string, health: BrokerHealth, state: "failing" | "unauthorized", message: string | null): void {
    if (health.state === state) return;
    const said = message?.slice(0, longestMessage) ?? null;
    void this.#change(broker, (before, now) => (before.state === state ? before : wentDown(before, state, said, now)));
  }

  async #change(broker: string, decide: (before: BrokerHealth, now: number) => BrokerHealth): Promise<void> {
    const change = (data: BrokerData, now: number) => {
      const health = decide(data.health, now);
      return health === data.health ? data : { ...data, health };
    };
    await this.#changeData(broker, change);
  }

  /** What cannot be written is written after the next call, which finds the same. */
  async #changeData(broker: string, decide: (before: BrokerData, now: number) => BrokerData): Promise<void> {
    if (this.#changing.has(broker)) return;
    this.#changing.add(broker);
    try {
      const { result: after } = await this.#journal().transact(
        keys.broker(broker),
        brokerRecords.decide((resource, now): TypedDecision<BrokerShape, BrokerData | null> => {
          if (resource === undefined || resource.data.removed) return { result: null };
          const before = resource.data;
          const data = decide(before, now);
          if (data === before) return { result: null };
          const entries = data.health.state === before.health.state ? [] : [healthEntry(data.health)];
          // The lane is made what the health says by whoever follows the broker.
          const isHealthOther = data.health !== before.health;
          const hurry = followsOf(resource.open);
          return { result: data, change: { data, entries, ...(isHealthOther && { hurry }) } };
        }),
        { by: byItself },
      );
      // That may hang in a reading at the moment, for as long as the broker does.
      if (after !== null && laneRuleOf(after).paused) await this.keepLane(after);
    } catch {
      // Said above.
    } finally {
      this.#changing.delete(broker);
    }
  }
}

const doubtMs = 1_000;

function followsOf(open: readonly { readonly kind: string; readonly id: string }[]): readonly string[] {
  return open.filter(({ kind }) => kind === "follow").map(({ id }) => id);
}

export function healthEntry({ state, message }: BrokerHealth): {
  readonly kind: string;
  readonly payload: { readonly state: string; readonly message: string | null };
} {
  return { kind: "health-changed", payload: { state, message } };
}
