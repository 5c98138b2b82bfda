/** A lane with something due, and how much of it may be claimed. */
export interface OpenLane {
  readonly lane: string;
  /** The earliest due time in it that counts. */
  readonly dueAt: number;
  readonly room: number;
}

/** Something due that could be claimed. */
export interface Candidate {
  readonly lane: string;
  readonly dueAt: number;
}

/** How many to claim of each lane, so that all in all the earliest are claimed, and no more than `limit`. */
export function sharesOf(
  lanes: readonly OpenLane[],
  candidates: readonly Candidate[],
  limit: number,
): readonly OpenLane[] {
  const shares = new Map<string, number>();
  const earliest = [...candidates].sort((a, b) => a.dueAt - b.dueAt).slice(0, limit);
  for (const { lane } of earliest) shares.set(lane, (shares.get(lane) ?? 0) + 1);
  return lanes.flatMap((open) => {
    const room = shares.get(open.lane) ?? 0;
    return room === 0 ? [] : [{ ...open, room }];
  });
}
