import { setTimeout as sleep } from "node:timers/promises";
import type { Chance } from "../chance.js";
import type { Scene } from "./scene.js";
import type { Terms } from "./terms.js";

/** Whatever a process sends and is sent takes longer for a while, and comes in other pieces than it was sent in. */
export interface Delay {
  readonly kind: "delay";
  readonly place: number;
  readonly ms: number;
  readonly forMs: number;
}

export function drawDelay(chance: Chance, { processes }: Terms): Delay {
  return {
    kind: "delay",
    place: chance.between(0, processes - 1),
    ms: chance.pick([5, 50, 300]),
    forMs: chance.between(500, 3_000),
  };
}

export async function delay(scene: Scene, { place, ms, forMs }: Delay): Promise<number> {
  const wire = scene.places[place]?.wire;
  wire?.delay(ms);
  await sleep(forMs);
  wire?.delay(0);
  return 1;
}
