import type { Chance } from "../chance.js";
import type { Scene } from "./scene.js";
import type { Terms } from "./terms.js";
import type { Loss } from "./wire.js";

/** A single answer of the server does not arrive, or only its beginning: what was asked has happened, and nobody is told. */
export interface LoseAnswer extends Loss {
  readonly kind: "lose answer";
  readonly place: number;
}

export function drawLoseAnswer(chance: Chance, { processes }: Terms): LoseAnswer {
  return {
    kind: "lose answer",
    place: chance.between(0, processes - 1),
    after: chance.between(0, 30),
    how: chance.happens(0.8) ? "all of it" : "its second half",
  };
}

export async function loseAnswer(scene: Scene, { place, ...loss }: LoseAnswer): Promise<number> {
  scene.places[place]?.wire?.loseAnswer(loss);
  return 1;
}
