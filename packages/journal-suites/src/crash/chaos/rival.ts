import { link, rename, rm, symlink } from "node:fs/promises";
import type { Chance } from "../chance.js";
import type { StoreFile } from "../store-addresses.js";
import type { Scene } from "./scene.js";

/** While a process has the file, or stands still with it, another one tries to open it: as it is, or in some roundabout way. */
export interface Rival {
  readonly kind: "rival";
  readonly by: "its path" | "a symbolic link" | "a hard link" | "another name" | "its path, swept clean";
  readonly whileFrozen: boolean;
}

export function drawRival(chance: Chance): Rival {
  const ways = ["its path", "a symbolic link", "a hard link", "another name", "its path, swept clean"] as const;
  return { kind: "rival", by: chance.pick(ways), whileFrozen: chance.happens(0.3) };
}

let rivals = 0;

export async function rival(scene: Scene, { by, whileFrozen }: Rival): Promise<number> {
  const { file } = scene.store;
  let tried = 0;
  await scene.alone(scene.places[0], async ({ life }) => {
    if (file === undefined || life.state !== "running") return;
    if (whileFrozen) scene.fleet.freeze(life);
    const { path, undo } = await wayTo(file, by);
    try {
      // If the owner has died meanwhile, whoever comes first may have the file.
      tried = await scene.fleet.rival(file.at(path), life, by);
    } finally {
      await undo();
      scene.fleet.thaw(life);
    }
  });
  return tried;
}

async function wayTo(
  { path, beside }: StoreFile,
  by: Rival["by"],
): Promise<{ readonly path: string; readonly undo: () => Promise<void> }> {
  const other = `${path}.${++rivals}`;
  const forget = () => rm(other, { force: true });
  switch (by) {
    case "its path":
      return { path, undo: async () => undefined };
    case "a symbolic link":
      await symlink(path, other);
      return { path: other, undo: forget };
    case "a hard link":
      await link(path, other);
      return { path: other, undo: forget };
    case "another name":
      await rename(path, other);
      return { path: other, undo: () => rename(other, path) };
    case "its path, swept clean":
      for (const one of beside) await rm(one, { force: true });
      return { path, undo: async () => undefined };
  }
}
