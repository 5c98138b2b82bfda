import type { Change, Label, Lease, NewEntry, StoredPart } from "../../store.js";

export type Cell = string | number | null;

/** Where cells are put; others may put other things between changes. */
export type Cells = { push(...cells: Cell[]): unknown };

/** What of a change the writer needs. */
export type WrittenChange = Omit<Change, "wake">;

/** Appends a change to `cells`: fixed fields, then each list with its length before it. */
export function putChange(cells: Cells, change: WrittenChange): void {
  const { expected, lease, dueAt } = change;
  cells.push(change.key, expected === null ? null : expected.seq, expected === null ? null : expected.epoch);
  cells.push(change.token, change.state, change.lane, change.epoch);
  if (lease === "keep" || lease === null) cells.push(lease === null ? null : keep);
  else cells.push(lease.until, lease.owner);
  cells.push(dueAt === "keep" ? keep : dueAt);
  cells.push(change.entries.length);
  for (const { kind, operation, body } of change.entries) cells.push(kind, operation, body);
  cells.push(change.putParts.length);
  for (const { id, body } of change.putParts) cells.push(id, body);
  putList(cells, change.deleteParts);
  putLabels(cells, change.addLabels);
  putLabels(cells, change.removeLabels);
  putList(cells, change.deleteEntries);
}

/** Takes the change that starts at `cells[start]`. Answers it and where the next one starts. */
export function takeChange(
  cells: readonly unknown[],
  start: number,
): { readonly change: WrittenChange; readonly end: number } {
  const from = new Cursor(cells, start);
  const key = from.text();
  const [seq, epoch] = [from.numberOrNull(), from.numberOrNull()];
  const change: WrittenChange = {
    key,
    expected: seq === null || epoch === null ? null : { seq, epoch },
    token: from.text(),
    state: from.text(),
    lane: from.text(),
    epoch: from.number(),
    lease: takeLease(from),
    dueAt: from.keepOr(() => from.numberOrNull()),
    entries: from.list((): NewEntry => ({ kind: from.text(), operation: from.textOrNull(), body: from.text() })),
    putParts: from.list((): StoredPart => ({ id: from.text(), body: from.text() })),
    deleteParts: from.list(() => from.text()),
    addLabels: from.list(() => takeLabel(from)),
    removeLabels: from.list(() => takeLabel(from)),
    deleteEntries: from.list(() => from.number()),
  };
  return { change, end: from.at };
}

/** About how many bytes a change takes on its way and in the file. */
export function weightOf({ state, entries, putParts }: WrittenChange): number {
  let weight = 200 + state.length;
  for (const { body } of entries) weight += 100 + body.length;
  for (const { body } of putParts) weight += 100 + body.length;
  return weight;
}

/** Stands where a number or null may stand, so that no text is taken for it. */
const keep = "keep";

/** Not with a spread: a list may be longer than a call takes arguments. */
function putList(cells: Cells, items: readonly Cell[]): void {
  cells.push(items.length);
  for (const item of items) cells.push(item);
}

function putLabels(cells: Cells, labels: readonly Label[]): void {
  cells.push(labels.length);
  for (const { name, value } of labels) cells.push(name, value);
}

function takeLabel(from: Cursor): Label {
  return { name: from.text(), value: from.text() };
}

function takeLease(from: Cursor): Lease | null | "keep" {
  return from.keepOr(() => {
    const until = from.numberOrNull();
    return until === null ? null : { until, owner: from.text() };
  });
}

class Cursor {
  readonly #cells: readonly unknown[];
  at: number;

  constructor(cells: readonly unknown[], at: number) {
    this.#cells = cells;
    this.at = at;
  }

  text(): string {
    return this.#cells[this.at++] as string;
  }

  textOrNull(): string | null {
    return this.#cells[this.at++] as string | null;
  }

  number(): number {
    return this.#cells[this.at++] as number;
  }

  numberOrNull(): number | null {
    return this.#cells[this.at++] as number | null;
  }

  keepOr<T>(take: () => T): T | "keep" {
    if (this.#cells[this.at] !== keep) return take();
    this.at++;
    return keep;
  }

  list<T>(take: () => T): T[] {
    const items: T[] = [];
    for (let left = this.number(); left > 0; left--) items.push(take());
    return items;
  }
}
