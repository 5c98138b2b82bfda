import { setTimeout as sleep } from "node:timers/promises";
import type { Chance } from "../chance.js";
import type { Scene } from "./scene.js";
import type { Terms } from "./terms.js";

/** The server takes connections for ended, and the process, which lives, does not know. */
export interface HalfOpen {
  readonly kind: "half-open";
  readonly place: number;
  readonly which: "the oldest" | "all";
  readonly forMs: number;
}

export function drawHalfOpen(chance: Chance, { processes }: Terms): HalfOpen {
  return {
    kind: "half-open",
    place: chance.between(0, processes - 1),
    which: chance.happens(0.7) ? "the oldest" : "all",
    forMs: chance.between(1_000, 6_000),
  };
}

export async function halfOpen(scene: Scene, { place, which, forMs }: HalfOpen): Promise<number> {
  const opened = scene.places[place]?.wire?.halfOpen(which);
  await sleep(forMs);
  opened?.end();
  return opened?.hit ?? 0;
}
