/** Kinds of entries that the journal writes itself. */
export const ownKinds: ReadonlySet<string> = new Set([
  "accepted",
  "step",
  "waiting",
  "retry",
  "described",
  "cancel requested",
  "settled",
  "held",
  "released",
  "hurried",
  "reordered",
  "changed",
  "pruned",
]);
