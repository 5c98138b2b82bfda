import { SourceError } from "./source-error.js";

/** One page of a list, and how to ask for the next one. `null`: there is none. */
export interface Page {
  readonly names: readonly string[];
  readonly next: string | null;
}

export interface ListingLimits {
  readonly pages: number;
  readonly names: number;
}

/**
 * Reads a list to its last page, each name once. It ends in a throw if it goes in a circle, brings nothing new although it goes on, or is longer
 * than the limits: a list that breaks off must never look like one that is short.
 */
export async function* readPages(
  first: string,
  { pages, names }: ListingLimits,
  place: string,
  read: (page: string) => Promise<Page>,
): AsyncGenerator<readonly string[]> {
  const seen = new Set<string>();
  const asked = new Set<string>();
  for (let next: string | null = first; next !== null; ) {
    if (asked.has(next)) throw new SourceError("endless pages", place, "a page leads back to an earlier one");
    if (asked.size >= pages) throw new SourceError("endless pages", place, `more than ${pages} pages`);
    asked.add(next);
    const page = await read(next);
    const fresh = [...new Set(page.names)].filter((name) => !seen.has(name));
    if (page.next !== null && page.names.length > 0 && fresh.length === 0)
      throw new SourceError("endless pages", place, "a page repeats an earlier one");
    for (const name of fresh) seen.add(name);
    if (seen.size > names) throw new SourceError("too large", place, `more than ${names} names`);
    yield fresh;
    next = page.next;
  }
}
