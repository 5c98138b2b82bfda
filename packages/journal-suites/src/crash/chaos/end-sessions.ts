import { setTimeout as sleep } from "node:timers/promises";
import type { Chance } from "../chance.js";
import type { Scene } from "./scene.js";

/** An administrator ends all sessions, and those that take their place, too. */
export interface EndSessions {
  readonly kind: "end sessions";
  readonly pausesMs: readonly number[];
}

export function drawEndSessions(chance: Chance): EndSessions {
  const waves = chance.happens(0.5) ? 1 : chance.between(2, 12);
  return { kind: "end sessions", pausesMs: Array.from({ length: waves }, () => chance.between(0, 120)) };
}

export async function endSessions(scene: Scene, { pausesMs }: EndSessions): Promise<number> {
  let ended = 0;
  for (const pauseMs of pausesMs) {
    await scene.serverAlone(async () => {
      ended += (await scene.store.server?.endSessions?.()) ?? 0;
    });
    await sleep(pauseMs);
  }
  return ended;
}
