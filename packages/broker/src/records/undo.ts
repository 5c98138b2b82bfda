import type { Json } from "@osbert/journal";

/** Steps of operations that did not end well: names, and the numbers of the entries with their results. */
export type Undo = readonly (readonly [name: string, seq: number])[];

/** What there is to undo after another attempt: its steps, and those of earlier ones that it has not done again. */
export function undoing(earlier: Undo, steps: Undo): Undo {
  const again = new Set(steps.map(([name]) => name));
  return [...earlier.filter(([name]) => !again.has(name)), ...steps];
}

/** The entries with the results of steps that are still to be undone: cleanup leaves them alone until they are. */
export function neededToUndo(records: ReadonlyMap<string, Json>): readonly number[] {
  return Array.from(records.values()).flatMap((record) =>
    ((record as { readonly undo?: Undo } | null)?.undo ?? []).map(([, seq]) => seq),
  );
}
