import { setTimeout as sleep } from "node:timers/promises";
import type { Chance } from "../chance.js";
import type { Scene } from "./scene.js";
import type { Terms } from "./terms.js";

/** The connections of a process break, and for a while it gets no new ones. */
export interface Cut {
  readonly kind: "cut";
  readonly place: number;
  readonly how: "with a reset" | "with a farewell";
  /** 0: new ones are had at once. */
  readonly refusedForMs: number;
}

export function drawCut(chance: Chance, { processes }: Terms): Cut {
  return {
    kind: "cut",
    place: chance.between(0, processes - 1),
    how: chance.pick(["with a reset", "with a farewell"]),
    refusedForMs: chance.happens(0.4) ? chance.between(20, 3_000) : 0,
  };
}

export async function cut(scene: Scene, { place, how, refusedForMs }: Cut): Promise<number> {
  const wire = scene.places[place]?.wire;
  const broken = wire?.cut(how) ?? 0;
  if (refusedForMs > 0) {
    wire?.refuse(true);
    await sleep(refusedForMs);
    wire?.refuse(false);
  }
  return broken;
}
