import type { Chance } from "../chance.js";
import type { Scene } from "./scene.js";
import type { Terms } from "./terms.js";

/** A process ends at any instruction; another one takes its place. */
export interface Kill {
  readonly kind: "kill";
  readonly place: number;
}

export function drawKill(chance: Chance, { processes }: Terms): Kill {
  return { kind: "kill", place: chance.between(0, processes - 1) };
}

export async function kill({ fleet, places }: Scene, { place }: Kill): Promise<number> {
  const life = places[place]?.life;
  if (life === undefined || life.state === "ended") return 0;
  fleet.kill(life);
  return 1;
}
