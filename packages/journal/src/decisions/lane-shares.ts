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
}

/** A process as it asks for its shares. */
export interface Asking {
  readonly id: string;
  readonly until: number;
  /** What it runs in each lane: a share does not sink below that. */
  readonly running: ReadonlyMap<string, number>;
}

/**
 * The ledger with the shares that the process should have now. Work waits in the store, where everyone finds it, so that equal shares will
 * do: whoever has a free one takes the next. A share that is too large sinks as operations end; one that is too small grows into what
 * others have left.
 */
export function nextLedger(ledger: LaneLedger, rules: readonly LaneRule[], asking: Asking, now: number): LaneLedger {
  const living = [...ledger.members].filter(([id, { until }]) => id !== asking.id && until > now);
  const ids = [...living.map(([id]) => id), asking.id].sort();
  const before = ledger.members.get(asking.id);
  const mineBefore = before !== undefined && before.until > now ? before.shares : new Map<string, number>();
  const shares = new Map<string, number>();
  for (const { lane, limit } of rules) {
    if (limit === null) continue;
    const mine = mineBefore.get(lane) ?? 0;
    const others = living.reduce((sum, [, member]) => sum + (member.shares.get(lane) ?? 0), 0);
    const fair = fairShare(limit, lane, ids, asking.id);
    const running = asking.running.get(lane) ?? 0;
    const share =
      mine > fair ? Math.max(fair, Math.min(mine, running)) : Math.max(mine, Math.min(fair, limit - others));
    if (share > 0) shares.set(lane, share);
  }
  return { members: new Map([...living, [asking.id, { until: asking.until, shares }]]) };
}

/** Without the process: it has ended. */
export function withoutMember({ members }: LaneLedger, id: string): LaneLedger {
  return { members: new Map([...members].filter(([member]) => member !== id)) };
}

/** What is left over after equal shares goes to others in each lane. */
function fairShare(limit: number, lane: string, ids: readonly string[], id: string): number {
  const offset = Buffer.from(lane).reduce((sum, byte) => sum + byte, 0);
  const place = (ids.indexOf(id) + offset) % ids.length;
  return Math.floor(limit / ids.length) + (place < limit % ids.length ? 1 : 0);
}

/** Whether a process has other shares in the one than in the other, or none at all in one of them. */
export function sharesDiffer(a: LaneLedger, b: LaneLedger, id: string): boolean {
  const [one, other] = [a.members.get(id)?.shares, b.members.get(id)?.shares];
  if (one === undefined || other === undefined || one.size !== other.size) return true;
  return [...one].some(([lane, share]) => other.get(lane) !== share);
}
