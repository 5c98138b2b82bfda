import type { Clock } from "../clock.js";
import { nextDelayMs } from "../decisions/backoff.js";
import {
  type LaneLedger,
  type LaneMember,
  type LaneNeed,
  type LaneRule,
  markGone,
  memberDiffers,
  nextLedger,
  withoutMember,
} from "../decisions/lane-shares.js";
import { JournalError } from "../errors.js";
import type { Followed, Following } from "../followed.js";
import type { Json } from "../json.js";
import { laneLedgerKey, laneRulesKey } from "../names.js";
import type { Observe } from "../observe.js";
import { emptyState, stateOf } from "../state.js";
import type { Change, Store } from "../store.js";
import type { StoreTime } from "./time.js";

export interface SharedLanesPorts {
  readonly store: Store;
  readonly clock: Clock;
  readonly time: StoreTime;
  readonly observe: Observe;
  readonly random: () => number;
  readonly token: () => string;
  readonly following: Following;
  /** Rejects if the work is not over in this time. */
  readonly within: <T>(work: Promise<T>, ms: number) => Promise<T>;
  /** How long the shares of a process that is gone are not free. */
  readonly memberMs: number;
  readonly use: LaneUse;
  /** From now on this holds in this process; the shares until that time. `isNews`: there may be work that can begin now. */
  readonly apply: (
    paused: ReadonlySet<string>,
    shares: ReadonlyMap<string, number>,
    until: number,
    isNews: boolean,
  ) => void;
}

/** What this process makes of its lanes. */
export interface LaneUse {
  /** What runs in each of them. */
  readonly running: () => ReadonlyMap<string, number>;
  /** Since when it has had no room for more of a lane, whatever its share; `null`: it has some. */
  readonly fullSince: (lane: string) => number | null;
  /** How many operations of resources that it holds wait for a place in the lane. */
  readonly awaited: (lane: string) => number;
  /** The name under which it is present at the store. */
  readonly owner: () => string | null;
}

/** Who has no room for so long leaves its places to others: a place that is taken again at once is not worth a write. */
const fullMs = 1_000;
/** Between looks whether there is something to write: that asks nobody. */
const watchMs = 1_000;
/** How often others may be faster before it is a failure. */
const mostTries = 10;
const conflictBackoff = { firstMs: 20, factor: 2, longestMs: 1_000 };
const failureBackoff = { firstMs: 1_000, factor: 2, longestMs: 10_000 };
/** All hear of a change at once, and may have something to write then: for each of them so long a stretch, of which it takes any moment. */
const spreadMs = 10;
const longestSpreadMs = 500;
/** What the ledger said of this process counts for so long without asking again. */
const trustMs = 1_000;
/** Since all can read that a process is gone, so long: longer than it may trust what it read before. Its shares are free then. */
const goneMs = 2 * trustMs;
/** Parts of the time for which shares are written: after one they are renewed, for one a call is waited for, one is for clocks that drift apart. */
const renewalShare = 1 / 3;
const patienceShare = 1 / 6;
const marginShare = 1 / 10;

/**
 * Pauses and limits of lanes that hold in all processes: the rules are a followed value, and the ledger of shares (see lane-shares.ts) is
 * another one. As long as no lane has a limit, nobody writes to the ledger.
 *
 * The order of effects keeps a limit whatever is lost, or hangs, in between:
 * - A share grows here after that is written. It sinks here before that is sent, and stays down until a later commit of this process is
 *   confirmed: as long as an answer is missing, the store may have either, or get it later.
 * - It stands here as long as a confirmed commit said, less a margin, and there as long as any commit says. `Lanes` looks at that time in
 *   the moment in which an operation begins, so that nothing has to happen in time for a share to lapse.
 * - The store may know earlier that a process is gone: its owner is. That is written first, and its shares are free to others `goneMs` after they
 *   have read it. One that lives nevertheless, because it was only cut off for a moment, has asked the ledger less than `trustMs` before anything
 *   begins: so it has either seen that, or has begun before its shares were another's. It writes its shares anew, or finds that it has none.
 */
export class SharedLanes {
  readonly #ports: SharedLanesPorts;
  readonly #id: string;
  readonly rules: Followed<readonly LaneRule[]>;
  readonly #ledger: Followed<LaneLedger>;
  /** How long the shares stand, by a confirmed commit, and when they are renewed. */
  #until = 0;
  #renewAt = 0;
  /** When the ledger was asked that last had this process as one that lives, on the monotonic clock, and under which name. */
  #vouched: { readonly at: number; readonly owner: string | null } = { at: Number.NEGATIVE_INFINITY, owner: null };
  #vouching: Promise<void> | undefined;
  /** It could not be asked: nothing begins before it has answered. */
  #isDoubtful = false;
  /** Owners that the store knows no more, and when to ask it again. */
  #goneOwners: ReadonlySet<string> = new Set();
  #askGoneAt = Number.NEGATIVE_INFINITY;
  /** Since when this process knows that it is written of others that they are gone. */
  readonly #goneSince = new Map<string, number>();
  /** The smallest share of each lane that a commit of unknown outcome may have left. */
  #ceiling: ReadonlyMap<string, number> | undefined;
  #applied = "";
  #isRunning = false;
  #isKeepingUp = false;
  #again = false;
  #failures = 0;
  #idle: Promise<void> = Promise.resolve();
  /** Ends what is being waited for. */
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
    this.#isRunning = true;
    this.#look();
  }

  /** It was dropped where it stood: others get its shares when they lapse. */
  abandon(): void {
    this.#isRunning = false;
    this.#callOff();
  }

  /** It runs none any more: others get its shares. */
  async end(): Promise<void> {
    this.abandon();
    await this.#idle;
    if (this.#mine !== undefined) await this.#change((ledger) => withoutMember(ledger, this.#id));
  }

  /** A place has become free: a share that is too large may sink. */
  freed(lane: string): void {
    const mine = this.#mine?.shares.get(lane);
    if (mine !== undefined) this.#look();
  }

  /** Before an operation begins in a lane with a limit. What it leads to has been told to the lanes when this resolves. */
  async confirm(lane: string): Promise<void> {
    if (!this.rules.value.some((rule) => rule.lane === lane && rule.limit !== null)) return;
    const { at, owner } = this.#vouched;
    if (this.#ports.clock.monotonicMs() - at < trustMs && owner === this.#ports.use.owner()) return;
    this.#vouching ??= this.#vouch().finally(() => {
      this.#vouching = undefined;
    });
    await this.#vouching;
  }

  async #vouch(): Promise<void> {
    try {
      await this.#change(() => undefined);
    } catch (error) {
      this.#ports.observe({ kind: "store failed", doing: "share lanes", error });
      this.#isDoubtful = true;
    }
    this.#look();
  }

  get #mine(): LaneMember | undefined {
    return this.#ledger.value.members.get(this.#id);
  }

  /** Whether the ledger has it as it is: one that came back under another name may be taken for gone under the one before. */
  get #isKnown(): boolean {
    return !this.#isDoubtful && this.#mine?.goneAt === null && this.#mine.owner === this.#ports.use.owner();
  }

  /** What is known holds at once; what it leads to is written then. */
  #look(): void {
    this.#noteGone(this.#ledger.value);
    this.#apply();
    this.#again = true;
    if (this.#isRunning && !this.#isKeepingUp) this.#idle = this.#keepUp();
  }

  #apply(): void {
    const paused = new Set<string>();
    const shares = new Map<string, number>();
    // A place that is to be given up is not taken again while that is being written.
    const wanted = this.#next(this.#ledger.value).members.get(this.#id)?.shares;
    for (const { lane, paused: isPaused, limit } of this.rules.value) {
      if (isPaused) paused.add(lane);
      if (limit === null) continue;
      const share = this.#isKnown ? Math.min(this.#mine?.shares.get(lane) ?? 0, wanted?.get(lane) ?? 0) : 0;
      shares.set(lane, this.#ceiling === undefined ? share : Math.min(share, this.#ceiling.get(lane) ?? 0));
    }
    const until = this.#until - this.#ports.memberMs * marginShare;
    // Whoever is told looks for work: that must not happen for nothing.
    const text = JSON.stringify([[...paused], [...shares], until > this.#ports.time.now()]);
    this.#ports.apply(paused, shares, until, text !== this.#applied);
    this.#applied = text;
  }

  async #keepUp(): Promise<void> {
    const { clock, observe, random } = this.#ports;
    this.#isKeepingUp = true;
    this.#callOff();
    let nextMs: number | null = null;
    while (this.#again && this.#isRunning) {
      this.#again = false;
      try {
        nextMs = await this.#keepShares();
        this.#failures = 0;
      } catch (error) {
        observe({ kind: "store failed", doing: "share lanes", error });
        nextMs = nextDelayMs(++this.#failures, random, failureBackoff);
      }
      this.#apply();
    }
    // In the same turn as the last look at `#again`: whoever sets it later finds that nobody keeps up, and begins.
    this.#isKeepingUp = false;
    if (nextMs !== null && this.#isRunning) this.#callOff = clock.after(nextMs, () => this.#look());
  }

  /** Answers when to look again, although nothing is heard of; `null`: not at all. */
  async #keepShares(): Promise<number | null> {
    const { random } = this.#ports;
    const { members } = this.#ledger.value;
    if (this.rules.value.every(({ limit }) => limit === null)) {
      if (this.#mine !== undefined) await this.#change((ledger) => withoutMember(ledger, this.#id));
      return null;
    }
    if (this.#isDoubtful) await this.#change(() => undefined);
    await this.#askWhoIsGone();
    if (!this.#isToWrite(this.#ledger.value, this.#next(this.#ledger.value))) return watchMs;
    await this.#pause(random() * Math.min(members.size * spreadMs, longestSpreadMs));
    if (this.#isRunning) await this.#renew();
    return watchMs;
  }

  /** As often as dead engines are looked for. Where a store has one process, that is once. */
  async #askWhoIsGone(): Promise<void> {
    const { store, clock, time, observe } = this.#ports;
    if (clock.monotonicMs() < this.#askGoneAt) return;
    const others = [...this.#ledger.value.members].filter(([id, { until }]) => id !== this.#id && until > time.now());
    const owners = others.flatMap(([, { owner, goneAt }]) => (owner === null || goneAt !== null ? [] : [owner]));
    this.#askGoneAt = clock.monotonicMs() + (store.pace.reapMs ?? Number.POSITIVE_INFINITY);
    if (owners.length === 0) return;
    try {
      this.#goneOwners = new Set(await this.#ask(() => store.gone(owners)));
    } catch (error) {
      // Then their shares lapse. Its own have to be renewed all the same.
      observe({ kind: "store failed", doing: "share lanes", error });
    }
  }

  #noteGone({ members }: LaneLedger): void {
    const marks = new Set([...members].flatMap(([id, { goneAt }]) => (goneAt === null ? [] : [`${id} ${goneAt}`])));
    for (const mark of this.#goneSince.keys()) if (!marks.has(mark)) this.#goneSince.delete(mark);
    const now = this.#ports.clock.monotonicMs();
    for (const mark of marks) if (!this.#goneSince.has(mark)) this.#goneSince.set(mark, now);
  }

  /** Without those of which it is written for so long that they are gone that they have begun nothing since. */
  #withoutGone({ members }: LaneLedger): LaneLedger {
    const seenBy = this.#ports.clock.monotonicMs() - goneMs;
    const isFree = (id: string, { goneAt }: LaneMember) =>
      id !== this.#id && goneAt !== null && (this.#goneSince.get(`${id} ${goneAt}`) ?? Infinity) <= seenBy;
    return { members: new Map([...members].filter(([id, member]) => !isFree(id, member))) };
  }

  /** The ledger as this process wants it. */
  #next(ledger: LaneLedger): LaneLedger {
    const { time, memberMs, use } = this.#ports;
    const now = time.now();
    const running = use.running();
    const needOf = (lane: string): LaneNeed => {
      const fullSince = use.fullSince(lane);
      if (fullSince !== null) return now - fullSince >= fullMs ? "none" : "any";
      const awaited = use.awaited(lane);
      return awaited > 0 ? (running.get(lane) ?? 0) + awaited : "any";
    };
    const asking = { id: this.#id, owner: use.owner(), until: now + memberMs, running, needOf };
    const known = markGone(this.#withoutGone(ledger), this.#goneOwners, now);
    return nextLedger(known, this.rules.value, asking, now);
  }

  /** Else it has nothing to say, and it is not yet time to say that it lives. */
  #isToWrite(ledger: LaneLedger, next: LaneLedger): boolean {
    return this.#ports.time.now() >= this.#renewAt || memberDiffers(ledger, next, this.#id) || isMarked(ledger, next);
  }

  async #renew(): Promise<void> {
    const { time, random, memberMs } = this.#ports;
    let mine: LaneMember | undefined;
    await this.#change((ledger) => {
      const next = this.#next(ledger);
      mine = this.#isToWrite(ledger, next) ? next.members.get(this.#id) : undefined;
      // In the same breath in which it was counted what runs: nothing begins in a share that others may have in a moment.
      if (mine !== undefined) this.#ceiling = lowest(this.#ceiling, mine.shares);
      this.#apply();
      return mine && next;
    });
    // One that lives and writes so is not written off again before the store was asked once more.
    this.#goneOwners = new Set();
    if (mine === undefined) return;
    this.#ceiling = undefined;
    this.#until = mine.until;
    this.#renewAt = time.now() + memberMs * renewalShare * (0.75 + random() / 2);
  }

  /** Compare and append, below the journal: it has one entry, the newest, and is nobody's history. */
  async #change(decide: (ledger: LaneLedger) => LaneLedger | undefined): Promise<void> {
    const { store, clock, token, time, random, following } = this.#ports;
    for (let tries = 0; tries < mostTries; tries++) {
      // The first one that is faster has done so by now. If there are many of them, they have to spread.
      if (tries > 1) await this.#pause(nextDelayMs(tries, random, conflictBackoff));
      const readAt = clock.monotonicMs();
      const record = (await this.#ask(() => store.read(laneLedgerKey, [])))?.record;
      const before = readLedger(record === undefined ? null : stateOf(record).data);
      this.#noteGone(before);
      this.#isDoubtful = false;
      const mine = before.members.get(this.#id);
      if (mine?.goneAt === null) this.#vouched = { at: readAt, owner: mine.owner };
      const after = decide(before);
      if (after === undefined) return following.saw(laneLedgerKey, record);
      const epoch = record?.epoch ?? time.now();
      const change: Change = {
        key: laneLedgerKey,
        expected: record === undefined ? null : { seq: record.seq, epoch: record.epoch },
        token: token(),
        state: JSON.stringify({ ...emptyState, heldEpoch: epoch, data: ledgerData(after) }),
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
        // That someone lives is found out by whoever needs to know.
        followed: memberDiffers(before, after, this.#id) || isMarked(before, after),
      };
      const askedAt = time.asks();
      const outcome = await this.#ask(() => store.commit(change));
      if (outcome.kind === "conflict") continue;
      time.learn(outcome.at, askedAt);
      const { state, lane } = change;
      following.saw(laneLedgerKey, {
        key: laneLedgerKey,
        seq: (record?.seq ?? 0) + 1,
        epoch,
        state,
        lane,
        dueAt: null,
        lease: null,
      });
      return;
    }
    throw new JournalError("contention", "others kept changing the shares of lanes");
  }

  /** A call that is never answered must not be the last one. */
  #ask<T>(call: () => Promise<T>): Promise<T> {
    return this.#ports.within(call(), this.#ports.memberMs * patienceShare);
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const callOffTimer = this.#ports.clock.after(ms, resolve);
      this.#callOff = () => {
        callOffTimer();
        resolve();
      };
    });
  }
}

/** Whether it is written of more processes in the one than in the other that they are gone. */
function isMarked(before: LaneLedger, after: LaneLedger): boolean {
  return [...after.members].some(([id, { goneAt }]) => goneAt !== null && before.members.get(id)?.goneAt === null);
}

function lowest(
  ceiling: ReadonlyMap<string, number> | undefined,
  shares: ReadonlyMap<string, number>,
): ReadonlyMap<string, number> {
  if (ceiling === undefined) return shares;
  return new Map([...shares].map(([lane, share]) => [lane, Math.min(share, ceiling.get(lane) ?? 0)]));
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
    [...members].map(([id, { until, shares, needs, owner, goneAt }]) => [
      id,
      { until, shares: Object.fromEntries(shares), needs: Object.fromEntries(needs), owner, goneAt },
    ]),
  );
}

function readLedger(data: Json): LaneLedger {
  const members = new Map<string, LaneMember>();
  for (const [id, member] of entriesOf(data)) {
    if (!isObject(member) || typeof member.until !== "number") continue;
    const shares = entriesOf(member.shares).filter((entry): entry is [string, number] => typeof entry[1] === "number");
    const needs = entriesOf(member.needs).flatMap(([lane, need]) => needIn(lane, need));
    const owner = typeof member.owner === "string" ? member.owner : null;
    const goneAt = typeof member.goneAt === "number" ? member.goneAt : null;
    members.set(id, { until: member.until, shares: new Map(shares), needs: new Map(needs), owner, goneAt });
  }
  return { members };
}

function entriesOf(data: Json | undefined): [string, Json][] {
  return data !== undefined && isObject(data) ? Object.entries(data) : [];
}

/** A version before this one wrote "urgent", whatever it was that waited. */
function needIn(lane: string, need: Json): readonly [lane: string, need: LaneNeed][] {
  if (need === "urgent") return [[lane, Number.MAX_SAFE_INTEGER]];
  return need === "none" || need === "any" || (Number.isSafeInteger(need) && Number(need) >= 0)
    ? [[lane, need as LaneNeed]]
    : [];
}

function isObject(value: Json): value is { readonly [name: string]: Json } {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
