import { setTimeout as sleep } from "node:timers/promises";
import type { Chance } from "../chance.js";
import type { Scene } from "./scene.js";
import type { Terms } from "./terms.js";

/** Nothing comes through for a while, and neither end is told. */
export interface Silence {
  readonly kind: "silence";
  readonly place: number;
  readonly forMs: number;
}

export function drawSilence(chance: Chance, { processes, leaseMs }: Terms): Silence {
  const place = chance.between(0, processes - 1);
  return { kind: "silence", place, forMs: Math.min(5_000, Math.round(leaseMs * (0.3 + 2 * chance.next()))) };
}

export async function silence(scene: Scene, { place, forMs }: Silence): Promise<number> {
  const wire = scene.places[place]?.wire;
  const hit = wire?.fallSilent(true) ?? 0;
  await sleep(forMs);
  wire?.fallSilent(false);
  return hit;
}
