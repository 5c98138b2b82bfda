import { setTimeout as sleep } from "node:timers/promises";
import type { Chance } from "../chance.js";
import type { Scene } from "./scene.js";
import type { Terms } from "./terms.js";

/** A process stands still, or all of them do, so that nobody can take over: for longer than a lease, or just about as long. */
export interface Freeze {
  readonly kind: "freeze";
  readonly place: number | "all";
  readonly forMs: number;
}

export function drawFreeze(chance: Chance, { processes, leaseMs }: Terms): Freeze {
  const place = chance.happens(0.3) ? "all" : chance.between(0, processes - 1);
  return { kind: "freeze", place, forMs: Math.round(leaseMs * (0.7 + chance.next())) };
}

export async function freeze(scene: Scene, { place, forMs }: Freeze): Promise<number> {
  const { fleet, places } = scene;
  let frozen = 0;
  await Promise.all(
    (place === "all" ? places : places.slice(place, place + 1)).map((one) =>
      scene.alone(one, async ({ life }) => {
        if (life.state !== "running") return;
        frozen++;
        fleet.freeze(life);
        await Promise.race([sleep(forMs), life.ended]);
        fleet.thaw(life);
      }),
    ),
  );
  return frozen;
}
