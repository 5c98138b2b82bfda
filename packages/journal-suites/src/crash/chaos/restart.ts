import type { Chance } from "../chance.js";
import type { Scene } from "./scene.js";

/** The server goes without a farewell and comes back. */
export interface Restart {
  readonly kind: "restart";
}

export function drawRestart(_chance: Chance): Restart {
  return { kind: "restart" };
}

export async function restart(scene: Scene): Promise<number> {
  await scene.serverAlone(async () => scene.store.server?.restart?.());
  return 1;
}
