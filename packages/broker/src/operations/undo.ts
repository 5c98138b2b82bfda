/** Steps of operations that did not end well: names, and the numbers of the entries with their results. */
export type Undo = readonly (readonly [name: string, seq: number])[];

/** What there is to undo after another attempt: its steps, and those of earlier ones that it has not done again. */
export function undoing(earlier: Undo, steps: Undo): Undo {
  const again = new Set(steps.map(([name]) => name));
  return [...earlier.filter(([name]) => !again.has(name)), ...steps];
}
