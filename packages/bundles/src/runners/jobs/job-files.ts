import { constants } from "node:fs";
import { open, readFile, readlink } from "node:fs/promises";
import { join } from "node:path";
import type { JobState } from "../runner.js";

/** Who runs a job: a process, told apart from others with its number by when it started, and in which start of the machine. */
export interface Claim {
  readonly pid: number;
  readonly startTime: string;
  readonly boot: string;
}

/** What a job's folder says: `placed`: nobody has begun to run it. */
export type JobRecord =
  | { readonly kind: "absent" }
  | { readonly kind: "placed" }
  | { readonly kind: "claimed"; readonly claim: Claim }
  | { readonly kind: "ended"; readonly state: Extract<JobState, { kind: "ended" }> };

/** `exit` before the end of the job: as long as all that may be written over it. */
export const openExit = `${" ".repeat(31)}\n`;

/** `claim` of a job that was stopped before anyone ran it: whoever comes to run it finds it taken. */
export const stoppedClaim = "stopped\n";

export async function readRecord(folder: string): Promise<JobRecord> {
  const exit = await readIfThere(join(folder, "exit"));
  if (exit === null) return { kind: "absent" };
  const ended = parseExit(exit);
  if (ended !== null) return { kind: "ended", state: ended };
  const claim = await readIfThere(join(folder, "claim"));
  if (claim === null) return { kind: "placed" };
  if (claim === stoppedClaim) return { kind: "ended", state: { kind: "ended", exitCode: 0, cause: "stopped" } };
  const [pid, startTime = "", ...boot] = claim.trim().split(" ");
  return { kind: "claimed", claim: { pid: Number(pid), startTime, boot: boot.join(" ") } };
}

/** This start of the machine, and this process namespace: a process number means nothing beyond them. */
export async function readBoot(): Promise<string> {
  const [boot, namespace] = await Promise.all([
    readFile("/proc/sys/kernel/random/boot_id", "utf8"),
    readlink("/proc/self/ns/pid"),
  ]);
  return `${boot.trim()} ${namespace}`;
}

/** Whether the process of a claim is alive: its number may be another's by now, its start time cannot. */
export async function isAlive({ pid, startTime }: Claim): Promise<boolean> {
  const stat = await readIfThere(`/proc/${pid}/stat`);
  if (stat === null) return false;
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return fields[0] !== "Z" && fields[0] !== "X" && fields[19] === startTime;
}

/** Whole lines of a file from a byte on, at most about `maxBytes` of them; once it has ended, also what is left after the last line break. */
export async function readLines(
  path: string,
  from: number,
  { ended, maxBytes }: { readonly ended: boolean; readonly maxBytes: number },
): Promise<{ readonly lines: readonly string[]; readonly next: number }> {
  const file = await open(path, constants.O_RDONLY).catch(absentIsNull);
  if (file === null) return { lines: [], next: from };
  try {
    const { size } = await file.stat();
    // A line that is longer than a piece is read whole: the size of the file is bounded.
    for (let bytes = maxBytes; ; bytes *= 4) {
      const piece = Buffer.alloc(Math.max(0, Math.min(bytes, size - from)));
      const { bytesRead } = await file.read(piece, 0, piece.length, from);
      const isWhole = from + bytesRead >= size;
      const end = isWhole && ended ? bytesRead : piece.lastIndexOf(10, bytesRead - 1) + 1;
      if (end === 0 && !isWhole && bytesRead > 0) continue;
      const text = piece.toString("utf8", 0, end);
      const lines = text === "" ? [] : text.replace(/\n$/, "").split("\n");
      return { lines, next: from + end };
    }
  } finally {
    await file.close();
  }
}

/** The last bytes of a file, from the beginning of a line on. */
export async function readTail(path: string, lastBytes: number): Promise<string> {
  const file = await open(path, constants.O_RDONLY).catch(absentIsNull);
  if (file === null) return "";
  try {
    const { size } = await file.stat();
    const from = Math.max(0, size - lastBytes);
    const piece = Buffer.alloc(size - from);
    const { bytesRead } = await file.read(piece, 0, piece.length, from);
    // Half a line may begin with half a secret, which nobody would know again.
    const start = from === 0 ? 0 : piece.indexOf(10) + 1 || bytesRead;
    return piece.toString("utf8", start, bytesRead);
  } finally {
    await file.close();
  }
}

export async function readIfThere(path: string): Promise<string | null> {
  return readFile(path, "utf8").catch(absentIsNull);
}

/** ESRCH: a process ended while its file was read. */
function absentIsNull(error: NodeJS.ErrnoException): null {
  if (error.code === "ENOENT" || error.code === "ENOTDIR" || error.code === "ESRCH") return null;
  throw error;
}

const causes = ["exit", "timeout", "output", "memory", "disk", "start", "stopped"] as const;

function parseExit(text: string): Extract<JobState, { kind: "ended" }> | null {
  const [, code, word] = /^(\d+) ([a-z]+)\n/.exec(text) ?? [];
  const cause = causes.find((each) => each === word);
  return code === undefined || cause === undefined ? null : { kind: "ended", exitCode: Number(code), cause };
}
