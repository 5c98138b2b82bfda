import { setTimeout as sleep } from "node:timers/promises";
import type { Chance } from "../chance.js";
import type { Scene } from "./scene.js";

/** For a while the store answers most commits with an error that does not look like an outage. */
export interface RefuseEntries {
  readonly kind: "refuse entries";
  readonly forMs: number;
}

export function drawRefuseEntries(chance: Chance): RefuseEntries {
  return { kind: "refuse entries", forMs: chance.between(500, 2_500) };
}

export async function refuseEntries(scene: Scene, { forMs }: RefuseEntries): Promise<number> {
  const { server } = scene.store;
  if (scene.refusesEntries) return 0;
  scene.refusesEntries = true;
  try {
    // The server may be away at the moment. Whatever became of it, it must not keep refusing.
    const refuses = await server?.refuseEntries?.().catch((error: unknown) => error);
    await sleep(forMs);
    for (let tries = 1; ; tries++) {
      const accepts = await server?.acceptEntries?.().catch((error: unknown) => error);
      if (accepts === undefined) return refuses === undefined ? 1 : 0;
      if (tries === 100) throw accepts;
      await sleep(200);
    }
  } finally {
    scene.refusesEntries = false;
  }
}
