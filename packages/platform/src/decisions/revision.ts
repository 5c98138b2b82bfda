import type { InstanceData } from "../records/instance-record.js";

/** So many changes are told to whoever acted on an older revision. */
const rememberedChanges = 20;
const longestSummary = 200;

/** The instance with one more change: its revision is its entity tag. */
export function raiseRevision(data: InstanceData, at: number, by: string, summary: string): InstanceData {
  const { revision, changes } = nextRevision(data, at, by, summary);
  return { ...data, revision, changes };
}

/** The same for whoever writes more of the instance at once: each copy of it counts. */
export function nextRevision(
  data: Pick<InstanceData, "revision" | "changes">,
  at: number,
  by: string,
  summary: string,
): Pick<InstanceData, "revision" | "changes"> {
  const revision = data.revision + 1;
  const change = { revision, at, by: shortened(by, longestSummary), summary: shortened(summary, longestSummary) };
  return { revision, changes: [...data.changes.slice(1 - rememberedChanges), change] };
}

/** At most so many UTF-16 units, never half a character. */
export function shortened(text: string, most: number): string {
  if (text.length <= most) return text;
  return `${text.slice(0, most - 1).replace(/[\ud800-\udbff]$/, "")}…`;
}
