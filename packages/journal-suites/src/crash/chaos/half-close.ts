import type { Chance } from "../chance.js";
import type { Scene } from "./scene.js";
import type { Terms } from "./terms.js";

/** One end of the connections is told that nothing more will come; it may go on sending. */
export interface HalfClose {
  readonly kind: "half-close";
  readonly place: number;
  readonly way: "up" | "down";
}

export function drawHalfClose(chance: Chance, { processes }: Terms): HalfClose {
  return { kind: "half-close", place: chance.between(0, processes - 1), way: chance.pick(["up", "down"]) };
}

export async function halfClose(scene: Scene, { place, way }: HalfClose): Promise<number> {
  return scene.places[place]?.wire?.halfClose(way) ?? 0;
}
