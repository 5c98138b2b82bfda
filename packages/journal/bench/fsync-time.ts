import { closeSync, fdatasyncSync, fsyncSync, openSync, unlinkSync, writeSync } from "node:fs";
import { join } from "node:path";
import { quantile } from "../../../tools/bench/statistics.js";

/** How long the disk takes to make 4 KiB durable, without which no figure here means anything elsewhere. */
export interface FsyncTime {
  readonly p50Ms: number;
  readonly p99Ms: number;
}

/** Overwrites one place of a file again and again: what a database's log does at its best. */
export function fsyncTime(folder: string, times: number): FsyncTime {
  const path = join(folder, "fsync");
  const file = openSync(path, "w");
  try {
    const page = Buffer.alloc(4096, "x");
    writeSync(file, page, 0, page.length, 0);
    fsyncSync(file);
    const took = Array.from({ length: times }, () => {
      writeSync(file, page, 0, page.length, 0);
      const started = performance.now();
      fdatasyncSync(file);
      return performance.now() - started;
    });
    return { p50Ms: quantile(took, 0.5), p99Ms: quantile(took, 0.99) };
  } finally {
    closeSync(file);
    unlinkSync(path);
  }
}
