import type { Json } from "./json.js";

/** Some of what there is, and where the rest begins. */
export interface Page<Item> {
  readonly items: readonly Item[];
  /** Where the next page begins; `null`: this was the last one. */
  readonly next: string | null;
}

export interface Part {
  readonly id: string;
  readonly value: Json;
}

export interface PartPage {
  readonly after?: string;
  readonly limit?: number;
}
