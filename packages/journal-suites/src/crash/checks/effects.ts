import type { Run, Story } from "./evidence.js";
import type { Violation } from "./violation.js";

/** J4: what an operation does to another resource is done once, and by its end it is done. */
export function effectViolations({ dump }: Run, stories: readonly Story[]): readonly Violation[] {
  const times = new Map<string, number>();
  for (const { parts, record } of dump) {
    for (const { id, body } of parts) if (id.startsWith("taken/")) times.set(`${record.key} ${id}`, Number(body));
  }
  const twice = [...times].filter(([, made]) => made !== 1);
  return [
    ...twice.map(([where, made]) => ({ kind: "effect made twice", story: `${where}: ${made} times` }) as const),
    ...stories.flatMap((story) => missing(story, times)),
  ];
}

function missing({ script, ends = [] }: Story, times: ReadonlyMap<string, number>): readonly Violation[] {
  if (script.ledger === null) return [];
  const got = ends.filter(
    ({ outcome }) => outcome.kind === "succeeded" || (outcome.kind === "failed" && outcome.error.class === "permanent"),
  );
  return got.flatMap(({ id }): readonly Violation[] => {
    const where = `${script.ledger} taken/${script.key}/${id}`;
    return times.has(where) ? [] : [{ kind: "effect missing", story: where }];
  });
}
