import { createHash } from "node:crypto";
import { closeSync, constants, fstatSync, openSync, readSync } from "node:fs";

/** All that reading settings takes from the world around it. */
export interface System {
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** The folder that paths in the environment start from. */
  readonly folder: string;
  /** Throws if there is no such file, or if it is larger. */
  readFile(path: string, mostBytes: number): Buffer;
}

/** The environment and the files of this process. */
export function realSystem(): System {
  return { environment: process.env, folder: process.cwd(), readFile: readBounded };
}

/** No file that settings name may be larger. */
const largestBytes = 1_048_576;

/** Remembers which files were read, and what was in them. */
export interface RecordingSystem extends System {
  readonly seen: ReadonlyMap<string, string>;
}

/** The same, with a record of every file that is asked for, those that are missing included. */
export function recordingSystem(system: System): RecordingSystem {
  const seen = new Map<string, string>();
  const { environment, folder } = system;
  const readFile = (path: string, mostBytes: number) => {
    // Before it is used: what changes in between is then told as a change, not missed.
    seen.set(path, digestOf(system, path));
    return system.readFile(path, mostBytes);
  };
  return { environment, folder, readFile, seen };
}

/** Tells whether a file is as it was, or is missing as it was. */
export function digestOf(system: System, path: string): string {
  try {
    return createHash("sha256").update(system.readFile(path, largestBytes)).digest("hex");
  } catch (error) {
    return whyUnreadable(error);
  }
}

/** Reads a regular file; a device or a pipe could go on for ever. */
function readBounded(path: string, mostBytes: number): Buffer {
  // A pipe that nobody writes to would be waited for even when it is only opened.
  const file = openSync(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
  try {
    const stats = fstatSync(file);
    if (!stats.isFile()) throw new Error("is not a file");
    const buffer = Buffer.alloc(mostBytes + 1);
    let length = 0;
    for (;;) {
      const read = readSync(file, buffer, length, buffer.length - length, null);
      length += read;
      if (length > mostBytes) throw new Error(`has more than ${mostBytes} bytes`);
      if (read === 0) return Buffer.from(buffer.subarray(0, length));
    }
  } finally {
    closeSync(file);
  }
}

/** Why a file cannot be used, as the end of a sentence. */
export function whyUnreadable(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  if (code === "ENOENT" || code === "ENOTDIR") return "is not there";
  if (code === "EACCES" || code === "EPERM") return "may not be read by this user";
  if (code === "EISDIR") return "is a folder";
  return code === undefined ? message : `cannot be read (${code})`;
}
