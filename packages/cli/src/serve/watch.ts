import { type FSWatcher, realpathSync, watch } from "node:fs";
import { dirname, join } from "node:path";
import { digestOf, type System } from "../settings/system.js";

export interface WatchOptions {
  readonly system: System;
  /** Something in one of the files is different. */
  readonly changed: () => void;
  /** A folder cannot be watched; changes in it go unseen. */
  readonly failed: (folder: string, error: unknown) => void;
}

export interface FileWatch {
  /** Watches these from now on, instead of those before; what changed since their digests were taken is told, too. */
  follow(files: ReadonlyMap<string, string>): void;
  close(): void;
}

/** Programs write a file in several goes, or write another one and rename it: wait until that is over. */
const settleMs = 100;

/**
 * Tells when the content of files changes. It watches their folders, since a file that is replaced by renaming takes the watch on it
 * along; and it compares contents, since a folder tells of much that changes nothing.
 */
export function watchFiles({ system, changed, failed }: WatchOptions): FileWatch {
  const watchers = new Map<string, FSWatcher>();
  let files: ReadonlyMap<string, string> = new Map();
  let timer: NodeJS.Timeout | undefined;

  const look = () => {
    timer = undefined;
    const now = new Map([...files.keys()].map((file) => [file, digestOf(system, file)] as const));
    const same = [...files].every(([file, digest]) => now.get(file) === digest);
    files = now;
    if (!same) changed();
  };
  // Set once and not put off again: in a folder where something always happens it would never come.
  const soon = () => {
    timer ??= setTimeout(look, settleMs).unref();
  };
  const open = (folder: string) => {
    try {
      const watcher = watch(folder, { persistent: false }, (_event, name) => {
        if (name === null || concerns(name, folder)) soon();
      });
      watcher.on("error", (error) => {
        watcher.close();
        watchers.delete(folder);
        failed(folder, error);
      });
      watchers.set(folder, watcher);
    } catch (error) {
      failed(folder, error);
    }
  };
  // Names that begin with two dots are how Kubernetes swaps all files of a volume at once.
  const concerns = (name: string, folder: string) =>
    name.startsWith("..") || [...files.keys()].some((file) => namesOf(file).includes(join(folder, name)));

  return {
    follow(next) {
      files = new Map(next);
      const folders = new Set([...files.keys()].flatMap((file) => namesOf(file).map((name) => dirname(name))));
      for (const [folder, watcher] of watchers) {
        if (folders.has(folder)) continue;
        watcher.close();
        watchers.delete(folder);
      }
      for (const folder of folders) if (!watchers.has(folder)) open(folder);
      soon();
    },
    close() {
      clearTimeout(timer);
      for (const watcher of watchers.values()) watcher.close();
      watchers.clear();
    },
  };
}

/** A link, and what it leads to: either can be changed. */
function namesOf(file: string): readonly string[] {
  try {
    return [...new Set([file, realpathSync(file)])];
  } catch {
    return [file];
  }
}
