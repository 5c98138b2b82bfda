import { type Place, placeName } from "./value-node.js";

/** Something that a person must write differently. */
export interface Fault {
  readonly place: Place;
  /** What it is about, such as `listen.port`. Empty: the whole. */
  readonly key: string;
  /** What is wrong, and what to write. Never holds a secret. */
  readonly message: string;
}

/** `osbert.yaml:12:5 listen.port: must be …` */
export function faultLine({ place, key, message }: Fault): string {
  const where = place.kind === "default" ? "" : `${placeName(place)} `;
  return key === "" ? `${where}${message}` : `${where}${key}: ${message}`;
}

/** In the order of the file; what stands elsewhere comes first. */
export function byPlace(one: Fault, other: Fault): number {
  const rank = ({ place }: Fault) => (place.kind === "file" ? place.line * 10_000 + Math.min(place.column, 9_999) : 0);
  return rank(one) - rank(other);
}
