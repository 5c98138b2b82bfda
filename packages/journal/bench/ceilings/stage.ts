import type { Change } from "../operations.js";

/** One of the commits of a resource: the record's values after it, and its entries. */
export interface Stage {
  readonly isNew: boolean;
  readonly seq: number;
  readonly epoch: number;
  readonly lane: string;
  readonly dueAt: number | null;
  readonly owner: string | null;
  readonly until: number | null;
  readonly state: string;
  readonly token: string;
  readonly at: number;
  readonly entries: readonly (Change["entries"][number] & { readonly seq: number })[];
}

/** What is in a stage is written over and over for other keys, so nothing is left to be worked out there. */
export function stagesOf(changes: readonly Change[]): readonly Stage[] {
  const at = Date.now();
  return changes.map(({ expected, entries, epoch, lane, dueAt, lease, state, token }) => {
    const before = expected?.seq ?? 0;
    if (lease === "keep" || dueAt === "keep") throw new Error("a ceiling cannot keep what it does not know");
    return {
      isNew: expected === null,
      seq: before + entries.length,
      epoch,
      lane,
      dueAt,
      owner: lease?.owner ?? null,
      until: lease?.until ?? null,
      state,
      token,
      at,
      entries: entries.map((entry, index) => ({ ...entry, seq: before + index + 1 })),
    };
  });
}
