import type { Clock } from "../clock.js";
import {
  type LaneLedger,
  type LaneMember,
  type LaneRule,
  nextLedger,
  sharesDiffer,
  withoutMember,
} from "../decisions/lane-shares.js";
import type { Followed, Following } from "../followed.js";
import type { Json } from "../json.js";
import { laneLedgerKey, laneRulesKey } from "../names.js";
import type { Observe } from "../observe.js";
import { emptyState, stateOf } from "../state.js";
import type { Store } from "../store.js";
import type { StoreTime } from "./time.js";

export interface SharedLanesPorts {
  readonly store: Store;
  readonly clock: Clock;
  readonly time: StoreTime;
  readonly observe: Observe;
  readonly token: () => string;
  readonly following: Following;
  /** How long the shares of a process that is gone are not free. */
  readonly memberMs: number;
  /** What this process runs in each lane. */
  readonly running: () => ReadonlyMap<string, number>;
  /** From now on this holds in this process. */
  readonly apply: (paused: ReadonlySet<string>, shares: ReadonlyMap<string, number>) => void;
}

/** How often others may be faster: each of them has got its own change in. */
const mostTries = 50;
/** After a change of the ledger that failed, or came too late. */
const againMs = 1_000;

/**
 * Pauses and limits of lanes that hold in all processes: the rules are a followed value, and the ledger of shares (see lane-shares.ts) is
 * another one. As long as no lane has a limit, nobody writes to the ledger.
 */
export class SharedLanes {
  readonly #ports: SharedLanesPorts;
  readonly #id: string;
  readonly rules: Followed<readonly LaneRule[]>;
  readonly #ledger: Followed<LaneLedger>;
  #until = 0;
  /** Shares that are about to be given up: they are not used any more when that is written. */
  #sinking: ReadonlyMap<string, number> | undefined;
  #applied = "";
  #running = false;
  #busy: Promise<void> | undefined;
  #again = false;
  #callOff: () => void = () => undefined;

  private constructor(ports: SharedLanesPorts, rules: Followed<readonly LaneRule[]>, ledger: Followed<LaneLedger>) {
    this.#ports = ports;
    this.#id = ports.token();
    this.rules = rules;
    this.#ledger = ledger;
    rules.onChange(() => this.#look());
    ledger.onChange(() => this.#look());
    this.#apply();
  }

  static async open(ports: SharedLanesPorts): Promise<SharedLanes> {
    const { following } = ports;
    const rules = await following.follow(laneRulesKey, readRules);
    return new SharedLanes(ports, rules, await following.follow(laneLedgerKey, readLedger));
  }

  /** This process runs operations from now on. */
  begin(): void {
    this.#running = true;
    this.#look();
  }

  /** It was dropped where it stood: others get its shares when they lapse. */
  abandon(): void {
    this.#running = false;
    this.#callOff();
  }

  /** It runs none any more: others get its shares. */
  async end(): Promise<void> {
    this.abandon();
    await this.#busy;
    if (this.#ledger.value.members.has(this.#id)) await this.#change((ledger) => withoutMember(ledger, this.#id));
  }

  /** A place has become free: a share that is too large may sink. */
  freed(lane: string): void {
    const mine = this.#mine?.shares.get(lane);
    if (mine !== undefined) this.#look();
  }

  get #mine(): LaneMember | undefined {
    return this.#ledger.value.members.get(this.#id);
  }

  /** What is known holds at once; what it leads to is written then. */
  #look(): void {
    this.#apply();
    this.#again = true;
    this.#busy ??= this.#keepUp().finally(() => {
      this.#busy = undefined;
    });
  }

  #apply(): void {
    const paused = new Set<string>();
    const shares = new Map<string, number>();
    // A share that could not be renewed is another's by now.
    const stands = this.#until > this.#ports.time.now();
    for (const { lane, paused: isPaused, limit } of this.rules.value) {
      if (isPaused) paused.add(lane);
      if (limit === null) continue;
      const share = stands ? (this.#mine?.shares.get(lane) ?? 0) : 0;
      shares.set(lane, this.#sinking === undefined ? share : Math.min(share, this.#sinking.get(lane) ?? 0));
    }
    // Whoever is told looks for work: that must not happen for nothing.
    const text = JSON.stringify([[...paused], [...shares]]);
    if (text === this.#applied) return;
    this.#applied = text;
    this.#ports.apply(paused, shares);
  }

  async #keepUp(): Promise<void> {
    const { clock, observe, memberMs } = this.#ports;
    let nextMs: number | null = null;
    while (this.#again && this.#running) {
      this.#again = false;
      const isLimited = this.rules.value.some(({ limit }) => limit !== null);
      try {
        nextMs = isLimited ? memberMs / 3 : null;
        if (isLimited) await this.#renew();
        else if (this.#mine !== undefined) await this.#change((ledger) => withoutMember(ledger, this.#id));
      } catch (error) {
        observe({ kind: "store failed", doing: "share lanes", error });
        nextMs = againMs;
      }
      this.#apply();
    }
    this.#callOff();
    if (nextMs !== null && this.#running) this.#callOff = clock.after(nextMs, () => this.#look());
  }

  async #renew(): Promise<void> {
    const { time, memberMs, running } = this.#ports;
    const due = this.#until - time.now() < (memberMs * 2) / 3;
    const asking = () => ({ id: this.#id, until: time.now() + memberMs, running: running() });
    const known = this.#ledger.value;
    // Nothing to say, and not yet the time to say that this process lives.
    if (!due && !sharesDiffer(known, nextLedger(known, this.rules.value, asking(), time.now()), this.#id)) return;
    let until = 0;
    let told = false;
    const renewed = (ledger: LaneLedger) => {
      const me = asking();
      until = me.until;
      const next = nextLedger(ledger, this.rules.value, me, time.now());
      told = sharesDiffer(ledger, next, this.#id);
      // In the same breath in which it was counted what runs: nothing begins in a share that others may have in a moment.
      this.#sinking = next.members.get(this.#id)?.shares;
      this.#apply();
      return next;
    };
    try {
      await this.#change(renewed, () => told);
      this.#until = until;
    } finally {
      this.#sinking = undefined;
    }
  }

  /** Compare and append, below the journal: it has one entry, the newest, and is nobody's history. */
  async #change(decide: (ledger: LaneLedger) => LaneLedger, tells: () => boolean = () => true): Promise<void> {
    const { store, token, time, following } = this.#ports;
    for (let tries = 0; tries < mostTries; tries++) {
      const record = (await store.read(laneLedgerKey, []))?.record;
      const data = ledgerData(decide(readLedger(record === undefined ? null : stateOf(record).data)));
      const epoch = record?.epoch ?? time.now();
      const outcome = await store.commit({
        key: laneLedgerKey,
        expected: record === undefined ? null : { seq: record.seq, epoch: record.epoch },
        token: token(),
        state: JSON.stringify({ ...emptyState, heldEpoch: epoch, data }),
        lane: "",
        epoch,
        lease: null,
        dueAt: null,
        entries: [{ kind: "lanes shared", operation: null, body: entryBody }],
        putParts: [],
        deleteParts: [],
        addLabels: [],
        removeLabels: [],
        deleteEntries: record === undefined ? [] : [record.seq],
        wake: false,
        followed: tells(),
      });
      if (outcome.kind === "conflict") continue;
      following.saw(laneLedgerKey, (await store.read(laneLedgerKey, []))?.record);
      return;
    }
    throw new Error("others kept changing the shares of lanes");
  }
}

const entryBody = '{"actor":{"type":"system","subject":"journal"},"payload":null}';

/** What another version wrote and this one does not know is left out. */
function readRules(data: Json): readonly LaneRule[] {
  const rules: LaneRule[] = [];
  for (const rule of Array.isArray(data) ? (data as readonly Json[]) : []) {
    if (!isObject(rule) || typeof rule.lane !== "string") continue;
    const limit = typeof rule.limit === "number" ? rule.limit : null;
    rules.push({ lane: rule.lane, paused: rule.paused === true, limit });
  }
  return rules;
}

function ledgerData({ members }: LaneLedger): Json {
  return Object.fromEntries(
    [...members].map(([id, { until, shares }]) => [id, { until, shares: Object.fromEntries(shares) }]),
  );
}

function readLedger(data: Json): LaneLedger {
  const members = new Map<string, LaneMember>();
  for (const [id, member] of Object.entries(isObject(data) ? data : {})) {
    if (!isObject(member) || typeof member.until !== "number" || !isObject(member.shares ?? null)) continue;
    const shares = Object.entries(member.shares as object).filter(
      (entry): entry is [string, number] => typeof entry[1] === "number",
    );
    members.set(id, { until: member.until, shares: new Map(shares) });
  }
  return { members };
}

function isObject(value: Json): value is { readonly [name: string]: Json } {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
