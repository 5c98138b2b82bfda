/** What holds for a lane in all processes of a store. */
export interface LaneRule {
  readonly lane: string;
  /** Nothing begins in it; what runs goes on. */
  readonly paused: boolean;
  /** So many operations of it run at a time, in all processes together. `null`: as many as each process has room for. */
  readonly limit: number | null;
}

/**
 * Who may run how much of the lanes that have a limit. Each process changes its own shares alone, and never so that all shares of a lane
 * are more than its limit: so the limit is kept without anybody being asked when an operation begins.
 */
export interface LaneLedger {
  readonly members: ReadonlyMap<string, LaneMember>;
}

export interface LaneMember {
  /** On the store's clock. After it the process counts as dead, and its shares are free. */
  readonly until: number;
  readonly shares: ReadonlyMap<string, number>;
  /** Lanes of which it does not need just any. */
  readonly needs: ReadonlyMap<string, LaneNeed>;
  /** The name under which its engine is present at the store; `null`: under none. */
  readonly owner: string | null;
  /** When another process wrote that the store knows this name no more; `null`: none did. Its shares are about to be free, unless it writes again. */
  readonly goneAt: number | null;
}

/**
 * What a process could do with more places of a lane:
 * - "none": nothing, because it has no room to run more.
 * - "any": it would run what waits in the store, as others would.
 * - A number: so many places in all are urgent. Operations run in them, or wait for them on resources that it holds, so that nobody else can run those.
 */
export type LaneNeed = "none" | "any" | number;

/** A process as it asks for its shares. */
export interface Asking {
  readonly id: string;
  readonly owner: string | null;
  readonly until: number;
  /** What it runs in each lane: a share does not sink below that. */
  readonly running: ReadonlyMap<string, number>;
  readonly needOf: (lane: string) => LaneNeed;
}

/** What is left over after equal shares goes to others after so long: whoever gets none has its turn some time. */
const turnMs = 60_000;

/**
 * The ledger with the shares that the process should have now. What runs keeps its places; of the others, first come those that are urgent, and all
 * have equal shares of the rest. Work waits in the store, where everyone finds it, so that this will do: whoever has a free place takes the next. A
 * share that is too large sinks as operations end; one that is too small grows into what others have left.
 */
export function nextLedger(ledger: LaneLedger, rules: readonly LaneRule[], asking: Asking, now: number): LaneLedger {
  const living = [...ledger.members].filter(([id, { until }]) => id !== asking.id && until > now);
  const before = ledger.members.get(asking.id);
  const mineBefore = before !== undefined && before.until > now ? before.shares : new Map<string, number>();
  const shares = new Map<string, number>();
  const needs = new Map<string, LaneNeed>();
  for (const { lane, limit } of rules) {
    if (limit === null) continue;
    const need = steadyNeed(asking.needOf(lane), before?.needs.get(lane), limit);
    if (need !== "any") needs.set(lane, need);
    const mine = mineBefore.get(lane) ?? 0;
    const others = living.reduce((sum, [, member]) => sum + (member.shares.get(lane) ?? 0), 0);
    const fair = fairShare(lane, limit, { id: asking.id, need }, living, now);
    const running = asking.running.get(lane) ?? 0;
    const share =
      mine > fair ? Math.max(fair, Math.min(mine, running)) : Math.max(mine, Math.min(fair, limit - others));
    if (share > 0) shares.set(lane, share);
  }
  const { id, owner, until } = asking;
  return { members: new Map([...living, [id, { until, shares, needs, owner, goneAt: null }]]) };
}

/** Each end of an operation changes how many are urgent: what was written stands as long as it is not much too large, so that not each is a write. */
function steadyNeed(need: LaneNeed, before: LaneNeed | undefined, limit: number): LaneNeed {
  if (typeof need !== "number") return need;
  const urgent = Math.min(need, limit);
  return typeof before === "number" && before >= urgent && before <= Math.min(2 * urgent, limit) ? before : urgent;
}

/** The ledger in which it is written of these owners that the store knows them no more. */
export function markGone({ members }: LaneLedger, owners: ReadonlySet<string>, now: number): LaneLedger {
  const marked = [...members].map(([id, member]): [string, LaneMember] => {
    const isNews = member.goneAt === null && member.owner !== null && owners.has(member.owner);
    return [id, isNews ? { ...member, goneAt: now } : member];
  });
  return { members: new Map(marked) };
}

/** Without the process: it has ended. */
export function withoutMember({ members }: LaneLedger, id: string): LaneLedger {
  return { members: new Map([...members].filter(([member]) => member !== id)) };
}

/**
 * What the process should have, if those that need nothing keep what they have: what is urgent for it, as far as there is so much for all of which it is,
 * and beyond that as much as all others.
 */
function fairShare(
  lane: string,
  limit: number,
  mine: { readonly id: string; readonly need: LaneNeed },
  others: readonly (readonly [string, LaneMember])[],
  now: number,
): number {
  if (mine.need === "none") return 0;
  const needs = new Map<string, LaneNeed>([[mine.id, mine.need]]);
  let left = limit;
  for (const [id, member] of others) {
    const need = member.needs.get(lane) ?? "any";
    if (need === "none") left = Math.max(0, left - (member.shares.get(lane) ?? 0));
    else needs.set(id, need);
  }
  const ids = [...needs.keys()].sort();
  const turn = Buffer.from(lane).reduce((sum, byte) => sum + byte, Math.floor(now / turnMs)) % ids.length;
  const inTurn = [...ids.slice(turn), ...ids.slice(0, turn)];
  const urgent = inTurn.map((id) => needs.get(id)).map((need) => (typeof need === "number" ? need : 0));
  return levelled(left, filled(left, urgent))[inTurn.indexOf(mine.id)] ?? 0;
}

/** To each what it wants; where there is not so much, none gets more than another that wants more. What cannot be halved goes to the first. */
function filled(total: number, wants: readonly number[]): readonly number[] {
  const given = wants.map(() => 0);
  let left = total;
  for (let open = [...wants.keys()]; ; ) {
    open = open.filter((at) => (given[at] ?? 0) < (wants[at] ?? 0));
    if (open.length === 0 || left === 0) return given;
    const each = Math.floor(left / open.length);
    if (each === 0) open = open.slice(0, left);
    for (const at of open) {
      const more = Math.min(Math.max(1, each), (wants[at] ?? 0) - (given[at] ?? 0));
      given[at] = (given[at] ?? 0) + more;
      left -= more;
    }
  }
}

/** All of the total, of which these are the least: those that have least are raised to one level. What cannot be halved goes to the first. */
function levelled(total: number, least: readonly number[]): readonly number[] {
  for (let low = [...least.keys()]; ; ) {
    const above = least.reduce((sum, one, at) => (low.includes(at) ? sum : sum + one), 0);
    const level = Math.floor((total - above) / low.length);
    const still = low.filter((at) => (least[at] ?? 0) <= level);
    // All of them together are not more than the total, so that one at least is not above the level.
    if (still.length < low.length) {
      low = still;
      continue;
    }
    const over = total - above - level * low.length;
    return least.map((one, at) => (low.includes(at) ? level + (low.indexOf(at) < over ? 1 : 0) : one));
  }
}

/** Whether something else is written of a process in the one than in the other, but for how long it stands. */
export function memberDiffers(a: LaneLedger, b: LaneLedger, id: string): boolean {
  const [one, other] = [a.members.get(id), b.members.get(id)];
  if (one === undefined || other === undefined) return one !== other;
  if (one.owner !== other.owner || one.goneAt !== other.goneAt) return true;
  return !isSame(one.shares, other.shares) || !isSame(one.needs, other.needs);
}

function isSame<Value>(a: ReadonlyMap<string, Value>, b: ReadonlyMap<string, Value>): boolean {
  return a.size === b.size && [...a].every(([lane, value]) => b.get(lane) === value);
}
