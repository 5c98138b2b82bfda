/** The known name that was most likely meant, or undefined if none is near. Case, dashes and underscores do not count. */
export function suggest(given: string, known: Iterable<string>): string | undefined {
  if (given.length > longest) return undefined;
  const wanted = plain(given);
  let best: { readonly name: string; readonly distance: number } | undefined;
  for (const name of known) {
    const isBeginning = wanted.length > 2 && plain(name).startsWith(wanted);
    const distance = isBeginning ? 1 : editDistance(wanted, plain(name));
    if (distance <= Math.max(1, Math.floor(name.length / 3)) && distance < (best?.distance ?? Infinity))
      best = { name, distance };
  }
  return best?.name;
}

/** `; did you mean …?`, or nothing. */
export function didYouMean(given: string, known: Iterable<string>): string {
  const near = suggest(given, known);
  return near === undefined ? "" : `; did you mean ${near}?`;
}

/** What is longer is not compared: it costs the square of its length. */
const longest = 64;

function plain(name: string): string {
  return name.toLowerCase().replaceAll(/[-_]/g, "");
}

/** How many letters must be put in, left out, changed, or swapped with their neighbour. */
function editDistance(one: string, other: string): number {
  const rows: number[][] = [Array.from({ length: other.length + 1 }, (_, index) => index)];
  const at = (row: number, column: number) => rows[row]?.[column] ?? Infinity;
  for (let row = 1; row <= one.length; row++) {
    rows.push([row]);
    for (let column = 1; column <= other.length; column++) {
      const same = one[row - 1] === other[column - 1];
      const swapped = one[row - 1] === other[column - 2] && one[row - 2] === other[column - 1];
      const ways = [at(row - 1, column - 1) + (same ? 0 : 1), at(row - 1, column) + 1, at(row, column - 1) + 1];
      rows[row]?.push(Math.min(...ways, swapped ? at(row - 2, column - 2) + 1 : Infinity));
    }
  }
  return at(one.length, other.length);
}
